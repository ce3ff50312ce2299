package storage

import (
	"context"
	"time"
)

// Servers combines the roles about MCP servers.
type Servers interface {
	Resources
	Tools
}

// ToolDefinition is an MCP server's definition of a tool: the tool's whole entry in a list.
type ToolDefinition struct {
	Digest Hash
	Text   string // JSON; "" if it is too long to store, or was not requested
	At     time.Time
}

// Tool is the stored state of a tool of an MCP server behind the gateway.
type Tool struct {
	Resource, Name string
	Accepted       ToolDefinition // zero: no definition was accepted
	AcceptedBy     string         // the name of the administrator; "": it was the first definition seen
	Offered        ToolDefinition // the last definition seen that differs from the accepted one; zero: none
}

// IsOffered reports whether a definition waits for an administrator to accept it.
func (t Tool) IsOffered() bool { return !t.Offered.At.IsZero() }

// IsNew reports whether no definition of the tool was accepted.
func (t Tool) IsNew() bool { return t.Accepted.At.IsZero() }

// MaxTools is the maximum number of stored tools of an MCP server.
const MaxTools = 1000

// Tools stores the tool definitions of MCP servers behind the gateway, and which were accepted.
type Tools interface {
	// SeeTools stores an MCP server's tool definitions, by name. With trust, it accepts the
	// definition of an unknown tool; without, it offers the definition. A definition that differs
	// from the accepted one becomes the offer, in place of an earlier offer. It returns the tools
	// with new definitions, as now stored and without texts. Each goes to one of N concurrent
	// callers.
	SeeTools(ctx context.Context, resource string, seen map[string]ToolDefinition, trust bool) ([]Tool, error)
	// Tools returns up to MaxTools tools of an MCP server, by name, without texts.
	Tools(ctx context.Context, resource string) ([]Tool, error)
	// Tool returns one tool with its texts, or ErrNotFound.
	Tool(ctx context.Context, resource, name string) (Tool, error)
	// OfferedTools returns up to limit tools of all MCP servers with an offered definition, without
	// texts.
	OfferedTools(ctx context.Context, limit int) ([]Tool, error)
	// AcceptTool ends an offer. The definition with this digest, the offered or the accepted one,
	// is the accepted one from now on. It returns ErrNotFound, or ErrChanged if the offer has since
	// changed. It returns no error if no definition is offered and the accepted one has the digest.
	AcceptTool(ctx context.Context, resource, name string, digest Hash, by string, now time.Time) error
}
