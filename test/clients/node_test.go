package clients

import (
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// sdkV1 cannot step up: at a 403 it refreshes and gets the same scopes again.
func sdkV1(t *testing.T, l *life) {
	l.sdk(t, "sdk-v1.mjs")
	const lack = "no: it refreshes, which gives no new scope"
	l.lacks(t, &l.row.stepsUp, lack, "is refused what needs another scope, and stops", func(t *testing.T) {
		p := newPerson(t, l.Demo)
		before := l.events("token.refreshed")
		_, err := tryRun(t, p, l.script(t, "sdk-v1.mjs", "add_note"))
		if err == nil || l.events("token.refreshed") == before ||
			!strings.Contains(p.output(), "403 after trying upscoping") {
			t.Errorf("got %v and\n%s", err, p.output())
		}
	})
}

func sdkV2(t *testing.T, l *life) {
	l.sdk(t, "sdk-v2.mjs")
	l.step(t, &l.row.stepsUp, "CL-20 AS-114 steps up", func(t *testing.T) {
		p := newPerson(t, l.Demo)
		out := run(t, p, l.script(t, "sdk-v2.mjs", "add_note"))
		if !strings.Contains(out, "from a test") || p.signIns() != 2 {
			t.Errorf("got %d sign-ins and\n%s", p.signIns(), p.output())
		}
	})
}

func (l *life) sdk(t *testing.T, script string) {
	l.registers(t, func(t *testing.T) string {
		p := newPerson(t, l.Demo)
		out := run(t, p, l.script(t, script, "whoami"))
		if p.signIns() != 1 {
			t.Errorf("got %d sign-ins and\n%s", p.signIns(), p.output())
		}
		return out
	})
	l.step(t, &l.row.refreshes, "AS-94 refreshes", func(t *testing.T) {
		p := newPerson(t, l.Demo)
		before := l.events("token.refreshed")
		out := run(t, p, l.script(t, script, "whoami", strconv.Itoa(outlived), "whoami"))
		if p.signIns() != 1 || strings.Count(out, `"structuredContent"`) != 2 || l.events("token.refreshed") == before {
			t.Errorf("got %d sign-ins, %d refreshes and\n%s", p.signIns(), l.events("token.refreshed")-before,
				p.output())
		}
	})
}

func (l *life) script(t *testing.T, script string, steps ...string) *exec.Cmd {
	t.Helper()
	cmd := npmtest.Command(t, "node", append([]string{"clients/" + script, l.MCPURL, l.document}, steps...)...)
	if l.bound {
		cmd.Env = append(cmd.Env, "DPOP=1")
	}
	return cmd
}

// remoteCommand returns the command of mcp-remote. The user visits the URLs that it prints.
func remoteCommand(t *testing.T, p *person, args ...string) *exec.Cmd {
	t.Helper()
	cmd := npmtest.Command(t, "mcp-remote", args...)
	quietBrowser(t, cmd)
	r, w := io.Pipe()
	cmd.Stderr = w
	go p.watch(r)
	return cmd
}

// remote is an MCP client behind mcp-remote, with its user.
type remote struct {
	*person
	cmd     *exec.Cmd
	session *mcp.ClientSession
}

func remoteAt(t *testing.T, l *life) *remote {
	t.Helper()
	p := newPerson(t, l.Demo)
	args := []string{l.MCPURL}
	if l.document != "" {
		args = append(args, "--client-metadata-url", l.document)
	}
	r := &remote{person: p, cmd: remoteCommand(t, p, args...)}
	t.Cleanup(func() {
		if r.session != nil {
			r.session.Close()
		}
	})
	return r
}

// connect starts mcp-remote, which runs until ctx ends.
func (r *remote) connect(ctx context.Context, t *testing.T) {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	var err error
	if r.session, err = c.Connect(ctx, &mcp.CommandTransport{Command: r.cmd}, nil); err != nil {
		t.Fatalf("%v\n%s", err, r.output())
	}
}

func (r *remote) call(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	result, err := r.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil || result.IsError {
		t.Fatalf("%+v, %v\n%s", result, err, r.output())
	}
	b, err := json.Marshal(result.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// mcpRemote tests the proxy for clients that support only stdio, so the test uses stdio.
func mcpRemote(t *testing.T, l *life) {
	r := remoteAt(t, l)
	ctx := t.Context() // lives longer than the first step
	l.registers(t, func(t *testing.T) string {
		r.connect(ctx, t)
		return r.call(t, "whoami", nil)
	})
	l.step(t, &l.row.refreshes, "AS-94 refreshes", func(t *testing.T) {
		before := l.events("token.refreshed")
		wait.Until(t, "it refreshes", func() bool {
			r.call(t, "whoami", nil)
			return l.events("token.refreshed") > before
		})
		if r.signIns() != 1 {
			t.Errorf("got %d sign-ins and\n%s", r.signIns(), r.output())
		}
	})
	l.step(t, &l.row.stepsUp, "CL-20 AS-114 steps up", func(t *testing.T) {
		// A refresh during the sign-in makes mcp-remote forget the server where it signs in. So
		// these access tokens outlive the step.
		r := remoteAt(t, newLife(t, l.client, l.web, l.document, "1h"))
		r.connect(t.Context(), t)
		if out := r.call(t, "add_note", map[string]any{"text": "from a test"}); !strings.Contains(out, "from a test") ||
			r.signIns() != 2 {
			t.Errorf("got %s, %d sign-ins and\n%s", out, r.signIns(), r.output())
		}
	})
}

// inspectorCommand returns a command of the Inspector that calls a tool. It stores its data in
// home. more selects the server.
func inspectorCommand(t *testing.T, home, callback, tool string, more ...string) *exec.Cmd {
	t.Helper()
	args := []string{"--cli", "--callback-url", callback, "--method", "tools/call", "--tool-name", tool}
	cmd := npmtest.Command(t, "mcp-inspector", append(args, more...)...)
	cmd.Stdin = strings.NewReader("y\n") // it asks before it steps up
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"} {
		cmd.Env = append(cmd.Env, name+"="+home)
	}
	cmd.Env = append(cmd.Env,
		"MCP_AUTO_OPEN_ENABLED=true",      // otherwise it refuses to sign in without a terminal
		"MCP_INSPECTOR_SECRET_STORE=file", // this machine has no keychain
	)
	return cmd
}

// inspectorAt returns a function that runs commands of one Inspector, with a separate home, at one
// server.
func inspectorAt(t *testing.T, l *life) func(t *testing.T, tool string, more ...string) (string, *person, error) {
	t.Helper()
	home := t.TempDir()
	callback := "http://" + nettest.For(t) + "/oauth/callback"
	return func(t *testing.T, tool string, more ...string) (string, *person, error) {
		t.Helper()
		if l.document != "" {
			more = append([]string{"--client-metadata-url", l.document}, more...)
		}
		cmd := inspectorCommand(t, home, callback, tool, append([]string{l.MCPURL, "--transport", "http"}, more...)...)
		p := newPerson(t, l.Demo)
		out, err := tryRun(t, p, cmd)
		return out, p, err
	}
}

// inspector tests the official Inspector on the command line, which stores its data in its home
// between commands.
func inspector(t *testing.T, l *life) {
	command := inspectorAt(t, l)
	l.registers(t, func(t *testing.T) string {
		out, p, err := command(t, "whoami")
		if err != nil || p.signIns() != 1 {
			t.Errorf("got %v, %d sign-ins and\n%s", err, p.signIns(), p.output())
		}
		return out
	})
	l.step(t, &l.row.refreshes, "AS-94 refreshes", func(t *testing.T) {
		before := l.events("token.refreshed")
		wait.Until(t, "it refreshes", func() bool {
			out, p, err := command(t, "whoami")
			if err != nil || !strings.Contains(out, "usr_") || p.signIns() != 0 {
				t.Fatalf("got %v, %d sign-ins and\n%s", err, p.signIns(), p.output())
			}
			return l.events("token.refreshed") > before
		})
	})
	if l.document == "" {
		const lack = "by document only: else it refreshes, and stops"
		l.lacks(t, &l.row.stepsUp, lack, "does not step up, and stops", func(t *testing.T) {
			before := l.events("token.refreshed")
			_, p, err := command(t, "add_note", "--tool-arg", "text=from a test")
			if err == nil || p.signIns() != 0 || l.events("token.refreshed") == before ||
				!strings.Contains(p.output(), "auth() returned AUTHORIZED without authorization code") {
				t.Errorf("got %v, %d sign-ins and\n%s", err, p.signIns(), p.output())
			}
		})
	} else {
		l.step(t, &l.row.stepsUp, "CL-20 AS-114 steps up", func(t *testing.T) {
			// A command that refreshes does not step up, so these access tokens live longer than a
			// command.
			command := inspectorAt(t, newLife(t, l.client, l.web, l.document, "1h"))
			if _, p, err := command(t, "whoami"); err != nil {
				t.Fatalf("%v\n%s", err, p.output())
			}
			out, p, err := command(t, "add_note", "--tool-arg", "text=from a test")
			if err != nil || !strings.Contains(out, "from a test") || p.signIns() != 1 {
				t.Errorf("got %v, %d sign-ins and\n%s", err, p.signIns(), p.output())
			}
		})
	}
	const lack = "no: `--relogin` sends no revocation"
	l.lacks(t, &l.row.revokes, lack, "signs in again, without revoking", func(t *testing.T) {
		before := l.events("token.revoked")
		out, p, err := command(t, "whoami", "--relogin")
		if err != nil || !strings.Contains(out, "usr_") || p.signIns() != 1 || l.events("token.revoked") != before {
			t.Errorf("got %v, %d sign-ins, %d revocations and\n%s", err, p.signIns(),
				l.events("token.revoked")-before, p.output())
		}
	})
}
