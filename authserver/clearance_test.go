package authserver

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var asMachine = []string{"Authorization", basic("machine", testSecret)}

func demandForm(token any, change ...string) url.Values {
	v := url.Values{
		"subject_token": {token.(string)}, "subject_token_type": {typeAccessToken}, "tool": {"erase"},
		"arguments": {`{"folder":"x","n":1}`},
	}
	for i := 0; i+1 < len(change); i += 2 {
		if v.Del(change[i]); change[i+1] != "" {
			v.Set(change[i], change[i+1])
		}
	}
	return v
}

// demand requests a tool call approval as the resource server.
func (p *person) demand(form url.Values, header ...string) (int, map[string]any) {
	p.t.Helper()
	if header == nil {
		header = asMachine
	}
	pg := p.post("/clearance", form, header...)
	out := map[string]any{}
	if err := json.Unmarshal([]byte(pg.body), &out); err != nil {
		p.t.Fatalf("answer %d is not JSON: %s", pg.status, pg.body)
	}
	if pg.header.Get("Cache-Control") != "no-store" {
		p.t.Errorf("got Cache-Control %q, want no-store", pg.header.Get("Cache-Control"))
	}
	return pg.status, out
}

// waits requests a tool call approval that has to wait, and returns the path of its page.
func (p *person) waits(form url.Values) string {
	p.t.Helper()
	status, out := p.demand(form)
	uri, _ := out["interaction_uri"].(string)
	path, ok := strings.CutPrefix(uri, p.http.URL)
	if status != 200 || out["cleared"] != false || out["refused"] != false || !ok {
		p.t.Fatalf("got %d %v, want a wait", status, out)
	}
	return path
}

func (p *person) decideAt(path, verdict string) page {
	p.t.Helper()
	return p.post(path, url.Values{"step": {decideStep(p.t, p.get(path))}, "decision": {verdict}})
}

// decideStep returns the sealed state of the decision form.
func decideStep(t *testing.T, pg page) string {
	t.Helper()
	i := strings.Index(pg.body, `<form class="decide`)
	if i < 0 {
		t.Fatalf("no question in the page (status %d): %.600s", pg.status, pg.body)
	}
	return page{body: pg.body[i:], status: pg.status}.step(t)
}

// comeAs signs an account in.
func (p *person) comeAs(name, password string) {
	p.t.Helper()
	pg := p.post("/login", url.Values{
		"step": {p.get("/login").step(p.t)}, "username": {name}, "password": {password},
	})
	if pg.status != http.StatusSeeOther {
		p.t.Fatalf("sign-in of %s: got %d", name, pg.status)
	}
}

