package mcp

import "testing"

// TestMistaken: EN-10: it checks methods that a lenient server could confuse with one of MCP.
func TestMistaken(t *testing.T) {
	for method, want := range map[string]bool{
		"Tools/Call": true, "TOOLS/CALL": true, "tool\u017f/call": true, "ta\u017fks/get": true, "tas\u212as/get": true,
		"tools/call ": true, "\ttools/call": true, "Tools/other": true, "Resources/read": true, "Initialize": true,
		"PING": true, "logging/setlevel": true,
		"tools/call": false, "tools/other": false, "ping": false, "logging/setLevel": false, "": false,
		"Custom/Call": false,
		"tools":       false, "toolscall": false,
	} {
		if got := Mistaken(method); got != want {
			t.Errorf("EN-10: %q: got %v, want %v", method, got, want)
		}
	}
	for _, m := range methods {
		if Mistaken(m) {
			t.Errorf("EN-10: %q is taken for another one", m)
		}
	}
}
