package assembly

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/condition"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// clearance converts a configured tool call approval rule, which has been validated.
func clearance(c config.ToolClearance) mcpresource.Clearance {
	out := mcpresource.Clearance{
		By: c.By, Approvers: c.Approvers,
		Authentication: mcpresource.Authentication{MaxAge: time.Duration(c.MaxAge)},
	}
	if c.ACR != "" {
		out.Authentication.ACR = oauth.ACRsFrom(c.ACR)
	}
	when, err := condition.CompileArguments(c.When)
	if c.When == "" || err != nil {
		return out // every call
	}
	out.When = func(op mcpresource.Operation) bool {
		arguments, err := op.Args(when.Names()...)
		return err != nil || when.MayHold(arguments)
	}
	return out
}
