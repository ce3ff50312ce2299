package gosdk

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var (
	reading  = Scope{Name: "read", Description: "read it"}
	writing  = Scope{Name: "write", Description: "write it", Implies: []string{"append"}}
	appendix = Scope{Name: "append", Description: "append to it", First: true}
)

func newTools(defaults ...Scope) *Tools {
	return NewTools(mcp.NewServer(&mcp.Implementation{Name: "test", Title: "A test", Version: "1"}, nil), defaults...)
}

// newRigOfTools returns a rig that serves tools with the rules from their declarations.
func newRigOfTools(t *testing.T, tools *Tools, adjust func(*mcpresource.Config)) *rig {
	t.Helper()
	r := &rig{}
	mux := http.NewServeMux()
	r.Server = httptest.NewServer(mux)
	t.Cleanup(r.Close)
	c := mcpresource.Config{
		Resource: r.URL + "/mcp", AuthorizationServers: []string{issuer},
		Validator: mcpresource.ValidatorFunc(
			func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
				parts := strings.Split(c.Token, "-")
				return r.principal(parts[0], parts[1:]...), nil
			}),
	}
	if err := tools.Configure(&c); err != nil {
		t.Fatal(err)
	}
	adjust(&c)
	var err error
	if r.guard, err = mcpresource.New(c); err != nil {
		t.Fatal(err)
	}
	r.adapter = New(r.guard, tools.Server(), &Options{ShowAll: true})
	r.guard.Register(mux, r.adapter.HTTP())
	return r
}

// status returns the response to a tool call.
func (r *rig) status(t *testing.T, token, tool string) (int, string) {
	t.Helper()
	session := r.initialize(t, "alice-read-write-append-wipe")
	status, answer, _ := r.post(t, token, "2025-11-25", session,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, tool))
	return status, answer
}

// RS-28 RS-32 RS-43: the rules come from the declarations of the tools.
func TestDeclaredScopes(t *testing.T) {
	tools := newTools(reading)
	AddTool(tools, &mcp.Tool{Name: "list"}, okTyped)
	AddTool(tools, &mcp.Tool{Name: "write"}, okTyped, writing)
	AddTool(tools, &mcp.Tool{Name: "append"}, okTyped, appendix)
	mcp.AddTool(tools.Server(), &mcp.Tool{Name: "plain"}, okTyped)
	r := newRigOfTools(t, tools, func(*mcpresource.Config) {})
	for token, may := range map[string][]string{
		"alice":                   {},
		"alice-write":             {}, // lacks the default scope
		"alice-read":              {"list", "plain"},
		"alice-read-append":       {"list", "plain", "append"},
		"alice-read-write":        {"list", "plain", "append", "write"}, // write implies append
		"alice-read-append-write": {"list", "plain", "append", "write"},
	} {
		for _, tool := range []string{"list", "plain", "append", "write"} {
			want := http.StatusForbidden
			if slices.Contains(may, tool) {
				want = http.StatusOK
			}
			if got, answer := r.status(t, token, tool); got != want {
				t.Errorf("%s calls %s: got %d %s, want %d", token, tool, got, answer, want)
			}
		}
	}
	t.Run("RS-01 clients are told what to ask for first", func(t *testing.T) {
		resp, err := http.Get(r.guard.MetadataURL())
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		document, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(document), `"scopes_supported":["read","append"]`) {
			t.Errorf("got %s, %v", document, err)
		}
	})
}

// Tools can be added while the server runs.
func TestLaterTools(t *testing.T) {
	tools := newTools(reading)
	AddTool(tools, &mcp.Tool{Name: "early"}, okTyped)
	if err := tools.Declare(writing, appendix); err != nil {
		t.Fatal(err)
	}
	r := newRigOfTools(t, tools, func(c *mcpresource.Config) {
		c.Policy.(*mcpresource.Rules).Public = []string{"tools/call"} // it still requires a token
	})
	expect := func(token, tool string, want int) {
		t.Helper()
		if got, answer := r.status(t, token, tool); got != want {
			t.Errorf("%s calls %s: got %d %s, want %d", token, tool, got, answer, want)
		}
	}
	AddTool(tools, &mcp.Tool{Name: "late"}, okTyped, appendix)
	expect("alice-read", "late", http.StatusForbidden)
	expect("alice-append", "late", http.StatusForbidden)
	expect("alice-read-append", "late", http.StatusOK)

	t.Run("the scopes of a name only grow", func(t *testing.T) {
		tools.Server().RemoveTools("late")
		AddTool(tools, &mcp.Tool{Name: "late"}, okTyped, writing)
		expect("alice-read-append", "late", http.StatusForbidden)
		expect("alice-read-write", "late", http.StatusOK) // write implies append
		AddTool(tools, &mcp.Tool{Name: "late"}, okTyped, appendix)
		expect("alice-read-append", "late", http.StatusForbidden) // write is still required
		mcp.AddTool(tools.Server(), &mcp.Tool{Name: "late"}, okTyped)
		expect("alice-read-append", "late", http.StatusForbidden)
	})
	t.Run("a new scope is refused, and its tool is not there", func(t *testing.T) {
		wipe := Scope{Name: "wipe", Description: "delete it"}
		refused(t, `tool "wipe": the scope "wipe" is new, and the server runs: call Declare with it before`,
			func() { AddTool(tools, &mcp.Tool{Name: "wipe"}, okTyped, wipe) })
		if _, answer := r.status(t, "alice-read-wipe", "wipe"); !strings.Contains(answer, "unknown tool") {
			t.Errorf("got %s", answer)
		}
		if err := tools.Declare(wipe); err == nil {
			t.Error("Declare takes it")
		}
		if err := tools.Declare(Scope{Name: "write"}, writing); err != nil {
			t.Errorf("a known one: %v", err)
		}
	})
}

