package storage

import (
	"context"
	"time"
)

// Servers is what the store knows of MCP servers.
type Servers interface {
	Resources
	Tools
}

// ToolDefinition is how an MCP server has described a tool: its whole entry in a list.
type ToolDefinition struct {
	Digest Hash
	Text   string // JSON; "" where it is too long to be kept, or was not asked for
	At     time.Time
}

// Tool is what is known of a tool of an MCP server behind the gateway.
type Tool struct {
	Resource, Name string
	Accepted       ToolDefinition // zero: no definition of it was accepted
	AcceptedBy     string         // the name of who has; "": it was the first to be seen
	Offered        ToolDefinition // seen last that is not the accepted one; zero: none
}

// IsOffered reports whether an operator has something to accept.
func (t Tool) IsOffered() bool { return !t.Offered.At.IsZero() }

// IsNew reports whether no definition of it was accepted.
func (t Tool) IsNew() bool { return t.Accepted.At.IsZero() }

// MaxTools is how many tools of an MCP server are known.
const MaxTools = 1000

// Tools holds how MCP servers behind the gateway describe their tools, and which of that was accepted.
type Tools interface {
	// SeeTools keeps what an MCP server shows of tools, by name. A tool that is not known is accepted as it
	// is shown with trust, and offered without. One that is shown otherwise than it was accepted is offered
	// so, in place of what was offered before. It returns those of which that was not known, as they are
	// now and without texts; of N callers at once one gets each.
	SeeTools(ctx context.Context, resource string, seen map[string]ToolDefinition, trust bool) ([]Tool, error)
	// Tools returns up to MaxTools tools of an MCP server, by name, without texts.
	Tools(ctx context.Context, resource string) ([]Tool, error)
	// Tool returns one with its texts, or ErrNotFound.
	Tool(ctx context.Context, resource, name string) (Tool, error)
	// OfferedTools returns up to limit tools of all MCP servers of which something is offered, without texts.
	OfferedTools(ctx context.Context, limit int) ([]Tool, error)
	// AcceptTool ends an offer: the definition with this digest, the offered or the accepted one, is what is
	// accepted from now on. ErrNotFound, or ErrChanged when something else is offered meanwhile. No error when
	// nothing is offered, and the accepted one has the digest.
	AcceptTool(ctx context.Context, resource, name string, digest Hash, by string, now time.Time) error
}
