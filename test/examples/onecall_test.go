package examples

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
)

// maxBody is the maximum number of lines of the program without empty ones.
const maxBody = 12

// TestOneCall: issue 17, 1. The Example of mcpserver is a complete program of at most twelve lines,
// and identical to README. It is built in a separate module, and a client signs in to it.
func TestOneCall(t *testing.T) {
	body, rest := example(t)
	t.Run("it has twelve lines at most", func(t *testing.T) {
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(body), "\n"),
			func(l string) bool { return strings.TrimSpace(l) == "" })
		if len(lines) > maxBody {
			t.Errorf("it has %d lines:\n%s", len(lines), body)
		}
	})
	t.Run("README and the manual have the same", func(t *testing.T) {
		plain := regexp.MustCompile(`(?m)^\t`).ReplaceAllString(strings.TrimSpace(body), "")
		pages := manual(t)
		for _, page := range []string{"README.md", "docs/go.md"} {
			if !strings.Contains(pages[page], plain) {
				t.Errorf("%s has not:\n%s", page, plain)
			}
		}
	})
	binary := buildApart(t, "package main\n\n"+rest+"\nfunc main() {"+body+"}\n")
	address, home := nettest.For(t), t.TempDir()
	t.Setenv("MCP_AUTHD_LISTEN", address)
	t.Setenv("XDG_DATA_HOME", home)
	t.Setenv("STATE_DIRECTORY", "")
	t.Setenv("MCP_AUTHD_LOGIN_ADMINS_SECOND_FACTOR", "enrolled") // ada has only a password
	app := runReady(t, binary, address)
	ada, base := demotest.NewPerson("ada", "correct horse battery staple"), "http://"+address
	if err := ada.SetUp(setupLink.FindString(app.output())); err != nil {
		t.Fatalf("%v\n%s", err, app.output())
	}
	checkDiscovery(t, base)
	t.Run("RS-28 AS-114 a client signs in, and is asked for more by the tool that needs it", func(t *testing.T) {
		c := connect(t, base+"/mcp", ada)
		if got := c.call(t, "list_notes", nil); !strings.Contains(got, `"notes":[]`) || c.visits.Load() != 1 {
			t.Errorf("got %s after %d sign-ins", got, c.visits.Load())
		}
		got := c.call(t, "add_note", map[string]any{"text": "remember the milk"})
		if !strings.Contains(got, "remember the milk") || c.visits.Load() != 2 {
			t.Errorf("got %s after %d sign-ins", got, c.visits.Load())
		}
	})
	t.Run("the words of the scopes are those by which people are asked", func(t *testing.T) {
		if pages := strings.Join(ada.Pages, "\n"); !strings.Contains(pages, "add notes in your name") {
			t.Errorf("they were shown\n%s", pages)
		}
	})
	t.Run("the console, the API and the commands are there", func(t *testing.T) {
		for _, path := range []string{"/account", "/admin", "/readyz"} {
			resp, err := http.Get(base + path)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode >= http.StatusBadRequest {
				t.Errorf("%s: got %d", path, resp.StatusCode)
			}
		}
		out, err := exec.Command(program.Authd(t), "resource", "list", "--data",
			filepath.Join(home, "mcp-authd", "notes")).CombinedOutput()
		if want := "add_note: notes:read notes:write"; err != nil || !strings.Contains(string(out), want) {
			t.Errorf("got %v\n%s\nwant %s", err, out, want)
		}
	})
	t.Run("SIGTERM ends it", func(t *testing.T) {
		if err := app.stop(t); err != nil {
			t.Errorf("it ended with %v\n%s", err, app.output())
		}
	})
}

