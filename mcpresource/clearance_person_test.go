package mcpresource

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// approvers adds tokens whose claims require approvals: "careful" for two kinds of tools, and
// "garbled" in a form that cannot be read.
func approvers(c *Config) {
	byName := c.Validator
	c.Validator = ValidatorFunc(func(ctx context.Context, cr Credential) (*Principal, error) {
		claims := map[string]string{
			"careful": `{"approve_tools":["read","give","write_*"]}`, "garbled": `{"approve_tools":"read"}`,
		}[cr.Token]
		if claims == "" {
			return byName.Validate(ctx, cr)
		}
		cr.Token = "writer"
		p, err := byName.Validate(ctx, cr)
		if err != nil {
			return nil, err
		}
		own := *p
		own.Claims = json.RawMessage(claims)
		return &own, nil
	})
}

// TestPersonalClearance: the claim approve_tools makes one caller need an approval that others do
// not need.
func TestPersonalClearance(t *testing.T) {
	a := &asked{answers: []oauth.Clearance{waiting}}
	r, _ := clearanceRig(t, a, approvers)
	for _, tt := range []struct {
		name, token, body string
		by                string // "": no approval is requested
	}{
		{"another caller", "writer", tool("read"), ""},
		{"a tool by name", "careful", tool("read"), "person"},
		{"a tool by pattern", "careful", tool("write_x"), "person"},
		{"a tool that every caller needs approval for", "careful", tool("erase"), "person"},
		{"what the MCP server requires stays", "careful", tool("give"), "other"},
		{"a claim that cannot be read", "garbled", tool("write_x"), "person"},
		{"a list of tools", "careful", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, ""},
		{"another method with that name", "careful",
			`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"hello"}}`, ""},
	} {
		t.Run("RS-217 "+tt.name, func(t *testing.T) {
			a.demands, r.seen = nil, nil
			w := r.call(tt.token, tt.body)
			if tt.by == "" {
				if w.Code != http.StatusOK || len(r.seen) != 1 || len(a.demands) != 0 {
					t.Errorf("got %d %s, and %d demands", w.Code, w.Body, len(a.demands))
				}
				return
			}
			if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), clearanceURL) || len(r.seen) != 0 {
				t.Errorf("got %d %s, %d calls forwarded, want that it waits", w.Code, w.Body, len(r.seen))
			}
			if len(a.demands) != 1 || a.demands[0].By != tt.by {
				t.Errorf("asked %+v, want by %s", a.demands, tt.by)
			}
		})
	}
	t.Run("RS-217 an approved call proceeds", func(t *testing.T) {
		a.answers, r.seen = []oauth.Clearance{given}, nil
		if w := r.call("careful", tool("read")); w.Code != http.StatusOK || len(r.seen) != 1 {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
	t.Run("RS-217 two calls in one message", func(t *testing.T) {
		r.seen = nil
		w := r.call("careful", "["+tool("read")+","+tool("read")+"]")
		if w.Code == http.StatusOK || len(r.seen) != 0 {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
	t.Run("a denied tool stays denied", func(t *testing.T) {
		a.demands = nil
		if w := r.call("garbled", tool("danger1")); w.Code != http.StatusForbidden || len(a.demands) != 0 {
			t.Errorf("got %d %s, and %d demands", w.Code, w.Body, len(a.demands))
		}
	})
}

// TestPersonalClearanceUnavailable: a guard that cannot request approvals refuses the call.
func TestPersonalClearanceUnavailable(t *testing.T) {
	r := newRig(t, approvers)
	if w := r.call("careful", tool("read")); w.Code != http.StatusServiceUnavailable || len(r.seen) != 0 {
		t.Errorf("RS-217: got %d %s", w.Code, w.Body)
	}
}

// TestPersonalClearanceOfAdapters: Authorize and Recheck require the same approval, and do so for a
// method that needs no token.
func TestPersonalClearanceOfAdapters(t *testing.T) {
	r, _ := clearanceRig(t, &asked{answers: []oauth.Clearance{given}}, func(c *Config) {
		approvers(c)
		rules := c.Policy.(*Rules)
		rules.Public = append(rules.Public, "tools/call")
	})
	p, err := r.c.Validator.Validate(t.Context(), Credential{Scheme: "Bearer", Token: "careful"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := NewContext(t.Context(), p)
	op := Operation{Method: "tools/call", Name: "read"}
	for name, check := range map[string]func() error{
		"Authorize": func() error { return r.Authorize(ctx, op) },
		"Recheck":   func() error { return r.Recheck(ctx, op) },
	} {
		var needs *ClearanceError
		if err := check(); !errors.As(err, &needs) || needs.Required.By != oauth.ClearanceByPerson {
			t.Errorf("RS-217: %s: got %v, want a ClearanceError", name, err)
		}
	}
	if err := r.Authorize(Begun(ctx), op); err != nil {
		t.Errorf("work that has begun: %v", err)
	}
	if err := r.Authorize(ctx, Operation{Method: "tools/call", Name: "other"}); err != nil {
		t.Errorf("another tool: %v", err)
	}
	if w := r.call("careful", tool("read")); w.Code != http.StatusOK {
		t.Errorf("a cleared call: got %d %s", w.Code, w.Body)
	}
	// Recheck uses the token's current claims.
	token.Attach(p, &caller{at: r.own, validator: ValidatorFunc(func(context.Context, Credential) (*Principal, error) {
		now := *p
		now.Claims = json.RawMessage(`{"approve_tools":["other"]}`)
		return &now, nil
	})})
	if err := r.Recheck(ctx, op); err != nil {
		t.Errorf("a tool that needs no approval any more: %v", err)
	}
	var needs *ClearanceError
	if err := r.Recheck(ctx, Operation{Method: "tools/call", Name: "other"}); !errors.As(err, &needs) {
		t.Errorf("RS-217: a tool that needs approval now: got %v, want a ClearanceError", err)
	}
}

// TestApproveToolsClaim: each kind of validator reads the claim, and a claim in another form counts
// as every tool.
func TestApproveToolsClaim(t *testing.T) {
	s := newSignerServer(t)
	jwt, err := NewJWTValidator(JWTConfig{Issuer: s.URL, HTTPClient: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	for claim, want := range map[string][]string{
		`["pay","delete_*"]`: {"pay", "delete_*"},
		`[]`:                 {},
		`null`:               {"*"},
		`"pay"`:              {"*"},
		`[1]`:                {"*"},
		`["pay",null]`:       {"*"},
		`{"pay":true}`:       {"*"},
	} {
		signed := s.token(t, "ES256", nil, s.claims("approve_tools", rawJSON(claim)))
		p, err := jwt.Validate(t.Context(), Credential{Token: signed})
		if err != nil || !slices.Equal(token.Approvals(p), want) {
			t.Errorf("a token with %s: got %v, want %q", claim, err, want)
		}
		s.answer = func(string) string { return active(`,"approve_tools":` + claim) }
		p, err = newIntrospector(t, s).Validate(t.Context(), Credential{Token: "opaque"})
		if err != nil || !slices.Equal(token.Approvals(p), want) {
			t.Errorf("an introspection with %s: got %v, want %q", claim, err, want)
		}
		own := &Principal{Claims: json.RawMessage(`{"approve_tools":` + claim + `}`)}
		if got := token.Approvals(own); !slices.Equal(got, want) {
			t.Errorf("claims with %s: got %q, want %q", claim, got, want)
		}
	}
	p, err := Local(approving{}).Validate(t.Context(), Credential{Token: "any"})
	if err != nil || !slices.Equal(token.Approvals(p), []string{"pay"}) {
		t.Errorf("in this process: got %v", err)
	}
}

// approving introspects a token whose user must approve payments.
type approving struct{}

func (approving) Introspect(context.Context, string) (oauth.Introspection, error) {
	return oauth.Introspection{Active: true, ApproveTools: []string{"pay"}}, nil
}
