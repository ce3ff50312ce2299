package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// TestRecordCall: a caller writes no megabytes into the log.
func TestRecordCall(t *testing.T) {
	var log bytes.Buffer
	a := &app{log: slog.New(slog.NewJSONHandler(&log, nil))}
	op := mcpresource.Operation{Method: "tools/call", Name: strings.Repeat("x", 1<<20)}
	a.recordCall("https://mcp.example.com/mcp")(mcpresource.Event{Outcome: "insufficient_scope", Operations: []mcpresource.Operation{op, op}})
	if log.Len() > 2000 || !strings.Contains(log.String(), "tools/call") {
		t.Errorf("one refusal is %d bytes of log", log.Len())
	}
}
