package stdio

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/sandbox"
)

// TestSandboxed: SP-24. A program in a sandbox is an MCP server as any other, and is ended with all that it has
// started, also when it does not want to.
func TestSandboxed(t *testing.T) {
	for _, mode := range []string{"good", "deaf"} {
		s := serve(t, mode, Config{Sandbox: &sandbox.Policy{FileSize: 1 << 20, OpenFiles: 256}})
		h := s.open("2025-11-25")
		pid := int(s.post(toolCall("1", "echo", ""), h...).result(t)["pid"].(float64))
		child := int(s.post(toolCall("2", "child", ""), h...).result(t)["child"].(float64))
		if !alive(pid) || !alive(child) {
			t.Fatal("they do not run")
		}
		s.do(t.Context(), "DELETE", "", h...)
		eventually(t, "both have ended", func() bool { return !alive(pid) && !alive(child) })
	}
}

// TestSandboxRefused: SP-24. A program that cannot be shut in does not run, and the log says why.
func TestSandboxRefused(t *testing.T) {
	s := serve(t, "good", Config{Sandbox: &sandbox.Policy{Write: []string{filepath.Join(t.TempDir(), "none")}}})
	a := s.post(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	if !strings.Contains(a.body, "-32603") {
		t.Errorf("got %d %s", a.status, a.body)
	}
	eventually(t, "the log says why", func() bool { return strings.Contains(s.log.String(), "cannot be found") })
	if _, err := New(Config{Command: []string{"true"}, Sandbox: &sandbox.Policy{Read: []string{"x"}}}); err == nil ||
		!strings.Contains(err.Error(), "absolute") {
		t.Errorf("a relative path: got %v", err)
	}
}
