package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/config"
)

// TestProtectTellsOfReachFirst checks that protect says on its first line that the program can read
// the server's key, and how to prevent it (RU-09).
func TestProtectTellsOfReachFirst(t *testing.T) {
	for _, reach := range [][]string{nil, {"/data/secret.key"}} {
		var out bytes.Buffer
		p := &protection{upstream: []string{"npx", "-y", "notes"}, command: true, data: "data"}
		r := protected{MCPURL: "http://localhost:8414/mcp"}
		if err := p.print(std{out: &out}, r, nil, &config.Resource{URI: r.MCPURL, Name: "notes"}, reach); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(out.String(), "\n")
		warns := strings.Contains(first, "can read the server's key") && strings.Contains(first, "--sandbox strict") &&
			strings.Contains(first, "--run-as USER")
		if warns != (reach != nil) {
			t.Errorf("RU-09: with %q the first line is %q", reach, first)
		}
	}
}
