package gosdk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

type pipe struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string
	ended chan error
}

func newPipe(t *testing.T, o *StdioOptions, more ...func(*mcp.Server)) *pipe {
	t.Helper()
	r := newRig(t, nil, append(more, func(s *mcp.Server) {
		mcp.AddTool(s, &mcp.Tool{Name: "wait"},
			func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				<-ctx.Done()
				// the test looks for this
				_ = req.Session.NotifyProgress(context.WithoutCancel(ctx),
					&mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1})
				return nil, nil, ctx.Err()
			})
	})...)
	return newPipeTo(t, r, o)
}

func newPipeTo(t *testing.T, r *rig, o *StdioOptions) *pipe {
	t.Helper()
	if o == nil {
		o = &StdioOptions{}
	}
	if o.Caller == nil {
		o.Caller = func(context.Context) (*mcpresource.Principal, error) { return r.principal("alice", "mcp"), nil }
	}
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	o.Reader, o.Writer = stdin, stdout
	p := &pipe{t, in, make(chan string, 50), make(chan error, 1)}
	go func() {
		p.ended <- RunStdio(t.Context(), r.adapter.server, o)
		stdout.Close()
	}()
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() { in.Close(); <-p.ended })
	return p
}

func (p *pipe) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pipe) next() string {
	p.t.Helper()
	select {
	case l := <-p.lines:
		return l
	case err := <-p.ended:
		p.ended <- err
		if l, ok := <-p.lines; ok { // written before
			return l
		}
		p.t.Fatalf("the server ended: %v", err)
	case <-time.After(time.Minute):
		p.t.Fatal("no line came")
	}
	return ""
}

