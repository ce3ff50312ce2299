package mcpresource

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"net/http"
)

// introspecting is an authorization server in this process.
type introspecting struct{ Clearances }

func (introspecting) Introspect(context.Context, string) (oauth.Introspection, error) {
	return oauth.Introspection{}, nil
}

type silent struct{}

func (silent) Introspect(context.Context, string) (oauth.Introspection, error) {
	return oauth.Introspection{}, nil
}

// TestClearanceConfig: rules that cannot be satisfied are rejected at the start, and fail closed
// later.
func TestClearanceConfig(t *testing.T) {
	config := func(c Clearance, v Validator) Config {
		return Config{
			Resource: resource, AuthorizationServers: []string{authServer}, Validator: v,
			Policy: &Rules{Clearances: map[string]Clearance{"erase": c}},
		}
	}
	a := &asked{}
	for _, tt := range []struct {
		c    Clearance
		want string
	}{
		{Clearance{}, `Clearances: "erase": set By to person or other, not ""`},
		{Clearance{By: "me"}, `not "me"`},
		{Clearance{By: "person", Approvers: []string{"olga"}}, "set By to other, or leave Approvers out"},
		{Clearance{By: "other", Approvers: []string{""}}, "the empty name"},
		{Clearance{By: "person", Authentication: Authentication{MaxAge: time.Millisecond}}, "in whole seconds"},
		{Clearance{By: "person", Authentication: Authentication{MaxAge: -time.Second}}, "in whole seconds"},
	} {
		if _, err := New(config(tt.c, Local(introspecting{a}))); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("RS-217 %+v: got %v", tt.c, err)
		}
	}
	good := Clearance{By: "other", Approvers: []string{"olga"}, Authentication: Authentication{MaxAge: time.Minute}}
	if _, err := New(config(good, Local(introspecting{a}))); err != nil {
		t.Errorf("an authorization server that asks people: %v", err)
	}
	if _, err := New(config(good, Local(silent{}))); err == nil ||
		!strings.Contains(err.Error(), "need Config.Clearances") {
		t.Errorf("RS-217 nobody to ask: %v", err)
	}
	r, _ := clearanceRig(t, a, func(c *Config) {
		rules := c.Policy
		c.Policy, c.Clearances = policyFunc(rules.Require), nil
	})
	if w := r.call("writer", tool("erase")); w.Code != 503 || len(r.seen) != 0 {
		t.Errorf("RS-217: a policy that nobody could meet: %d %s", w.Code, w.Body)
	}
}

type policyFunc func(Operation) Requirement

func (f policyFunc) Require(op Operation) Requirement { return f(op) }

// TestClearanceRefine: Refine can require approval depending on the arguments. Only tool calls can
// be approved.
func TestClearanceRefine(t *testing.T) {
	a := &asked{answers: []oauth.Clearance{given}}
	r, _ := clearanceRig(t, a, func(c *Config) {
		c.Policy.(*Rules).Refine = func(op Operation, need Requirement) Requirement {
			if op.Name == "hello" || op.Name == "read" {
				need.Clearance, need.Public = Clearance{By: oauth.ClearanceByPerson}, true
			}
			return need
		}
	})
	if w := r.call("alice", tool("read")); w.Code != 200 || len(a.demands) != 1 {
		t.Errorf("RS-217: %d %s", w.Code, w.Body)
	}
	if w := r.do(http.MethodPost, "/mcp", tool("read")); w.Code != 401 {
		t.Errorf("RS-217: without a token: %d %s", w.Code, w.Body)
	}
	w := r.call("alice", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"hello"}}`)
	if w.Code != 403 || len(a.demands) != 1 {
		t.Errorf("RS-217: a prompt: %d %s", w.Code, w.Body)
	}
}
