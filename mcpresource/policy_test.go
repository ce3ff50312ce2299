package mcpresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func arguments(name, args string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + name + `","arguments":` + args + `}}`
}

// TestReason: RS-219. A denied caller gets the policy's reason, and a caller without a token does
// not.
func TestReason(t *testing.T) {
	const why = "The description of this tool has changed since it was accepted."
	r := newRig(t, func(c *Config) {
		c.Policy = &Rules{Refine: func(op Operation, need Requirement) Requirement {
			need.Deny, need.Reason = op.Name == "held" || op.Name == "denied", ""
			if op.Name == "held" {
				need.Reason = why
			}
			return need
		}}
	})
	for name, want := range map[string]string{"held": why, "denied": "This operation is not permitted."} {
		w := r.call("alice", tool(name))
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), want) {
			t.Errorf("RS-219 %s: got %d %s, want %q", name, w.Code, w.Body, want)
		}
		if w := r.do(http.MethodPost, "/mcp", tool(name)); w.Code != 401 || strings.Contains(w.Body.String(), want) {
			t.Errorf("RS-219 %s without a token: got %d %s", name, w.Code, w.Body)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Run("RS-43 RS-192 a policy sees what the call is about", func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Policy.(*Rules).Refine = func(op Operation, need Requirement) Requirement {
				args, err := op.Args("path")
				if path, _ := args["path"].(string); err != nil || strings.HasPrefix(path, "/etc/") {
					return Requirement{Deny: true}
				}
				return need
			}
		})
		for body, want := range map[string]int{
			arguments("read", `{"path":"/home/a"}`):                    200,
			arguments("read", `{"path":"/etc/passwd"}`):                403,
			arguments("read", `{"path":"/\u0065tc/passwd"}`):           403,
			arguments("read", `{"path":"/home","path":"/etc/passwd"}`): 403,
			arguments("read", `{"path":"/home","Path":"/etc/passwd"}`): 403,
			arguments("read", `["/etc/passwd"]`):                       403,
			arguments("write_file", `{"path":"/home/a"}`):              403, // the tables take precedence
			tool("read"): 200,
		} {
			if w := r.call("alice", body); w.Code != want {
				t.Errorf("%s: got %d, want %d", body, w.Code, want)
			}
		}
	})
	t.Run("RS-103 refused: a key that a policy knows in two cases", func(t *testing.T) {
		if got, err := (Operation{Arguments: json.RawMessage(`{"Path":"x"}`)}).Args("Path", "path"); !errors.Is(err,
			ErrAmbiguousBody) {
			t.Errorf("got %v, %v, want %v", got, err, ErrAmbiguousBody)
		}
	})
	for name, args := range map[string]string{
		"a key twice, further in":   `{"a":{"b":1,"b":2}}`,
		"a key twice in an array":   `{"a":[{"b":1,"b":2}]}`,
		"a known key in other case": `{"PATH":"x"}`,
		"the long s":                `{"u\u017fer":"x"}`,
		"more than can be meant":    `{"a":[` + strings.Repeat("0,", 10_000) + `0]}`,
		"nesting without end":       `{"a":` + strings.Repeat("[", 10_000),
		"a string":                  `"path"`,
		"something after it":        `{} {}`,
		"no JSON":                   `{"a":`,
	} {
		t.Run("RS-103 RS-196 refused: "+name, func(t *testing.T) {
			if got, err := (Operation{Arguments: json.RawMessage(args)}).Args("path", "user"); !errors.Is(err,
				ErrAmbiguousBody) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	t.Run("RS-192 values are what was sent", func(t *testing.T) {
		got, err := Operation{
			Arguments: json.RawMessage(
				`{"n":12345678901234567890,"l":[1,"a",null,true,{}],"o":{"Path":1,"PATH":2}}`)}.Args("path")
		if s := fmt.Sprint(got); err != nil ||
			s != "map[l:[1 a <nil> true map[]] n:12345678901234567890 o:map[PATH:2 Path:1]]" {
			t.Errorf("got %s, %v", s, err)
		}
	})
}

func TestStepUp(t *testing.T) {
	for _, tt := range []struct {
		name, version string
		strategy      StepUp
		want          string
	}{
		{"RS-30 an older client keeps what it has", "2025-11-25", StepUpByRevision, "mcp logs:write files:write"},
		{"RS-30 a client that says nothing is an older one", "", StepUpByRevision, "mcp logs:write files:write"},
		{"RS-30 a newer one adds to it", "2026-07-28", StepUpByRevision, "mcp logs:write"},
		{"RS-31 operation only, for every client", "2025-11-25", StepUpOperation, "mcp logs:write"},
		{"RS-31 with the granted ones, for every client", "2026-07-28", StepUpGranted, "mcp logs:write files:write"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.StepUp = tt.strategy })
			want := `scope="` + tt.want + `"`
			for range 3 {
				w := r.call("writer", tool("write_logs"), "Mcp-Protocol-Version", tt.version)
				if w.Code != 403 || !strings.Contains(w.Header().Get("WWW-Authenticate"), want) {
					t.Errorf("got %d %s, want %s", w.Code, w.Header().Get("WWW-Authenticate"), want)
				}
			}
		})
	}
	t.Run("RS-17 RS-21 the first challenge names what it is told, and never offline_access", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.FirstScopes = []string{"mcp", "files:read", "offline_access"} })
		if w := r.do("POST", "/mcp", tool("read")); !strings.Contains(w.Header().Get("WWW-Authenticate"),
			`scope="mcp files:read"`) {
			t.Errorf("got %s", w.Header().Get("WWW-Authenticate"))
		}
		if w := r.do("GET", "/.well-known/oauth-protected-resource/mcp", ""); !strings.Contains(w.Body.String(),
			`"scopes_supported":["mcp","files:read"]`) {
			t.Errorf("RS-08: got %s", w.Body)
		}
	})
}

