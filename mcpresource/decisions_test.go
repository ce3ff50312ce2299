package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// noted is a Decisions that returns the same reference for every refusal.
type noted struct {
	reference string
	refused   []oauth.Decision
	passed    []oauth.Decision
}

func (n *noted) Refused(_ *http.Request, d oauth.Decision) string {
	n.refused = append(n.refused, d)
	return n.reference
}

func (n *noted) LetThrough(_ context.Context, d oauth.Decision) { n.passed = append(n.passed, d) }

// TestHostileReference: OB-02. A value that is not a plain reference is not used anywhere.
func TestHostileReference(t *testing.T) {
	for _, reference := range []string{"", "a b", "a\"b", "a\r\nSet-Cookie: b", strings.Repeat("A", 65), "é"} {
		n := &noted{reference: reference}
		r := newRig(t, func(c *Config) { c.Decisions = n })
		answer := r.call("nonsense", tool("read"))
		if len(n.refused) != 1 || answer.Code != 401 || answer.Header().Get(headerReference) != "" ||
			strings.Contains(answer.Body.String(), "eference") {
			t.Errorf("OB-02: %q: got %d %v %s", reference, answer.Code, answer.Header(), answer.Body)
		}
	}
}

// TestRefused: OB-02. A reported refusal contains all that the operator needs. It contains no
// token, no argument, and no error of the embedding program's Check.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name, token string
		body        string
		status      int
		want        oauth.Decision
	}{
		{
			"no token", "", tool("read"), 401,
			oauth.Decision{Outcome: "unauthenticated", Scope: "mcp", Method: "tools/call", Name: "read"},
		},
		{
			"another server's token", "other-audience", tool("read"), 401,
			oauth.Decision{Outcome: "invalid_token", Error: oauth.InvalidToken, Scheme: "Bearer", Scope: "mcp"},
		},
		{
			"less scope", "alice", tool("write_note"), 403,
			oauth.Decision{
				Outcome: "insufficient_scope", Error: oauth.InsufficientScope, Scheme: "Bearer",
				Scope: "mcp files:write", Method: "tools/call", Name: "write_note",
				Issuer: "https://auth.example.com", ClientID: "app", Subject: "alice",
			},
		},
		{
			"an object of another person", "alice", tool("read"), 403,
			oauth.Decision{
				Outcome: "forbidden", Scheme: "Bearer", Method: "tools/call", Name: "read",
				Issuer: "https://auth.example.com", ClientID: "app", Subject: "alice",
			},
		},
	} {
		t.Run("OB-02 "+tt.name, func(t *testing.T) {
			n := &noted{reference: "K7PX2M4Q"}
			r := newRig(t, func(c *Config) {
				c.Decisions = n
				c.Check = func(context.Context, *Principal, Operation) error { return errors.New("the note of Bob") }
			})
			var header []string
			if tt.token != "" {
				header = []string{"Authorization", "Bearer " + tt.token}
			}
			answer := r.do(http.MethodPost, "/mcp", tt.body, append(header, "Content-Type", "application/json")...)
			if answer.Code != tt.status || answer.Header().Get(headerReference) != "K7PX2M4Q" ||
				!strings.Contains(answer.Body.String(), `Reference: K7PX2M4Q.`) || len(n.refused) != 1 {
				t.Fatalf("got %d %v %s, and %+v", answer.Code, answer.Header(), answer.Body, n.refused)
			}
			// clients compare it with the previous challenge, and stop
			if c := answer.Header().Get("WWW-Authenticate"); strings.Contains(c, "K7PX2M4Q") {
				t.Errorf("the challenge is %q", c)
			}
			got := n.refused[0]
			if strings.Contains(got.Reason, "Bob") || got.At.IsZero() || got.Status != tt.status {
				t.Errorf("got %+v", got)
			}
			got.At, got.Status, got.Reason, got.Description = tt.want.At, 0, "", ""
			tt.want.Resource, tt.want.HTTPMethod = resource, "POST"
			if got != tt.want {
				t.Errorf("got  %+v,\nwant %+v", got, tt.want)
			}
			if e := r.events[len(r.events)-1]; e.Reference != "K7PX2M4Q" {
				t.Errorf("the audit has the reference %q", e.Reference)
			}
		})
	}
	n := &noted{reference: "K7PX2M4Q"}
	r := newRig(t, func(c *Config) { c.Decisions = n })
	if answer := r.call("outage", tool("read")); answer.Code != 503 || len(n.refused) != 0 {
		t.Errorf("OB-02: an outage must not be a refusal: got %d, %+v", answer.Code, n.refused)
	}
}

// TestLetThrough: OB-01. For a grant in use all day, only its first request and first tool call are
// reported, whatever its tokens, and again after an hour.
func TestLetThrough(t *testing.T) {
	n := &noted{}
	var r *rig
	r = newRig(t, func(c *Config) {
		c.Decisions = n
		c.Validator = ValidatorFunc(func(_ context.Context, c Credential) (*Principal, error) {
			p := people(r.now)["alice"]
			p.TokenID, p.Claims = c.Token, []byte(`{"gid":"grt_1"}`)
			return p, nil
		})
	})
	for i := range 10 {
		r.call(fmt.Sprint("token", i/3), strings.Replace(tool("read"), "tools/call", "tools/list", 1))
	}
	for range 10 {
		r.call("token9", tool("read"))
	}
	if len(n.passed) != 2 || n.passed[0].Method != "tools/list" || n.passed[1].Name != "read" ||
		n.passed[1].GrantID != "grt_1" || n.passed[1].Outcome != string(OutcomeAllowed) {
		t.Errorf("OB-01: got %+v", n.passed)
	}
	r.now = r.now.Add(passedFor)
	if r.call("token9", tool("read")); len(n.passed) != 3 {
		t.Errorf("OB-01: got %d after an hour, want 3", len(n.passed))
	}
}