func TestClearance(t *testing.T) {
	r := newRig(t)
	p := r.person()
	token := p.signIn()["access_token"]
	t.Run("RS-217: the person is shown the call, and the permission is good once", func(t *testing.T) {
		path := p.waits(demandForm(token))
		if again := p.waits(demandForm(token, "arguments", `{ "n":1, "folder":"x" }`)); again != path {
			t.Errorf("the same call in another order: got %s, want %s", again, path)
		}
		pg := p.get(path)
		for _, want := range []string{"erase", "folder", ">x<", "An App", testResource, "alice"} {
			if !strings.Contains(pg.body, want) {
				t.Errorf("the page lacks %q: %s", want, pg.body)
			}
		}
		csp := pg.header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "default-src 'none'") {
			t.Errorf("got the policy %q", csp)
		}
		if account := p.get("/account"); !strings.Contains(account.body, path) {
			t.Error("the account page does not lead there")
		}
		p.waits(demandForm(token)) // GET has changed nothing
		pg = p.decideAt(path, "approve")
		if pg.status != 200 || !strings.Contains(pg.body, "You have approved the call") {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		if pg = p.get(path); !strings.Contains(pg.body, "You have approved the call") {
			t.Errorf("the page again: got %d %s", pg.status, pg.body)
		}
		for name, other := range map[string][]string{
			"value": {"arguments", `{"folder":"y","n":1}`}, "number": {"arguments", `{"folder":"x","n":1.0}`},
			"tool": {"tool", "erase2"}, "nothing": {"arguments", ""}, "giver": {"by", "other"},
			"proof": {"max_age", "60"},
		} {
			if _, out := p.demand(demandForm(token, other...)); out["cleared"] != false {
				t.Errorf("another %s: got %v, want a wait", name, out)
			}
		}
		status, out := p.demand(demandForm(token))
		if status != 200 || out["cleared"] != true || out["interaction_uri"] != nil {
			t.Errorf("got %d %v, want it cleared", status, out)
		}
		if next := p.waits(demandForm(token)); next == path {
			t.Error("a clearance that was used is asked for once more under the same id")
		}
		log := r.log.String()
		for _, event := range []string{"asked", "given", "spent"} {
			id := strings.TrimPrefix(path, "/clearance/")
			if !strings.Contains(log, `"event":"clearance.`+event+`","clearance":"`+id) {
				t.Errorf("the audit lacks clearance.%s", event)
			}
		}
		if strings.Contains(log, `folder`) {
			t.Error("the log has arguments")
		}
	})
	t.Run("RS-217: a refusal stands, and no form turns it round", func(t *testing.T) {
		form := demandForm(token, "tool", "refused")
		path := p.waits(form)
		first := decideStep(t, p.get(path))
		p.decideAt(path, "deny")
		_, out := p.demand(form)
		if out["refused"] != true || out["cleared"] != false || out["interaction_uri"] != nil {
			t.Errorf("got %v, want it refused", out)
		}
		pg := p.post(path, url.Values{"step": {first}, "decision": {"approve"}})
		if !strings.Contains(pg.body, "You have denied the call") {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
		if _, out := p.demand(form); out["refused"] != true {
			t.Errorf("got %v, want it refused", out)
		}
	})
	t.Run("RS-217: a form is for one clearance in one browser", func(t *testing.T) {
		one, two := p.waits(demandForm(token, "tool", "one")), p.waits(demandForm(token, "tool", "two"))
		step := decideStep(t, p.get(one))
		form := url.Values{"step": {step}, "decision": {"approve"}}
		if pg := p.post(two, form); pg.status != http.StatusBadRequest {
			t.Errorf("the form of another clearance: got %d", pg.status)
		}
		q := r.person()
		q.comeAs("alice", "correct horse battery")
		if pg := q.post(one, form); pg.status == http.StatusOK {
			t.Errorf("the form of another browser: got %d %s", pg.status, pg.body)
		}
		if pg := p.post(one, url.Values{"step": {step}}); pg.status != http.StatusBadRequest {
			t.Errorf("no decision: got %d", pg.status)
		}
		if pg := p.post(one, form, "Origin", "https://evil.example"); pg.status != http.StatusForbidden {
			t.Errorf("from another site: got %d", pg.status)
		}
		p.waits(demandForm(token, "tool", "one"))
	})
	t.Run("RS-217: unknown, expired and other people's clearances look the same", func(t *testing.T) {
		if _, err := r.Users().Create(t.Context(), "bob", "correct horse battery", false); err != nil {
			t.Fatal(err)
		}
		q := r.person()
		path := p.waits(demandForm(token, "tool", "mine"))
		unknown := "/clearance/clr_unknown0unknown0unknown0"
		for _, at := range []string{path, unknown} {
			if pg := q.get(at); !strings.Contains(pg.body, `name="password"`) || strings.Contains(pg.body, "mine") {
				t.Errorf("%s to a stranger: got %d, want the sign-in page alone", at, pg.status)
			}
		}
		q.comeAs("bob", "correct horse battery")
		foreign, none := q.get(path), q.get(unknown)
		same := strings.ReplaceAll(foreign.body, path, unknown) == none.body // it contains the address
		if foreign.status != http.StatusNotFound || none.status != foreign.status || !same {
			t.Errorf("got %d and %d, want one page: %s", foreign.status, none.status, foreign.body)
		}
		r.advance(oauth.ClearanceLifetime)
		if late := p.get(path); late.status != http.StatusNotFound {
			t.Errorf("after five minutes: got %d", late.status)
		}
	})
}

func TestClearanceEnds(t *testing.T) {
	r := newRig(t)
	p := r.person()
	given := func(t *testing.T) (any, url.Values) {
		t.Helper()
		token := p.signIn()["access_token"]
		form := demandForm(token)
		if pg := p.decideAt(p.waits(form), "approve"); pg.status != 200 {
			t.Fatalf("got %d", pg.status)
		}
		return token, form
	}
	t.Run("RS-217: after five minutes it is asked for again", func(t *testing.T) {
		_, form := given(t)
		r.advance(oauth.ClearanceLifetime)
		p.waits(form)
	})
	t.Run("RS-217: the grant is revoked between giving and use", func(t *testing.T) {
		token, form := given(t)
		claims, err := r.grants.tokens.Own(t.Context(), token.(string))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.store.RevokeGrant(t.Context(), claims.GrantID, storage.ByOperator, r.now()); err != nil {
			t.Fatal(err)
		}
		if status, out := p.demand(form); status != 400 || out["error"] != "invalid_grant" {
			t.Errorf("got %d %v, want invalid_grant", status, out)
		}
	})
	t.Run("RS-217: 32 calls with one clearance: one passes", func(t *testing.T) {
		_, form := given(t)
		var mu sync.Mutex
		var wg sync.WaitGroup
		cleared := 0
		for range 32 {
			wg.Go(func() {
				_, out := p.demand(form)
				mu.Lock()
				defer mu.Unlock()
				if out["cleared"] == true {
					cleared++
				}
			})
		}
		if wg.Wait(); cleared != 1 {
			t.Errorf("%d calls passed, want 1", cleared)
		}
	})
	t.Run("RS-217: another grant of the same client does not use it", func(t *testing.T) {
		_, form := given(t)
		other := demandForm(r.person().signIn()["access_token"])
		if _, out := p.demand(other); out["cleared"] != false {
			t.Errorf("got %v, want a wait", out)
		}
		if _, out := p.demand(form); out["cleared"] != true {
			t.Errorf("got %v, want it cleared", out)
		}
	})
}

func TestClearanceOfAnother(t *testing.T) {
	r := newRig(t)
	for name, admin := range map[string]bool{"bob": false, "carol": false, "root": true} {
		if _, err := r.Users().Create(t.Context(), name, "correct horse battery", admin); err != nil {
			t.Fatal(err)
		}
	}
	people := map[string]*person{}
	for _, name := range []string{"bob", "carol", "root"} {
		people[name] = r.person()
		people[name].comeAs(name, "correct horse battery")
	}
	p := r.person()
	token := p.signIn()["access_token"]
	for _, c := range []struct {
		name, approvers, yes string
		no                   []string
	}{
		{"RS-217: an approver who is named decides", "Bob dave", "bob", []string{"carol", "root"}},
		{"RS-217: without names an administrator does", "", "root", []string{"bob", "carol"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			form := demandForm(token, "by", "other", "approvers", c.approvers)
			path := p.waits(form)
			pg := p.get(path)
			if pg.status != 200 || !strings.Contains(pg.body, "Another person has to approve this call") {
				t.Errorf("the requester: got %d %s", pg.status, pg.body)
			}
			for _, name := range c.no {
				if pg := people[name].get(path); pg.status != http.StatusNotFound {
					t.Errorf("%s: got %d", name, pg.status)
				}
			}
			q := people[c.yes]
			if pg := q.get(path); !strings.Contains(pg.body, "alice") {
				t.Errorf("the page does not say for whom: %s", pg.body)
			}
			if !strings.Contains(q.get("/account").body, path) || strings.Contains(p.get("/account").body, path) {
				t.Error("it is not on the account page of the one who decides, and of nobody else")
			}
			q.decideAt(path, "approve")
			if _, out := p.demand(form); out["cleared"] != true {
				t.Errorf("got %v, want it cleared", out)
			}
		})
	}
}

func TestClearanceWithProof(t *testing.T) {
	r := newRig(t)
	p := r.person()
	form := demandForm(p.signIn()["access_token"], "max_age", "60")
	path := p.waits(form)
	r.advance(2 * time.Minute)
	t.Run("RS-217: a proof that is too old is renewed first", func(t *testing.T) {
		pg := p.get(path)
		if to := pg.header.Get("Location"); pg.status != http.StatusSeeOther || !strings.HasPrefix(to, "/prove?to=") {
			t.Fatalf("got %d to %q, want /prove", pg.status, to)
		}
		pg = p.get(pg.header.Get("Location"))
		pg = p.post("/prove", url.Values{"step": {pg.step(t)}, "password": {"correct horse battery"}})
		if pg.status != http.StatusSeeOther || pg.header.Get("Location") != path {
			t.Fatalf("got %d to %q, want %s", pg.status, pg.header.Get("Location"), path)
		}
		step := decideStep(t, p.get(path))
		r.advance(2 * time.Minute) // the page stayed open
		pg = p.post(path, url.Values{"step": {step}, "decision": {"approve"}})
		if pg.status != http.StatusSeeOther || !strings.HasPrefix(pg.header.Get("Location"), "/prove?to=") {
			t.Errorf("got %d %q, want /prove", pg.status, pg.header.Get("Location"))
		}
		p.waits(form)
	})
	t.Run("RS-217: a class that no one reaches here is refused when it is asked for", func(t *testing.T) {
		status, out := p.demand(demandForm(p.signIn()["access_token"], "acr_values", "gold"))
		if status != 400 || out["error"] != "invalid_request" {
			t.Errorf("got %d %v", status, out)
		}
	})
}

func TestClearanceRefusals(t *testing.T) {
	r := newRig(t)
	p := r.person()
	out := p.signIn()
	token, hash := out["access_token"], r.hashOf(t)
	for _, c := range []storage.Client{
		{ID: "other-rs", Source: storage.SourceStatic, Resources: []string{"https://other.example.com"}},
		{ID: "self-made", Source: storage.SourceDynamic, Resources: []string{testResource}},
	} {
		c.AuthMethod, c.SecretHash, c.CreatedAt = "client_secret_basic", hash, r.now()
		if err := r.store.PutClient(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	_, machine := p.token(url.Values{"grant_type": {oauth.GrantClientCredentials}}, asMachine...)
	tooLong := `{"a":"` + strings.Repeat("x", 9000) + `"}`
	as := func(id string) []string { return []string{"Authorization", basic(id, testSecret)} }
	for name, c := range map[string]struct {
		form   url.Values
		header []string
		status int
		code   oauth.Code
	}{
		"RS-217: no client": {demandForm(token), []string{}, 401, oauth.InvalidClient},
		"RS-217: a wrong secret": {
			demandForm(token), []string{"Authorization", basic("machine", "x")}, 401, oauth.InvalidClient,
		},
		"RS-217: a client of itself": {demandForm(token), as("self-made"), 400, oauth.UnauthorizedClient},
		"RS-217: a public client": {
			demandForm(token, "client_id", "app"), []string{}, 400, oauth.UnauthorizedClient,
		},
		"RS-217: of another resource":      {demandForm(token), as("other-rs"), 400, oauth.InvalidGrant},
		"RS-217: a token that is not ours": {demandForm("x"), nil, 400, oauth.InvalidGrant},
		"RS-217: a refresh token":          {demandForm(out["refresh_token"]), nil, 400, oauth.InvalidGrant},
		"RS-217: the token of the client":  {demandForm(machine["access_token"]), nil, 400, oauth.InvalidGrant},
		"RS-217: no token": {
			demandForm(token, "subject_token", ""), nil, 400, oauth.InvalidRequest,
		},
		"RS-217: no type": {
			demandForm(token, "subject_token_type", ""), nil, 400, oauth.InvalidRequest,
		},
		"RS-217: no tool": {demandForm(token, "tool", ""), nil, 400, oauth.InvalidRequest},
		"RS-217: a tool whose name has a NUL": {
			demandForm(token, "tool", "erase\x00"), nil, 400, oauth.InvalidRequest,
		},
		"RS-217: a tool whose name has line feeds": {
			demandForm(token, "tool", "erase\n\n"), nil, 400, oauth.InvalidRequest,
		},
		"RS-217: arguments too long to show": {
			demandForm(token, "arguments", tooLong), nil, 400, oauth.InvalidRequest,
		},
		"RS-217: a name twice": {
			demandForm(token, "arguments", `{"a":1,"a":2}`), nil, 400, oauth.InvalidRequest,
		},
		"RS-217: another giver":        {demandForm(token, "by", "me"), nil, 400, oauth.InvalidRequest},
		"RS-217: approvers of oneself": {demandForm(token, "approvers", "bob"), nil, 400, oauth.InvalidRequest},
		"RS-217: an age that is none":  {demandForm(token, "max_age", "-1"), nil, 400, oauth.InvalidRequest},
		"RS-217: another resource": {
			demandForm(token, "resource", "https://other.example.com"), nil, 400, oauth.InvalidTarget,
		},
		"RS-217: the token in the URL": {nil, nil, 400, oauth.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			var status int
			var got map[string]any
			if c.form == nil {
				pg := p.post("/clearance?subject_token=x", demandForm(token), asMachine...)
				status = pg.status
				if err := json.Unmarshal([]byte(pg.body), &got); err != nil {
					t.Fatal(err)
				}
			} else {
				status, got = p.demand(c.form, c.header...)
			}
			if status != c.status || got["error"] != string(c.code) {
				t.Errorf("got %d %v, want %d %s", status, got, c.status, c.code)
			}
		})
	}
	t.Run("RS-217: as many wait as may", func(t *testing.T) {
		for i := range storage.MaxClearances {
			p.waits(demandForm(token, "tool", "t"+strings.Repeat("x", i)))
		}
		pg := p.post("/clearance", demandForm(token), asMachine...)
		if pg.status != http.StatusTooManyRequests || pg.header.Get("Retry-After") == "" ||
			!strings.Contains(pg.body, "slow_down") {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
	t.Run("RS-217: it is published", func(t *testing.T) {
		pg := p.get("/.well-known/oauth-authorization-server")
		if !strings.Contains(pg.body, `"clearance_endpoint":"`+r.http.URL+`/clearance"`) {
			t.Errorf("got %s", pg.body)
		}
	})
	t.Run("RS-217: in process", func(t *testing.T) {
		token := p.signIn()["access_token"]
		d := oauth.ClearanceDemand{Resource: testResource, Tool: "t"}
		c, err := r.Clear(t.Context(), token.(string), d)
		if err != nil || c.Cleared || c.URL != r.http.URL+"/clearance/"+c.ID {
			t.Errorf("got %+v %v", c, err)
		}
		d.Resource = "https://other.example.com"
		if _, err := r.Clear(t.Context(), token.(string), d); oauth.AsError(err).Code != oauth.InvalidTarget {
			t.Errorf("another resource: got %v", err)
		}
		if _, err := r.Clear(t.Context(), "x", d); oauth.AsError(err).Code != oauth.InvalidGrant {
			t.Errorf("no token: got %v", err)
		}
	})
}

func TestClearanceStepUp(t *testing.T) {
	r := newRig(t)
	p := r.person()
	token := p.signIn()["access_token"]
	ask := func(form url.Values) (path string, query url.Values) {
		path = p.waits(form)
		return path, authorizeQuery("scope", "mcp clearance:"+strings.TrimPrefix(path, "/clearance/"))
	}
	t.Run("RS-217: the page is a step of the flow, and the clearance goes over to the new grant", func(t *testing.T) {
		form := demandForm(token)
		path, query := ask(form)
		pg := p.get("/authorize?" + query.Encode())
		pg = p.post(path, url.Values{"step": {decideStep(t, pg)}, "decision": {"approve"}})
		if pg.status != http.StatusSeeOther {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		pg = p.get(pg.header.Get("Location"))
		if pg.status == http.StatusOK {
			pg = p.post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"approve"}})
		}
		_, out := p.token(codeForm(responseOf(t, pg).Get("code")))
		if scope := out["scope"]; scope != "mcp" && scope != nil {
			t.Errorf("got the scope %v", scope)
		}
		if _, got := p.demand(form); got["cleared"] != false {
			t.Errorf("under the old grant: got %v, want a wait", got)
		}
		if _, got := p.demand(demandForm(out["access_token"])); got["cleared"] != true {
			t.Errorf("under the new grant: got %v, want it cleared", got)
		}
	})
	t.Run("RS-217: a refusal goes to the client", func(t *testing.T) {
		path, query := ask(demandForm(token, "tool", "no"))
		pg := p.get("/authorize?" + query.Encode())
		pg = p.post(path, url.Values{"step": {decideStep(t, pg)}, "decision": {"deny"}})
		pg = p.get(pg.header.Get("Location"))
		if got := responseOf(t, pg); got.Get("error") != "access_denied" {
			t.Errorf("got %v, want access_denied", got)
		}
	})
	t.Run("RS-217: an unknown, another's or expired one is no reason to refuse", func(t *testing.T) {
		_, query := ask(demandForm(token, "tool", "late"))
		r.advance(oauth.ClearanceLifetime)
		for _, q := range []url.Values{query, authorizeQuery("scope", "mcp clearance:clr_x clearance: clearance:y")} {
			got := p.approve(q)
			status, out := p.token(codeForm(got.Get("code")))
			if status != 200 || strings.Contains(out["access_token"].(string), "clearance") {
				t.Errorf("got %v, %d %v", got, status, out)
			}
		}
	})
	t.Run("RS-217: prompt=none is told that the person has to decide", func(t *testing.T) {
		_, query := ask(demandForm(p.signIn()["access_token"], "tool", "silent"))
		query.Set("prompt", "none")
		if got := responseOf(t, p.get("/authorize?"+query.Encode())); got.Get("error") != "interaction_required" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("RS-217: a token request that names one gets none", func(t *testing.T) {
		refresh := p.signIn()["refresh_token"]
		status, out := p.token(refreshForm(refresh, "scope", "mcp clearance:clr_x"))
		if status != 200 || out["scope"] != nil && out["scope"] != "mcp" {
			t.Errorf("got %d %v", status, out)
		}
	})
}
