package storage

import (
	"context"
	"time"
)

// ToolCall is a call of an MCP server's tool.
type ToolCall struct {
	Tool string    // tool name; "": not known
	At   time.Time // when it began; zero: no call is known
}

// LastCalls stores the last tool call of each grant, as reported by resource servers.
type LastCalls interface {
	// NoteCalls stores each call as the last call of the grant with the id, unless a later call is
	// stored. It ignores ids of grants that were not live when the call was made.
	NoteCalls(ctx context.Context, calls map[string]ToolCall) error
}
