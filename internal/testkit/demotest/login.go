package demotest

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// Login runs the command login: p signs in to an MCP server and lists its tools. It fails
// the test if the command fails. more is added to the environment.
func Login(tb testing.TB, p *Person, mcp string, more ...string) {
	tb.Helper()
	login(tb, p, more, mcp)
}

// LoginKeep is Login with --keep.
func LoginKeep(tb testing.TB, p *Person, mcp string, more ...string) {
	tb.Helper()
	login(tb, p, more, "--keep", mcp)
}

func login(tb testing.TB, p *Person, env []string, args ...string) {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), program.Authd(tb), append([]string{"login", "--no-browser", "--json"},
		args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	var last string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var step struct{ Step, URL, Error string }
		if err := json.Unmarshal(lines.Bytes(), &step); err != nil {
			tb.Fatalf("%q: %v", lines.Text(), err)
		}
		if last = step.Step; step.Error != "" {
			tb.Errorf("login: %s: %s", step.Step, step.Error)
		}
		if step.URL == "" {
			continue
		}
		back, err := p.Visit(step.URL)
		if err != nil {
			tb.Fatal(err)
		}
		resp, err := http.Get(back.String())
		if err != nil {
			tb.Fatal(err)
		}
		resp.Body.Close()
	}
	if err := cmd.Wait(); err != nil || last != "tools" {
		tb.Errorf("login ended with %q: %v", last, err)
	}
}