func TestObjects(t *testing.T) {
	mine := func(_ context.Context, p *Principal, op Operation) error {
		args, err := op.Args("owner")
		switch {
		case err != nil:
			return err
		case args["owner"] == "nobody-knows":
			return fmt.Errorf("%w: database at 10.0.0.7 is gone", ErrUnavailable)
		case op.Method == "tools/call" && args["owner"] != p.Subject:
			return errors.New("belongs to somebody else, in table notes")
		}
		return nil
	}
	r := newRig(t, func(c *Config) { c.Check = mine })
	for _, tt := range []struct {
		name, body string
		want       int
	}{
		{"RS-36 one's own", arguments("read", `{"owner":"alice"}`), 200},
		{"RS-36 right scope, foreign object", arguments("read", `{"owner":"bob"}`), 403},
		{"RS-36 one of a batch",
			"[" + arguments("read", `{"owner":"alice"}`) + "," + arguments("read", `{"owner":"bob"}`) + "]", 403},
		{"RS-36 it is unknown", arguments("read", `{"owner":"nobody-knows"}`), 503},
		{"RS-36 a public method has no caller", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(r.seen)
			w := r.call("alice", tt.body)
			if w.Code != tt.want || len(r.seen) > before != (tt.want == 200) {
				t.Errorf("got %d", w.Code)
			}
			if w.Header().Get("WWW-Authenticate") != "" || strings.Contains(w.Body.String(), "notes") ||
				strings.Contains(w.Body.String(), "10.0.0.7") {
				t.Errorf("it says %v %s", w.Header(), w.Body)
			}
		})
	}
	t.Run("RS-36 RS-56 adapters ask the same; lists go by scope alone", func(t *testing.T) {
		ctx := NewContext(t.Context(), people(r.now)["alice"])
		foreign := Operation{Method: "tools/call", Name: "read", Arguments: json.RawMessage(`{"owner":"bob"}`)}
		if err := r.Authorize(ctx, foreign); !errors.Is(err, ErrForbidden) {
			t.Errorf("got %v", err)
		}
		foreign.Arguments = json.RawMessage(`{"owner":"nobody-knows"}`)
		if err := r.Authorize(ctx, foreign); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrForbidden) {
			t.Errorf("got %v", err)
		}
		if !r.Covers(ctx, Operation{Method: "tools/call", Name: "read"}) ||
			r.Covers(ctx, Operation{Method: "tools/call", Name: "write_file"}) {
			t.Error("a list would show something else")
		}
	})
}

// TestRecheck: a task continues after its request, and is checked again before it acts.
func TestRecheck(t *testing.T) {
	read := Operation{Method: "tools/call", Name: "read"}
	revoked, outage := false, false
	r := newRig(t, func(c *Config) {
		validator := c.Validator
		c.Validator = ValidatorFunc(func(ctx context.Context, cred Credential) (*Principal, error) {
			switch {
			case revoked:
				return nil, ErrInvalidToken
			case outage:
				return nil, errors.New("dial tcp: refused")
			}
			return validator.Validate(ctx, cred)
		})
	})
	var task context.Context
	r.next = func(_ http.ResponseWriter, req *http.Request) { task = context.WithoutCancel(req.Context()) }
	if r.call("alice", tool("read")); task == nil {
		t.Fatal("not handled")
	}
	for _, tt := range []struct {
		name   string
		change func()
		op     Operation
		want   error
	}{
		{"RS-38 all is as it was", func() {}, read, nil},
		{"RS-43 another operation has its own scopes", func() {}, Operation{Method: "tools/call", Name: "write_file"},
			&ScopeError{}},
		{"RS-44 it has been revoked", func() { revoked = true }, read, ErrInvalidToken},
		{"RS-44 the status is unknown", func() { revoked, outage = false, true }, read, ErrUnavailable},
		{"RS-41 it has expired", func() { outage = false; r.now = r.now.Add(2 * 3600e9) }, read, ErrInvalidToken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.change()
			err := r.Recheck(task, tt.op)
			var scope *ScopeError
			if errors.As(tt.want, &scope) {
				if !errors.As(err, &scope) {
					t.Errorf("got %v", err)
				}
			} else if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	if err := r.Recheck(t.Context(), read); !errors.Is(err, ErrNoCaller) {
		t.Errorf("without a caller: got %v", err)
	}
}

func TestRulesForResources(t *testing.T) {
	for _, key := range []string{"notes://delete/**", "notes://*/delete", "*://secret"} {
		t.Run("a key that would never match is refused: "+key, func(t *testing.T) {
			for _, rules := range []*Rules{
				{Resources: map[string][]string{key: {"admin"}}}, {DenyResources: []string{key}},
			} {
				_, err := New(Config{Resource: resource, AuthorizationServers: []string{authServer}, Policy: rules,
					Validator: ValidatorFunc(func(context.Context, Credential) (*Principal, error) {
						return nil, ErrInvalidToken
					})})
				if err == nil || !strings.Contains(err.Error(), key) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}
