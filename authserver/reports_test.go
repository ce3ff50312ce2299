package authserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/reference"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// keptCalls is an audit.Log that keeps the tool calls.
type keptCalls struct {
	mu    sync.Mutex
	calls []map[string]string
}

func (k *keptCalls) Add(_ context.Context, event string, attrs []slog.Attr) {
	if event != audit.ToolCalled {
		return
	}
	fields := map[string]string{}
	for _, a := range attrs {
		fields[a.Key] = a.Value.String()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls = append(k.calls, fields)
}

func (k *keptCalls) all() []map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.calls)
}

const elsewhereID = "notes-server"

// reporting returns a rig with a resource server in another process: a client of the operator for
// the resource, a guard that knows the server only by its endpoints, and its reporter.
func reporting(t *testing.T) (*rig, *mcpresource.Guard, *mcpresource.Reporter, *keptCalls) {
	t.Helper()
	kept := &keptCalls{}
	r := newRig(t, keepAttempts, func(c *Config) { c.Audit = c.Audit.Into(kept) })
	r.putClient(storage.Client{
		ID: elsewhereID, Name: "Notes server", GrantTypes: []string{oauth.GrantClientCredentials},
		AuthMethod: "client_secret_basic", SecretHash: r.hashOf(t), Resources: []string{testResource},
		Source: storage.SourceStatic,
	})
	reporter, err := mcpresource.NewReporter(mcpresource.ReporterConfig{
		Issuer: r.Issuer(), ClientID: elsewhereID, ClientSecret: testSecret, Now: r.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := mcpresource.NewIntrospectionValidator(mcpresource.IntrospectionConfig{
		Issuer: r.Issuer(), ClientID: elsewhereID, ClientSecret: testSecret, CacheTTL: -1, Now: r.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := mcpresource.New(mcpresource.Config{
		Resource: testResource, AuthorizationServers: []string{r.Issuer()}, Validator: v, Now: r.now,
		Policy:    &mcpresource.Rules{Base: []string{"mcp"}, Tools: map[string][]string{"add_note": {"notes:write"}}},
		Decisions: reporter, Calls: mcpresource.KeepCalls(reporter),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, g, reporter, kept
}

const callRead = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_note","arguments":{"id":7}}}`

// TestReportsFromElsewhere checks a refusal of a guard in another process. Its reference finds it,
// it joins the attempt, and it has the same verdict as in this process.
func TestReportsFromElsewhere(t *testing.T) {
	for _, tt := range []struct {
		name  string
		do    func(r *rig, p *person, call func(token any, body string) string) (reference string)
		fault attempt.Fault
		joins bool // the attempt of the sign-in
	}{
		{"a tool that needs more scope", func(r *rig, p *person, call func(any, string) string) string {
			return call(p.signIn()["access_token"], callTool)
		}, attempt.ScopeMissing, true},
		{"a token that has expired", func(r *rig, p *person, call func(any, string) string) string {
			token := p.signIn()["access_token"]
			r.advance(time.Hour)
			defer r.advance(time.Minute)
			return call(token, callList)
		}, attempt.TokenNotRefreshed, true},
		{"a token that was ended", func(r *rig, p *person, call func(any, string) string) string {
			token := p.signIn()["access_token"]
			p.post("/revoke", url.Values{"token": {token.(string)}, "client_id": {"app"}})
			return call(token, callList)
		}, attempt.AccessEnded, true},
		{"a token of another server", func(r *rig, p *person, call func(any, string) string) string {
			return call("other", callList)
		}, attempt.TokenNotOurs, false},
		{"no token, and then a sign-in", func(r *rig, p *person, call func(any, string) string) string {
			reference := call("", callList)
			r.advance(time.Second)
			p.signIn()
			return reference
		}, "", true},
	} {
		t.Run("OB-02 "+tt.name, func(t *testing.T) {
			r, g, reporter, _ := reporting(t)
			p := r.person()
			name := tt.do(r, p, func(token any, body string) string {
				return p.calls(g, token, body).Header().Get("X-Request-Id")
			})
			if !reference.IsOf(name, elsewhereID) {
				t.Fatalf("got the reference %q", name)
			}
			if err := reporter.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			found := r.attempts(attempt.Query{Reference: name})
			if len(found) != 1 || found[0].Fault != tt.fault {
				t.Fatalf("OB-02: got %+v", found)
			}
			reported := slices.IndexFunc(found[0].Steps, func(s attempt.Step) bool { return s.Reference == name })
			if s := found[0].Steps[reported]; s.Keys.ReportedBy != elsewhereID {
				t.Errorf("OB-02: reported by %q", s.Keys.ReportedBy)
			}
			if joins := len(found[0].Steps) > 1; joins != tt.joins {
				t.Errorf("OB-01: got %d steps", len(found[0].Steps))
			}
		})
	}
	t.Run("OB-01 the first call ends the attempt, and OB-05 calls are in the audit", func(t *testing.T) {
		r, g, reporter, kept := reporting(t)
		p := r.person()
		token := p.signIn()["access_token"]
		p.calls(g, token, callRead)
		p.calls(g, token, callTool) // refused
		if err := reporter.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.lastAttempt(); !slices.ContainsFunc(got.Steps, func(s attempt.Step) bool {
			return s.Kind == attempt.Call && s.Answer.Status == http.StatusOK
		}) {
			t.Errorf("OB-01: no step of the call: %+v", got.Steps)
		}
		calls := kept.all()
		if len(calls) != 2 {
			t.Fatalf("OB-05: got %v", calls)
		}
		for i, want := range []map[string]string{
			{"tool": "read_note", "outcome": "ok", "client_id": "app", "resource": testResource,
				"reported_by": elsewhereID, "remote": "127.0.0.1"},
			{"tool": "add_note", "outcome": "insufficient_scope", "reported_by": elsewhereID},
		} {
			for name, value := range want {
				if calls[i][name] != value {
					t.Errorf("OB-05: %s is %q, want %q", name, calls[i][name], value)
				}
			}
			if calls[i]["grant"] == "" || calls[i]["jti"] == "" || calls[i]["user"] == "" ||
				len(calls[i]["arguments_digest"]) != 64 {
				t.Errorf("OB-05: got %v", calls[i])
			}
		}
		if s := reporter.Stats(); s.Refused != 0 || s.Lost != 0 || s.Waiting != 0 || s.Taken != 4 {
			t.Errorf("got %+v", s)
		}
	})
}

// report sends a report as a client.
func (p *person) report(client string, report oauth.Report) (int, oauth.Reported) {
	p.t.Helper()
	raw, err := json.Marshal(report)
	if err != nil {
		p.t.Fatal(err)
	}
	pg := p.post("/reports", url.Values{"report": {string(raw)}}, "Authorization", basic(client, testSecret))
	var out oauth.Reported
	if pg.status == http.StatusOK {
		err = json.Unmarshal([]byte(pg.body), &out)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return pg.status, out
}

// TestHostileReports checks that a resource server can write only marked entries about itself, and
// not many.
func TestHostileReports(t *testing.T) {
	r, _, reporter, kept := reporting(t)
	if err := reporter.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.restart(func(c *Config) {
		metrics := c.Resources[0]
		metrics.URI = metricsResource
		c.Resources = append(c.Resources, metrics)
	})
	r.putClient(storage.Client{
		ID: "metrics-server", GrantTypes: []string{oauth.GrantClientCredentials}, AuthMethod: "client_secret_basic",
		SecretHash: r.hashOf(t), Resources: []string{metricsResource}, Source: storage.SourceStatic,
	})
	r.putClient(storage.Client{
		ID: "registered", AuthMethod: "client_secret_basic", SecretHash: r.hashOf(t),
		Resources: []string{testResource}, Source: storage.SourceDynamic,
	})
	p := r.person()
	p.signIn()
	grant := r.lastAttempt().Steps[len(r.lastAttempt().Steps)-1].Keys.Grant
	ours := r.lastAttempt().Reference
	denial := func(change func(*oauth.Decision)) oauth.Decision {
		d := oauth.Decision{
			Reference: reference.NewOf(elsewhereID), At: r.now(), Resource: testResource, HTTPMethod: "POST",
			Status: 401, Outcome: "invalid_token", Error: oauth.InvalidToken, Scheme: "Bearer",
		}
		change(&d)
		return d
	}
	call := func(change func(*oauth.Call)) oauth.Call {
		c := oauth.Call{
			At: r.now(), Resource: testResource, Tool: "t", Outcome: "ok", Issuer: r.Issuer(), TokenID: "x",
			GrantID: grant, ClientID: "somebody", Subject: "usr_else",
		}
		change(&c)
		return c
	}
	n := 0
	sent := func(client string, d []oauth.Decision, c []oauth.Call) (int, oauth.Reported) {
		n++
		return p.report(client, oauth.Report{
			ID: fmt.Sprintf("report-%016d", n), SentAt: r.now(), Decisions: d, Calls: c,
		})
	}
	for _, tt := range []struct {
		name string
		d    oauth.Decision
	}{
		{"a reference of ours", denial(func(d *oauth.Decision) { d.Reference = ours })},
		{"a reference of another resource server",
			denial(func(d *oauth.Decision) { d.Reference = reference.NewOf("metrics-server") })},
		{"of another resource", denial(func(d *oauth.Decision) { d.Resource = metricsResource })},
		{"of no resource", denial(func(d *oauth.Decision) { d.Resource = "" })},
		{"with a status of its own", denial(func(d *oauth.Decision) { d.Status = 200 })},
		{"with an outcome that is text", denial(func(d *oauth.Decision) { d.Outcome = "<b>call us</b>" })},
		{"let through, of no grant",
			denial(func(d *oauth.Decision) { d.Reference, d.Status, d.GrantID = "", 0, "grt_x" })},
	} {
		t.Run("OB-02 a denial "+tt.name+" is refused", func(t *testing.T) {
			status, got := sent(elsewhereID, []oauth.Decision{tt.d}, nil)
			if status != 200 || got.Refused != 1 || got.Taken != 0 {
				t.Errorf("got %d %+v", status, got)
			}
		})
	}
	for _, tt := range []struct {
		name   string
		client string
		c      oauth.Call
	}{
		{"of another resource", elsewhereID, call(func(c *oauth.Call) { c.Resource = metricsResource })},
		{"by a grant for another resource", "metrics-server",
			call(func(c *oauth.Call) { c.Resource = metricsResource })},
		{"by a grant that is not known", elsewhereID, call(func(c *oauth.Call) { c.GrantID = "grt_unknown" })},
		{"by a person without a grant", elsewhereID, call(func(c *oauth.Call) { c.GrantID = "" })},
		{"with a digest that is text", elsewhereID, call(func(c *oauth.Call) { c.Digest = "arguments" })},
		{"with a token of another server", elsewhereID,
			call(func(c *oauth.Call) { c.Issuer = "https://other.example.com" })},
		{"of a long name", elsewhereID, call(func(c *oauth.Call) { c.Tool = strings.Repeat("t", 300) })},
	} {
		t.Run("OB-05 a call "+tt.name+" is refused", func(t *testing.T) {
			status, got := sent(tt.client, nil, []oauth.Call{tt.c})
			if status != 200 || got.Refused != 1 || got.Taken != 0 {
				t.Errorf("got %d %+v", status, got)
			}
		})
	}
	if len(kept.all()) != 0 {
		t.Errorf("OB-05: it is in the audit: %v", kept.all())
	}
	t.Run("OB-05 whose call it is, the grant says, and when, our clock", func(t *testing.T) {
		c := call(func(c *oauth.Call) { c.At = r.now().AddDate(-1, 0, 0) })
		if status, got := sent(elsewhereID, nil, []oauth.Call{c}); status != 200 || got.Taken != 1 {
			t.Fatalf("got %d %+v", status, got)
		}
		got := kept.all()[0]
		if got["client_id"] != "app" || got["user"] == "usr_else" || got["reported_by"] != elsewhereID {
			t.Errorf("got %v", got)
		}
		at, err := time.Parse("2006-01-02 15:04:05 -0700 MST", got["at"])
		if err != nil || r.now().Sub(at) > time.Hour {
			t.Errorf("got %s, %v", got["at"], err)
		}
	})
	t.Run("OB-05 a call without an address has not that of the resource server", func(t *testing.T) {
		for said, want := range map[string]string{
			"": "", "not an address": "", "127.0.0.1:80": "", "fe80::1%<b>": "fe80::1", "::ffff:192.0.2.7": "192.0.2.7",
		} {
			c := call(func(c *oauth.Call) { c.Address = said })
			if status, got := sent(elsewhereID, nil, []oauth.Call{c}); status != 200 || got.Taken != 1 {
				t.Fatalf("got %d %+v", status, got)
			}
			all := kept.all()
			if got := all[len(all)-1]; got["remote"] != want || got["client_name"] != "" || got["client_id"] != "app" {
				t.Errorf("%q: got %v", said, got)
			}
		}
	})
	t.Run("OB-02 the grant of another MCP server says only that it is one", func(t *testing.T) {
		name := reference.NewOf("metrics-server")
		status, got := sent("metrics-server", []oauth.Decision{denial(func(d *oauth.Decision) {
			d.Reference, d.Resource = name, metricsResource
			d.Claims = &oauth.AccessTokenClaims{Issuer: r.Issuer(), GrantID: grant, TokenID: "x"}
			d.Sender = &oauth.Sender{Address: "not an address"}
		})}, nil)
		if status != 200 || got.Taken != 1 {
			t.Fatalf("got %d %+v", status, got)
		}
		for _, a := range r.attempts(attempt.Query{Client: "app"}) {
			if a.Fault != "" {
				t.Errorf("the attempt of another MCP server got the fault %s", a.Fault)
			}
		}
		found := r.attempts(attempt.Query{Reference: name})
		if len(found) != 1 || found[0].Fault != attempt.AudienceWrong || len(found[0].Steps) != 1 {
			t.Fatalf("got %+v", found)
		}
		if k := found[0].Steps[0].Keys; k.Grant != "" || k.Person != "" || k.Client != "" || k.Address != "" {
			t.Errorf("got %+v", k)
		}
	})
	t.Run("OB-05 a report that comes again counts once", func(t *testing.T) {
		once := []oauth.Call{call(func(*oauth.Call) {})}
		report := oauth.Report{ID: "the-same-report-twice", SentAt: r.now(), Calls: once}
		before := len(kept.all())
		for i, want := range []oauth.Reported{{Taken: 1}, {Repeated: true}} {
			if status, got := p.report(elsewhereID, report); status != 200 || got != want {
				t.Errorf("%d: got %d %+v", i, status, got)
			}
		}
		if got := len(kept.all()); got != before+1 {
			t.Errorf("got %d entries", got-before)
		}
	})
	t.Run("OB-02 who is no resource server of the operator reports nothing", func(t *testing.T) {
		for client, want := range map[string]int{"registered": 400, "static": 400, "unknown": 401} {
			if status, _ := sent(client, []oauth.Decision{denial(func(*oauth.Decision) {})}, nil); status != want {
				t.Errorf("%s: got %d, want %d", client, status, want)
			}
		}
		if pg := p.post("/reports", url.Values{"report": {"{}"}, "client_id": {"app"}}); pg.status != 400 {
			t.Errorf("a public client: got %d", pg.status)
		}
	})
	t.Run("OB-02 a report is bounded", func(t *testing.T) {
		if status, _ := sent(elsewhereID, make([]oauth.Decision, oauth.MaxReported+1), nil); status != 400 {
			t.Errorf("got %d", status)
		}
		long := denial(func(d *oauth.Decision) { d.Reason = strings.Repeat("x", 70<<10) })
		if status, _ := sent(elsewhereID, []oauth.Decision{long}, nil); status != 413 && status != 400 {
			t.Errorf("got %d", status)
		}
		for range 100 {
			if status, _ := sent("metrics-server", nil, nil); status == http.StatusTooManyRequests {
				return
			}
		}
		t.Error("any number of reports is taken")
	})
	t.Run("OB-01 what one resource server reports does not push out the attempts of others", func(t *testing.T) {
		r.advance(time.Minute)
		for range 12 {
			var many []oauth.Decision
			for i := range oauth.MaxReported {
				many = append(many, denial(func(d *oauth.Decision) {
					d.Scheme, d.Sender = "", &oauth.Sender{Address: fmt.Sprintf("198.51.%d.7", i)}
				}))
			}
			sent(elsewhereID, many, nil)
			r.advance(time.Second)
		}
		r.as.Attempts.Write(context.Background())
		steps, err := r.store.Steps(t.Context(), storage.StepQuery{Until: r.now().Add(time.Hour), Limit: 4000})
		if err != nil || len(steps) > 650 {
			t.Errorf("got %d steps, %v", len(steps), err)
		}
	})
}

// TestReportsJoinTheirOwn checks that a resource server may report a request from any address, but
// it does not join an attempt to reach another resource server.
func TestReportsJoinTheirOwn(t *testing.T) {
	r, _, reporter, _ := reporting(t)
	if err := reporter.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.restart(func(c *Config) {
		metrics := c.Resources[0]
		metrics.URI = metricsResource
		c.Resources = append(c.Resources, metrics)
	})
	r.putClient(storage.Client{
		ID: "metrics-server", GrantTypes: []string{oauth.GrantClientCredentials}, AuthMethod: "client_secret_basic",
		SecretHash: r.hashOf(t), Resources: []string{metricsResource}, Source: storage.SourceStatic,
	})
	p := r.person()
	p.signIn()
	r.advance(time.Second)
	name := reference.NewOf("metrics-server")
	status, got := p.report("metrics-server", oauth.Report{
		ID: "about-somebody-else", SentAt: r.now(), Decisions: []oauth.Decision{{
			Reference: name, At: r.now(), Resource: metricsResource, HTTPMethod: "POST", Status: 401,
			Outcome: "unauthenticated", Sender: &oauth.Sender{Address: "127.0.0.1", Agent: "Go-http-client/1.1"},
		}},
	})
	if status != 200 || got.Taken != 1 {
		t.Fatalf("got %d %+v", status, got)
	}
	found := r.attempts(attempt.Query{Reference: name})
	if len(found) != 1 || len(found[0].Steps) != 1 {
		t.Errorf("OB-01: got %+v", found)
	}
	for _, a := range r.attempts(attempt.Query{Client: "app"}) {
		if a.Fault != "" {
			t.Errorf("OB-01: the attempt of another resource server got the fault %s", a.Fault)
		}
	}
}
