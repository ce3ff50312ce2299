package storage

import (
	"context"
	"time"
)

// ToolCall is a call of a tool of an MCP server.
type ToolCall struct {
	Tool string    // its name; "": not known
	At   time.Time // when it began; zero: no call is known
}

// LastCalls keeps the last tool call of each grant, as resource servers report them.
type LastCalls interface {
	// NoteCalls keeps each call as the last one of the grant with the id, unless a later one is kept.
	// An id of no grant that is live when the call is made is left out, without an error.
	NoteCalls(ctx context.Context, calls map[string]ToolCall) error
}
