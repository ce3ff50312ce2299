package gosdk

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestTasksOverStdio: over stdio the member task takes another path.
func TestTasksOverStdio(t *testing.T) {
	tr := newTaskRig(t, nil)
	p := newPipeTo(t, tr.rig, nil).open("2025-11-25")
	p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fails","task":{}}}`)
	line := p.next()
	_, after, ok := strings.Cut(line, `"taskId":"`)
	if !ok {
		t.Fatalf("RS-215 got %s", line)
	}
	id, _, _ := strings.Cut(after, `"`)
	p.send(`{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"` + id + `"}}`)
	if line := p.next(); !strings.Contains(line, "no such file") || !strings.Contains(line, id) {
		t.Errorf("RS-215 got %s", line)
	}
}

// TestTasksAndOutputSchemas: a task ends like the call would.
func TestTasksAndOutputSchemas(t *testing.T) {
	tr := newTaskRig(t, &Tasks{Tools: map[string]TaskTool{"typed": {}}})
	tr.adapter.server.AddTool(&mcp.Tool{
		Name: "typed", InputSchema: anyObject,
		OutputSchema: json.RawMessage(`{"type":"object","required":["n"]}`),
	}, okTool)
	got := tr.until(t, "alice-mcp", tr.start(t, "alice-mcp", "typed"), "completed", "failed")
	if e, _ := got.Result["error"].(map[string]any); e["code"] != -32603.0 {
		t.Errorf("RS-126 RS-216 got %s", got.text)
	}
}
