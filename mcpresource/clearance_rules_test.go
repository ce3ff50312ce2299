package mcpresource

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestClearanceRules checks which approval a call needs according to the tables.
func TestClearanceRules(t *testing.T) {
	other := func(who ...string) Clearance { return Clearance{By: oauth.ClearanceByOther, Approvers: who} }
	person := Clearance{By: oauth.ClearanceByPerson}
	large := func(op Operation) bool {
		args, err := op.Args("amount")
		n, _ := args["amount"].(json.Number)
		f, _ := n.Float64()
		return err != nil || f > 100
	}
	r := &Rules{
		Base: []string{"mcp"}, Public: []string{"tools/call"}, Tools: map[string][]string{"drop_all": {"admin"}},
		Clearances: map[string]Clearance{
			"drop_*": person, "drop_table": other("olga"), "free": {By: oauth.ClearanceByPerson, When: large},
			"a*": other("olga", "otto"), "*b": other("otto", "oleg"), "c*": person, "*d": other(),
			"e*": other("olga"), "*f": other("otto"),
			"g*": {By: oauth.ClearanceByPerson, When: large}, "*h": other("olga"),
		},
	}
	for _, tt := range []struct {
		tool, args string
		want       Clearance
		public     bool
		deny       bool
	}{
		{tool: "list", public: true},
		{tool: "drop_all", want: person},
		{tool: "drop_table", want: other("olga")},
		{tool: "ab", want: other("otto")},
		{tool: "cd", want: other()},
		{tool: "ef", deny: true, want: Clearance{By: oauth.ClearanceByOther}},
		{tool: "gh", args: `{"amount":1}`, want: other("olga")},
		{tool: "gh", args: `{"amount":101}`, want: other("olga")},
		{tool: "free", args: `{"amount":100}`, public: true},
		{tool: "free", args: `{"amount":100.5}`, want: person},
		{tool: "free", args: `{"amount":1,"Amount":1000}`, want: person},
	} {
		got := r.Require(Operation{Method: "tools/call", Name: tt.tool, Arguments: json.RawMessage(tt.args)})
		got.Clearance.When = nil
		if !reflect.DeepEqual(got.Clearance, tt.want) || isOpen(got) != tt.public || got.Deny != tt.deny {
			t.Errorf("RS-217 %s %s: got %+v", tt.tool, tt.args, got)
		}
		if !tt.public && !tt.deny && !oauth.Scopes(got.Scopes).Has("mcp") {
			t.Errorf("RS-217 %s: needs %v", tt.tool, got.Scopes)
		}
	}
	if got := r.Require(Operation{Method: "prompts/get", Name: "drop_all"}); demandsApproval(got.Clearance) {
		t.Errorf("a prompt: %+v", got)
	}
}

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