func (p *pipe) open(version string) *pipe {
	p.t.Helper()
	p.send(strings.Replace(openOld, "2024-11-05", version, 1))
	if got := p.next(); !strings.Contains(got, version) {
		p.t.Fatalf("initialize: %s", got)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return p
}

const pingOne, pingTwo = `{"jsonrpc":"2.0","id":11,"method":"ping"}`, `{"jsonrpc":"2.0","id":"12","method":"ping"}`

// TestStdioGoesOn sends input that ends the SDK's server or is never answered by it. The next
// request must be answered as usual.
func TestStdioGoesOn(t *testing.T) {
	long := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 5000) + `"}}`
	for _, tt := range []struct {
		name, version, line string
		want                []string // of the response; nil if there must be none
	}{
		{"RS-81 no JSON", "2025-11-25", `{bad`, []string{`"id":null`, "-32700"}},
		{"RS-81 two values on a line", "2025-11-25", pingOne + " " + pingTwo, []string{`"id":null`, "-32700"}},
		{"RS-81 no object", "2025-11-25", `"text"`, []string{"-32600"}},
		{"RS-81 another version of JSON-RPC", "2025-11-25", `{"jsonrpc":"1.0","id":3,"method":"ping"}`,
			[]string{`"id":3`, "-32600"}},
		{"RS-67 an id that is null", "2025-11-25", `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
			[]string{`"id":null`, "-32600"}},
		{"RS-81 a line that is too long", "2025-11-25", long, []string{`"id":null`, "-32700", "4096"}},
		{"RS-81 an empty line", "2025-11-25", " \r", nil},
		{"RS-81 an unknown method", "2025-11-25", `{"jsonrpc":"2.0","id":3,"method":"none"}`,
			[]string{`"id":3`, "-32601"}},
		{"RS-83 a batch in 2025-11-25", "2025-11-25", `[` + pingOne + `]`, []string{`"id":null`, "-32600"}},
		{"RS-83 a batch in 2024-11-05", "2024-11-05", `[` + pingOne + `]`, []string{`"id":null`, "-32600"}},
		{"RS-83 a batch in 2025-03-26", "2025-03-26", `[` + pingOne + `,` + pingTwo + `]`,
			[]string{`[{`, `"id":11`, `"id":"12"`}},
		{"RS-83 a batch with a notification", "2025-03-26",
			`[` + pingOne + `,{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]`,
			[]string{`[{`, `"id":11`}},
		{"RS-83 a batch of notifications", "2025-03-26",
			`[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]`,
			nil},
		{"RS-83 a batch with one id twice", "2025-03-26", `[` + pingOne + `,` + pingOne + `]`,
			[]string{`[{`, `"id":null`, "in use", `"id":11`}},
		{"RS-83 a batch that is wrong as a whole", "2025-03-26",
			`[{"jsonrpc":"2.0"},{"jsonrpc":"3","id":1,"method":"ping"}]`, []string{"-32600"}},
		{"RS-118 initialize in a batch", "2025-03-26", `[` + openOld + `]`, []string{"-32600"}},
		{"RS-119 an empty batch", "2025-03-26", `[]`, []string{"-32600"}},
		{"RS-86 an answer without a question", "2025-11-25", `{"jsonrpc":"2.0","id":77,"result":{}}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPipe(t, &StdioOptions{MaxLine: 4096}).open(tt.version)
			p.send(tt.line)
			if tt.want != nil {
				got := p.next()
				for _, want := range tt.want {
					if !strings.Contains(got, want) {
						t.Errorf("got %s, want %s", got, want)
					}
				}
				if !json.Valid([]byte(got)) {
					t.Errorf("no JSON: %s", got)
				}
			}
			p.send(`{"jsonrpc":"2.0","id":99,"method":"ping"}`)
			if got := p.next(); !strings.Contains(got, `"id":99`) || !strings.Contains(got, "result") {
				t.Errorf("then: got %s", got)
			}
		})
	}
}

func TestStdioCalls(t *testing.T) {
	wait := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{},"_meta":{"progressToken":"t"}}}`
	t.Run("RS-67 an id in use is refused, and its call goes on", func(t *testing.T) {
		p := newPipe(t, nil).open("2025-11-25")
		p.send(wait)
		p.send(wait)
		if got := p.next(); !strings.Contains(got, `"id":null`) || !strings.Contains(got, "in use") {
			t.Errorf("got %s", got)
		}
		p.send(pingOne)
		if got := p.next(); !strings.Contains(got, `"id":11`) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("RS-87 RS-75 nothing more is sent for a cancelled call, neither answer nor progress", func(t *testing.T) {
		p := newPipe(t, nil).open("2025-11-25")
		p.send(wait)
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		p.send(pingOne)
		if got := p.next(); !strings.Contains(got, `"id":11`) {
			t.Errorf("got %s", got)
		}
		p.send(strings.Replace(wait, "wait", "open", 1)) // its id is free again
		for got := p.next(); ; got = p.next() {
			if strings.Contains(got, "alice") {
				break
			}
			if !strings.Contains(got, "in use") {
				t.Fatalf("got %s", got)
			}
			p.send(strings.Replace(wait, "wait", "open", 1))
		}
	})
	t.Run("RS-85 requests of 2026-07-28 without initialize", func(t *testing.T) {
		p := newPipe(t, nil)
		p.send(modern("server/discover", ""))
		if got := p.next(); !strings.Contains(got, "supportedVersions") {
			t.Errorf("got %s", got)
		}
		p.send(modern("tools/call", `"name":"open","arguments":{}`))
		if got := p.next(); !strings.Contains(got, "alice mcp") || !strings.Contains(got, `"resultType":"complete"`) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("RS-70 RS-77 the revision is what the server answered, not what the client asked for", func(t *testing.T) {
		for _, asked := range []string{"9.9.9", "1.0.0", "2026-07-28"} {
			p := newPipe(t, nil)
			p.send(strings.Replace(openOld, "2024-11-05", asked, 1))
			if got := p.next(); !strings.Contains(got, `"protocolVersion":"2025-11-25"`) {
				t.Errorf("%s: got %s", asked, got)
			}
			p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"open","arguments":{"x":1}}}`)
			if got := p.next(); !strings.Contains(got, `"isError":true`) {
				t.Errorf("%s: got %s", asked, got)
			}
			p.send(`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"x://y"}}`)
			if got := p.next(); !strings.Contains(got, "-32002") {
				t.Errorf("%s: got %s", asked, got)
			}
		}
	})
	t.Run("RS-84 what was asked before the end of input is answered", func(t *testing.T) {
		for range 50 { // without the wait, most would be lost
			p := newPipe(t, nil)
			go func() {
				// a failure shows below
				_, _ = io.WriteString(p.in, openOld+"\n"+strings.Replace(callOld, "whoami", "open", 1)+"\n")
				p.in.Close()
			}()
			p.next()
			if got := p.next(); !strings.Contains(got, "alice mcp") {
				t.Fatalf("got %s", got)
			}
		}
	})
	t.Run("RS-84 it ends when its input does", func(t *testing.T) {
		p := newPipe(t, nil).open("2025-11-25")
		p.in.Close()
		select {
		case err := <-p.ended:
			p.ended <- err
			if err != nil {
				t.Errorf("got %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("it goes on")
		}
	})
}

func TestStdioCaller(t *testing.T) {
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"%","arguments":{}}}`
	t.Run("RS-80 RS-192 the scopes of the caller count", func(t *testing.T) {
		p := newPipe(t, nil).open("2025-11-25")
		p.send(strings.Replace(call, "%", "open", 1))
		if got := p.next(); !strings.Contains(got, "alice mcp") {
			t.Errorf("got %s", got)
		}
		p.send(strings.Replace(call, "%", "secret", 1))
		if got := p.next(); !strings.Contains(got, "insufficient_scope") || !strings.Contains(got, "deep") {
			t.Errorf("got %s", got)
		}
	})
	var good atomic.Bool
	good.Store(true)
	var r *rig
	r = newRigOf(t, func(c *mcpresource.Config) {
		c.Validator = mcpresource.ValidatorFunc(
			func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
				if c.Token != "the-token" || !good.Load() {
					return nil, mcpresource.ErrInvalidToken
				}
				return r.principal("alice", "mcp"), nil
			})
		c.Limits.Calls = mcpresource.Rate{PerSecond: 0.001, Burst: 5}
	}, nil)
	from := FromEnv(r.guard, "GOSDK_TEST_TOKEN")
	t.Run("RS-80 the credential comes from the environment, and does not stay there", func(t *testing.T) {
		t.Setenv("GOSDK_TEST_TOKEN", "the-token")
		p := newPipeTo(t, r, &StdioOptions{Caller: from}).open("2025-11-25")
		if _, still := os.LookupEnv("GOSDK_TEST_TOKEN"); still {
			t.Error("tools can read it")
		}
		p.send(strings.Replace(call, "%", "open", 1))
		if got := p.next(); !strings.Contains(got, "alice mcp") {
			t.Errorf("got %s", got)
		}
		good.Store(false) // revoked
		p.send(strings.Replace(call, "%", "open", 1))
		if got := p.next(); !strings.Contains(got, "invalid_token") {
			t.Errorf("RS-44: after revocation: got %s", got)
		}
		good.Store(true)
		for range 5 { // the guard's rate applies even without HTTP
			p.send(strings.Replace(call, "%", "open", 1))
			if got := p.next(); strings.Contains(got, "limited") {
				return
			}
		}
		t.Error("RS-189: no limit")
	})
	for name, token := range map[string]string{"RS-80 no token": "", "RS-80 a token that is not good": "another"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOSDK_TEST_TOKEN", token)
			err := RunStdio(t.Context(), r.adapter.server, &StdioOptions{
				Caller: from, Reader: io.NopCloser(strings.NewReader("")), Writer: io.Discard})
			if err == nil || token != "" && !errors.Is(err, mcpresource.ErrInvalidToken) ||
				!strings.Contains(err.Error(), "GOSDK_TEST_TOKEN") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("RS-80 without a caller nothing runs", func(t *testing.T) {
		p := newPipe(t,
			&StdioOptions{Caller: func(context.Context) (*mcpresource.Principal, error) { return nil, nil }})
		p.send(openOld)
		if got := p.next(); !strings.Contains(got, "invalid_token") {
			t.Errorf("got %s", got)
		}
	})
}

// TestStdout: RS-82 accidental output of a tool does not become a protocol message.
func TestStdout(t *testing.T) {
	in, out := os.Stdin, os.Stdout
	defer func() { os.Stdin, os.Stdout = in, out }()
	r, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdin = r
	c, err := newStdio(t.Context(), nil, StdioOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if os.Stdout != os.Stderr || c.out != out {
		t.Error("prints go where the protocol does")
	}
}

// TestStdioPromptArguments: over stdio only the adapter checks.
func TestStdioPromptArguments(t *testing.T) {
	r := newRigOf(t, func(c *mcpresource.Config) {
		c.Policy = &mcpresource.Rules{
			Base: []string{"mcp"},
			Refine: func(op mcpresource.Operation, need mcpresource.Requirement) mcpresource.Requirement {
				if args, err := op.Args("of"); err != nil || args["of"] == "board" {
					need.Deny = true
				}
				return need
			}}
	}, nil, func(s *mcp.Server) {
		s.AddPrompt(&mcp.Prompt{Name: "minutes", Arguments: []*mcp.PromptArgument{{Name: "of"}}},
			func(_ context.Context, q *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Description: "minutes of " + q.Params.Arguments["of"]}, nil
			})
	})
	p := newPipeTo(t, r, nil).open("2025-11-25")
	for of, want := range map[string]string{"team": "minutes of team", "board": "insufficient_scope"} {
		p.send(`{"jsonrpc":"2.0","id":5,"method":"prompts/get","params":{"name":"minutes","arguments":{"of":"` + of +
			`"}}}`)
		if got := p.next(); !strings.Contains(got, want) {
			t.Errorf("RS-43 RS-193 %s: got %s", of, got)
		}
	}
}
