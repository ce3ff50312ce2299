// Package clients runs real MCP clients from npm against the built binary: each
// discovers, registers, signs in and calls a tool. Only the person is ours.
package clients

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/demotest"
	"github.com/mcp-authd/mcp-authd/internal/npmtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	demotest.Cleanup()
	os.Exit(code)
}

var authorizeURL = regexp.MustCompile(`https?://[^\s"]*/authorize\?[^\s"\x1b]*`)

// person watches what a client prints for authorization URLs and visits each of them
// once, as somebody would whose browser does not open by itself.
type person struct {
	t *testing.T
	*demotest.Person

	mu   sync.Mutex // guards what follows
	seen map[string]bool
	text strings.Builder
	wg   sync.WaitGroup
}

func newPerson(t *testing.T, d *demotest.Demo) *person {
	return &person{t: t, Person: d.Person(), seen: map[string]bool{}}
}

// watch reads a stream to its end.
func (p *person) watch(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.line(lines.Text())
	}
}

func (p *person) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.WriteString(text + "\n")
	link := authorizeURL.FindString(text)
	if link == "" || p.seen[link] {
		return
	}
	p.seen[link] = true
	p.wg.Go(func() {
		back, err := p.Visit(link)
		if err != nil {
			p.t.Errorf("sign-in: %v", err)
			return
		}
		resp, err := http.Get(back.String())
		if err != nil {
			p.t.Errorf("callback: %v", err)
			return
		}
		resp.Body.Close()
	})
}

func (p *person) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (p *person) signIns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.seen)
}

// quietBrowser puts an opener first on PATH that opens nothing: the URL is printed as
// well, and two visits would race.
func quietBrowser(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"xdg-open", "open"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i, kv := range cmd.Env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			cmd.Env[i] = "PATH=" + dir + string(os.PathListSeparator) + path
		}
	}
	cmd.Env = append(cmd.Env, "BROWSER="+filepath.Join(dir, "xdg-open"))
}

// run runs a client to its end and returns what it printed.
func run(t *testing.T, p *person, cmd *exec.Cmd) (stdout string) {
	t.Helper()
	quietBrowser(t, cmd)
	var out strings.Builder
	outR, outW := io.Pipe()
	errR, errW := io.Pipe()
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, outW), errW
	var wg sync.WaitGroup
	wg.Go(func() { p.watch(outR) })
	wg.Go(func() { p.watch(errR) })
	stop := time.AfterFunc(90*time.Second, func() { _ = cmd.Process.Kill() })
	err := cmd.Run()
	stop.Stop()
	outW.Close()
	errW.Close()
	wg.Wait()
	p.wg.Wait()
	if err != nil {
		t.Fatalf("%v\n%s", err, p.output())
	}
	return out.String()
}

// TestTypeScriptSDKs: v1 cannot step up (it has no notion of it); v2 does.
func TestTypeScriptSDKs(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	for _, tt := range []struct {
		name, script, call, want string
		signIns                  int
	}{
		{"CL-47 TypeScript SDK v1: whoami", "sdk-v1.mjs", "whoami", "usr_", 1},
		{"CL-17 TypeScript SDK v2: whoami", "sdk-v2.mjs", "whoami", "usr_", 1},
		{"CL-20 TypeScript SDK v2: step-up", "sdk-v2.mjs", "add_note", "from a test", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPerson(t, d)
			out := run(t, p, npmtest.Command(t, "node", "clients/"+tt.script, d.MCPURL, tt.call))
			if !strings.Contains(out, tt.want) || p.signIns() != tt.signIns {
				t.Errorf("got %d sign-ins and\n%s", p.signIns(), p.output())
			}
		})
	}
}

// TestMCPRemote: the proxy for clients that speak stdio only.
func TestMCPRemote(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	p := newPerson(t, d)
	cmd := npmtest.Command(t, "mcp-remote", d.MCPURL)
	quietBrowser(t, cmd)
	r, w := io.Pipe()
	cmd.Stderr = w
	go p.watch(r)
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.output())
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami"})
	if err != nil || result.IsError {
		t.Fatalf("%+v, %v\n%s", result, err, p.output())
	}
	if b, _ := json.Marshal(result.StructuredContent); !strings.Contains(string(b), "usr_") || !strings.Contains(string(b), d.Issuer) {
		t.Errorf("got %s", b)
	}
}

// TestInspectorCLI: the official Inspector on the command line.
func TestInspectorCLI(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	p := newPerson(t, d)
	cmd := npmtest.Command(t, "mcp-inspector", "--cli", d.MCPURL, "--transport", "http", "--method", "tools/call", "--tool-name", "whoami")
	cmd.Env = append(cmd.Env, "MCP_AUTO_OPEN_ENABLED=true") // it refuses to sign in without a terminal otherwise
	out := run(t, p, cmd)
	if !strings.Contains(out, "usr_") || p.signIns() != 1 {
		t.Errorf("got %d sign-ins and\n%s", p.signIns(), p.output())
	}
}
