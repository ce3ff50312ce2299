package console

import (
	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

// firstSteps guides an administrator through a new installation.
type firstSteps struct{ v *view }

// part returns the steps until the installation has a grant, or nil if the user may not take them.
func (f firstSteps) part() pages.ConsolePart {
	for _, name := range []string{"resource list", "resource add", "user list", "user invite", "grant list"} {
		if !f.v.may(name) {
			return nil
		}
	}
	if f.connected() {
		return nil
	}
	return pages.ConsoleFirst{Title: "First steps", Steps: []pages.ConsoleTodo{
		{
			Name: "Add an MCP server", Done: f.hasServer(), URL: f.v.url("resource add", nil),
			Text: "Clients can only get tokens for MCP servers that this server knows.",
		},
		{
			Name: "Invite a user", Done: f.hasOthers(), URL: f.v.url("user invite", nil),
			Text: "Send a link with which they choose a password or a passkey. If you are the only user, skip this.",
		},
		{
			Name: "Connect a client", Command: "mcp-authd login MCP_URL",
			Text: "Enter the URL of your MCP server in Claude, ChatGPT, VS Code or another client, or try it with:",
		},
	}}
}

// connected reports whether there is a grant. An installation that cannot tell is not new.
func (f firstSteps) connected() bool {
	found, err := admin.GrantList.Do(f.v.r.Context(), f.v.as, admin.GrantsWanted{Paging: admin.Paging{Limit: 1}})
	return err != nil || len(found.Items) > 0
}

func (f firstSteps) hasServer() bool {
	found, err := admin.ResourceList.Do(f.v.r.Context(), f.v.as, admin.None{})
	return err == nil && len(found.Items) > 0
}

// hasOthers reports whether there is an account besides the administrator's own.
func (f firstSteps) hasOthers() bool {
	found, err := admin.UserList.Do(f.v.r.Context(), f.v.as, admin.Searched{Paging: admin.Paging{Limit: 2}})
	return err == nil && len(found.Items) > 1
}