// refused expects a panic whose message contains want.
func refused(t *testing.T, want string, do func()) {
	t.Helper()
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("got %s; want a line with %s", got, want)
		}
	}()
	do()
}

func TestWrongDeclarations(t *testing.T) {
	for want, scopes := range map[string][]Scope{
		`"two words" is not a scope`: {{Name: "two words"}},
		`"" is not a scope`:          {{Description: "nothing"}},
		`the scope offline_access belongs to the authorization server`: {{Name: "offline_access"}},
		`the scope clearance:1 belongs to the authorization server`:    {{Name: "clearance:1"}},
		`its Access "all" is not read, write or admin`:                 {{Name: "x", Access: "all"}},
		`the scope "read" is declared in two ways, as "read it" and as "read all": declare it once`: {
			{Name: "read", Description: "read all"},
		},
	} {
		tools := newTools(reading)
		var needs []Need
		for _, s := range scopes {
			needs = append(needs, s)
		}
		refused(t, want, func() { AddTool(tools, &mcp.Tool{Name: "t"}, okTyped, needs...) })
		if err := tools.Declare(scopes...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Declare: got %v, want %s", err, want)
		}
		if got := tools.Scopes(); len(got) != 1 {
			t.Errorf("got the scopes %v", got)
		}
	}
	refused(t, `the default scope "wipe" is dangerous`, func() { newTools(Scope{Name: "wipe", Dangerous: true}) })
	refused(t, `tool "a*": its name must not`, func() { AddTool(newTools(), &mcp.Tool{Name: "a*"}, okTyped, reading) })

	tools := newTools(writing)
	if err := tools.Configure(&mcpresource.Config{}); err == nil ||
		!strings.Contains(err.Error(), `the scope "write" implies "append", which is not declared`) {
		t.Errorf("got %v", err)
	}
	t.Run("a scope may be named before it is described", func(t *testing.T) {
		tools := newTools(Scope{Name: "write"})
		AddTool(tools, &mcp.Tool{Name: "t"}, okTyped, writing, appendix)
		if got := tools.Scopes(); len(got) != 2 || got[0].Description != writing.Description ||
			!tools.Default("write") {
			t.Errorf("got %+v", got)
		}
	})
}

func TestImplementation(t *testing.T) {
	initialized := false
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Title: "A test", Version: "1"},
		&mcp.ServerOptions{InitializedHandler: func(context.Context, *mcp.InitializedRequest) { initialized = true }})
	if got := NewTools(s).Implementation(t.Context()); got.Title != "A test" || got.Name != "test" || initialized {
		t.Errorf("got %+v, initialized: %v", got, initialized)
	}
	for range s.Sessions() {
		t.Error("the session is still there")
	}
	s.AddReceivingMiddleware(func(mcp.MethodHandler) mcp.MethodHandler {
		return func(context.Context, string, mcp.Request) (mcp.Result, error) { return nil, fmt.Errorf("not now") }
	})
	if got := NewTools(s).Implementation(t.Context()); got.Name != "" {
		t.Errorf("got %+v of a server that does not say", got)
	}
}

// TestDeclaredClearance: RS-217. An approval is declared with the tool, before and after the start.
func TestDeclaredClearance(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	tools := NewTools(s, Scope{Name: "mcp", Description: "use it"})
	AddTool(tools, &mcp.Tool{Name: "erase"}, okTyped, Clearance{})
	AddTool(tools, &mcp.Tool{Name: "read"}, okTyped)
	var c mcpresource.Config
	if err := tools.Configure(&c); err != nil {
		t.Fatal(err)
	}
	AddTool(tools, &mcp.Tool{Name: "late"}, okTyped, Clearance{By: oauth.ClearanceByOther})
	rules := c.Policy.(*mcpresource.Rules)
	for tool, want := range map[string]string{"erase": "person", "late": "other", "read": ""} {
		got := rules.Require(mcpresource.Operation{Method: "tools/call", Name: tool})
		if got.Clearance.By != want || !oauth.Scopes(got.Scopes).Has("mcp") {
			t.Errorf("RS-217 %s: needs %+v", tool, got)
		}
	}
}