// example returns the body of Example in package mcpserver, and the declarations that it uses.
func example(t *testing.T) (body, rest string) {
	t.Helper()
	name := filepath.Join(root, "mcpserver", "example_test.go")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := func(p token.Pos) int { return files.Position(p).Offset }
	var others strings.Builder
	for _, d := range f.Decls {
		fn, isFunc := d.(*ast.FuncDecl)
		switch {
		case isFunc && fn.Name.Name == "Example":
			body = string(text[at(fn.Body.Lbrace)+1 : at(fn.Body.Rbrace)])
		case isFunc && strings.HasPrefix(fn.Name.Name, "Example"):
		default:
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				continue
			}
			others.Write(text[at(d.Pos()):at(d.End())])
			others.WriteString("\n\n")
		}
	}
	var imports strings.Builder
	for _, i := range f.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		if used := filepath.Base(path) + "."; strings.Contains(body+others.String(), used) {
			fmt.Fprintf(&imports, "import %q\n", path)
		}
	}
	return body, imports.String() + "\n" + others.String()
}

// buildApart builds a program in a new module from this tree and its dependencies, without the
// network.
func buildApart(t *testing.T, source string) (binary string) {
	t.Helper()
	pretty, err := format.Source([]byte(source))
	if err != nil {
		t.Fatalf("%v\n%s", err, source)
	}
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(here, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(here, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^go \S+$`).Find(mod)
	sdk := regexp.MustCompile(`github.com/modelcontextprotocol/go-sdk v\S+`).Find(mod)
	folder := t.TempDir()
	for name, content := range map[string][]byte{
		"main.go": pretty, "go.sum": sum,
		"go.mod": fmt.Appendf(nil, "module example.com/notes\n\n%s\n\nrequire (\n\tgithub.com/mcp-authd/mcp-authd v0.0.0\n\t%s\n)\n\n"+
			"replace github.com/mcp-authd/mcp-authd => %s\n", line, sdk, here),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary = filepath.Join(folder, "notes")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = folder
	build.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOWORK=off")
	var out bytes.Buffer
	build.Stdout, build.Stderr = &out, &out
	if err := build.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.Bytes(), pretty)
	}
	return binary
}

// TestOneCallElsewhere tests the same tools with users who sign in at another server.
func TestOneCallElsewhere(t *testing.T) {
	data, address := t.TempDir(), nettest.For(t)
	demo, resource := demotest.Start(t, demotest.Options{Args: []string{"--data", data}}), "http://"+address+"/mcp"
	add := exec.Command(program.Authd(t), "resource", "add", resource, "--name", "Notes", "--data", data,
		"--scope", "notes:read=read your notes", "--scope", "notes:write=add notes in your name")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	who := func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		caller, _ := mcpresource.FromContext(ctx)
		return nil, map[string]any{"scopes": caller.Scopes}, nil
	}
	tools := gosdk.NewTools(mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil),
		gosdk.Scope{Name: "notes:read"})
	gosdk.AddTool(tools, &mcp.Tool{Name: "read"}, who)
	gosdk.AddTool(tools, &mcp.Tool{Name: "write"}, who, gosdk.Scope{Name: "notes:write"})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		var err error
		wait.Poll(wait.Bound, func() bool { // the demo publishes the resource some seconds later
			err = gosdk.Serve(ctx, tools, gosdk.ServeOptions{Resource: resource, Issuer: demo.Issuer})
			return !errors.As(err, new(*mcpresource.MismatchError))
		})
		ended <- err
	}()
	wait.Until(t, "it answers", func() bool {
		if len(ended) > 0 {
			t.Fatal(<-ended)
		}
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	t.Run("RS-28 AS-114 a client signs in there, and for more when a tool needs it", func(t *testing.T) {
		c := connect(t, resource, demo.Person())
		if got := c.call(t, "read", nil); strings.Contains(got, "notes:write") || c.visits.Load() != 1 {
			t.Errorf("got %s after %d sign-ins", got, c.visits.Load())
		}
		if got := c.call(t, "write", nil); !strings.Contains(got, "notes:write") || c.visits.Load() != 2 {
			t.Errorf("got %s after %d sign-ins", got, c.visits.Load())
		}
	})
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