// TestNewClearances checks the requests to a remote authorization server, and which responses are
// accepted.
func TestNewClearances(t *testing.T) {
	var form url.Values
	status, answer := 200, ""
	as := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, secret, _ := r.BasicAuth(); name != "rs" || secret != "s" || r.Method != http.MethodPost {
			t.Errorf("%s by %s", r.Method, name)
		}
		_ = r.ParseForm()
		form = r.PostForm
		w.WriteHeader(status)
		_, _ = w.Write([]byte(strings.ReplaceAll(answer, "ISSUER", "http://"+r.Host)))
	}))
	defer as.Close()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	c, err := NewClearances(ClearancesConfig{
		Issuer: as.URL, Endpoint: as.URL + "/clearance", ClientID: "rs", ClientSecret: "s",
		Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	demand := oauth.ClearanceDemand{
		Resource: resource, Tool: "erase", Arguments: json.RawMessage(`{"b":"é"}`), By: "other",
		Approvers: []string{"olga", "otto"}, ACR: []string{"phr", "mfa"}, MaxAge: 90 * time.Second,
	}
	ctx := NewContext(t.Context(), &Principal{Issuer: as.URL})
	answer = `{"id":"c1","interaction_uri":"ISSUER/clearance/c1","expires_in":300}`
	got, err := c.Clear(ctx, "token", demand)
	want := oauth.Clearance{ID: "c1", URL: as.URL + "/clearance/c1", Expires: now.Add(5 * time.Minute)}
	if err != nil || got != want {
		t.Errorf("RS-217: got %+v, %v", got, err)
	}
	if want := (url.Values{
		"subject_token": {"token"}, "subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
		"resource": {resource}, "tool": {"erase"}, "arguments": {`{"b":"é"}`}, "by": {"other"},
		"approvers": {"olga otto"}, "acr_values": {"phr mfa"}, "max_age": {"90"},
	}); !reflect.DeepEqual(form, want) {
		t.Errorf("RS-217: asked %v", form)
	}
	least := oauth.ClearanceDemand{Resource: resource, Tool: "erase", By: "person"}
	if _, err := c.Clear(ctx, "token", least); err != nil || len(form) != 5 {
		t.Errorf("asked %v: %v", form, err)
	}
	for _, tt := range []struct {
		name   string
		status int
		answer string
		want   oauth.Clearance
		err    error
		code   oauth.Code
	}{
		{"given", 200, `{"id":"c1","cleared":true,"expires_in":9223372036854775807}`,
			oauth.Clearance{ID: "c1", Cleared: true, Expires: now.Add(5 * time.Minute)}, nil, ""},
		{"refused", 200, `{"id":"c1","refused":true}`, oauth.Clearance{ID: "c1", Refused: true}, nil, ""},
		{"a link elsewhere", 200, `{"id":"c1","interaction_uri":"https://evil.example.com/"}`,
			oauth.Clearance{}, ErrUnavailable, ""},
		{"a link beside the issuer", 200, `{"id":"c1","interaction_uri":"ISSUER.evil.example.com/"}`,
			oauth.Clearance{}, ErrUnavailable, ""},
		{"both", 200, `{"id":"c1","cleared":true,"refused":true}`, oauth.Clearance{}, ErrUnavailable, ""},
		{"nothing", 200, `{"cleared":true}`, oauth.Clearance{}, ErrUnavailable, ""},
		{"no JSON", 200, `cleared`, oauth.Clearance{}, ErrUnavailable, ""},
		{"too long", 400, `{"error":"invalid_request","error_description":"too long"}`,
			oauth.Clearance{}, nil, oauth.InvalidRequest},
		{"revoked", 400, `{"error":"invalid_grant"}`, oauth.Clearance{}, nil, oauth.InvalidGrant},
		{"too many wait", 429, `{"error":"slow_down"}`, oauth.Clearance{}, nil, oauth.SlowDown},
		{"a proxy that limits", 429, `{"error":"invalid_request"}`, oauth.Clearance{}, ErrUnavailable, ""},
		{"our secret is wrong", 401, `{"error":"invalid_client"}`, oauth.Clearance{}, ErrUnavailable, ""},
		{"an outage", 503, `{"error":"temporarily_unavailable"}`, oauth.Clearance{}, ErrUnavailable, ""},
		{"a proxy", 502, `<html>`, oauth.Clearance{}, ErrUnavailable, ""},
		{"no endpoint", 404, `not found`, oauth.Clearance{}, ErrUnavailable, ""},
	} {
		status, answer = tt.status, tt.answer
		got, err := c.Clear(ctx, "token", demand)
		var said *oauth.Error
		switch {
		case got != tt.want,
			tt.err != nil && !errors.Is(err, tt.err),
			tt.code != "" && (!errors.As(err, &said) || said.Code != tt.code || errors.Is(err, ErrUnavailable)),
			tt.err == nil && tt.code == "" && err != nil:
			t.Errorf("RS-217 %s: got %+v, %v", tt.name, got, err)
		}
	}
	form = nil
	stranger := NewContext(t.Context(), &Principal{Issuer: authServer})
	if _, err := c.Clear(stranger, "token", demand); err == nil || form != nil {
		t.Errorf("RS-217: the token of another issuer was shown: %v %v", form, err)
	}
	if _, err := NewClearances(ClearancesConfig{Issuer: as.URL}); err == nil ||
		!strings.Contains(err.Error(), "the clearance endpoint needs ClientID and ClientSecret") {
		t.Errorf("got %v", err)
	}
}
