package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// stepUp makes a call wait, and returns its page and the request of a client that steps up for it.
func (p *person) stepUp(form url.Values, change ...string) (path string, query url.Values) {
	p.t.Helper()
	path = p.waits(form)
	scope := "mcp clearance:" + strings.TrimPrefix(path, "/clearance/")
	return path, authorizeQuery(append([]string{"scope", scope}, change...)...)
}

// consents approves on a consent page.
func (p *person) consents(pg page) page {
	p.t.Helper()
	return p.post("/consent", url.Values{"step": {consentStep(p.t, pg)}, "decision": {"approve"}})
}

// goesOn leaves the page that names who decides about a call.
func (p *person) goesOn(path string, pg page) page {
	p.t.Helper()
	return p.post(path, url.Values{"step": {pg.step(p.t)}, "decision": {"continue"}})
}

// redeems returns the token of a flow that ended in a code.
func (p *person) redeems(pg page) any {
	p.t.Helper()
	status, out := p.token(codeForm(responseOf(p.t, pg).Get("code")))
	if status != http.StatusOK {
		p.t.Fatalf("got %d %v", status, out)
	}
	return out["access_token"]
}

// wantCleared repeats the request for a call with a token.
func (p *person) wantCleared(form url.Values, token any, want bool) {
	p.t.Helper()
	form.Set("subject_token", token.(string))
	if status, out := p.demand(form); status != http.StatusOK || out["cleared"] != want {
		p.t.Errorf("got %d %v, want cleared: %v", status, out, want)
	}
}

func grantsOf(t *testing.T, r *rig) int {
	t.Helper()
	all, err := r.store.ListGrants(t.Context(), "", "", "", 100)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestClearanceAfterConsent checks that a user first decides whether the client may act for them,
// and then about the call.
func TestClearanceAfterConsent(t *testing.T) {
	r := newRig(t)
	p := r.person()
	token := p.signIn()["access_token"]
	t.Run("RS-217: consent comes first, and counts when the call is approved", func(t *testing.T) {
		form := demandForm(token)
		path, query := p.stepUp(form, "prompt", "consent")
		pg := p.consents(p.get("/authorize?" + query.Encode()))
		step := decideStep(t, pg)
		if grants := grantsOf(t, r); grants != 1 {
			t.Errorf("got %d grants before the call is approved, want 1", grants)
		}
		answer := url.Values{"step": {step}, "decision": {"approve"}}
		pg = p.post(path, answer)
		again := p.post(path, answer) // a double click
		if got := responseOf(t, again).Get("code"); got != responseOf(t, pg).Get("code") {
			t.Errorf("the second of two answers: got the code %q", got)
		}
		p.wantCleared(form, p.redeems(pg), true)
	})
	t.Run("RS-217: when the call is refused, consent comes to nothing", func(t *testing.T) {
		path, query := p.stepUp(demandForm(token, "tool", "no"), "prompt", "consent")
		before := grantsOf(t, r)
		shown := p.get("/authorize?" + query.Encode())
		pg := p.consents(shown)
		pg = p.post(path, url.Values{"step": {decideStep(t, pg)}, "decision": {"deny"}})
		if got := responseOf(t, pg); got.Get("error") != "access_denied" {
			t.Errorf("got %v, want access_denied", got)
		}
		if got := responseOf(t, p.consents(shown)); got.Get("error") != "access_denied" {
			t.Errorf("the consent page once more: got %v, want access_denied", got)
		}
		if after := grantsOf(t, r); after != before {
			t.Errorf("got %d grants, want %d", after, before)
		}
	})
	t.Run("RS-217: a denial on a page that is older than the approval is told, and gets no code", func(t *testing.T) {
		for _, prompt := range []string{"", "consent"} { // only the page, and the page after the consent page
			form := demandForm(token, "tool", "stale"+prompt)
			path, query := p.stepUp(form, "prompt", prompt)
			pg := p.get("/authorize?" + query.Encode())
			if prompt != "" {
				pg = p.consents(pg)
			}
			stale, before := decideStep(t, pg), grantsOf(t, r)
			alone := decideStep(t, p.get(path))
			p.decideAt(path, "approve")
			for _, step := range []string{stale, alone} {
				pg = p.post(path, url.Values{"step": {step}, "decision": {"deny"}})
				if pg.status != http.StatusOK || !strings.Contains(pg.body, "The call was approved before") ||
					!strings.Contains(pg.body, "your denial changes nothing") {
					t.Errorf("got %d %q %s", pg.status, pg.header.Get("Location"), pg.body)
				}
			}
			if after := grantsOf(t, r); after != before {
				t.Errorf("got %d grants, want %d", after, before)
			}
			p.wantCleared(form, token, true) // as the first answer said
			pg = p.post(path, url.Values{"step": {stale}, "decision": {"deny"}})
			if pg.status != http.StatusOK || !strings.Contains(pg.body, "The call was approved before") {
				t.Errorf("after the call: got %d %s", pg.status, pg.body)
			}
		}
	})
	t.Run("RS-217: when consent is refused, nothing is asked about the call", func(t *testing.T) {
		form := demandForm(token, "tool", "unasked")
		_, query := p.stepUp(form, "prompt", "consent")
		pg := p.get("/authorize?" + query.Encode())
		pg = p.post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"deny"}})
		if got := responseOf(t, pg); got.Get("error") != "access_denied" {
			t.Errorf("got %v, want access_denied", got)
		}
		p.waits(form)
	})
	t.Run("RS-217: what was approved is for the person and browser that did", func(t *testing.T) {
		path, query := p.stepUp(demandForm(token, "tool", "mine"), "prompt", "consent")
		step := decideStep(t, p.consents(p.get("/authorize?"+query.Encode())))
		q := r.person()
		q.comeAs("alice", "correct horse battery")
		pg := q.post(path, url.Values{"step": {step}, "decision": {"approve"}})
		if pg.status == http.StatusSeeOther || pg.status == http.StatusOK {
			t.Errorf("in another browser: got %d %s", pg.status, pg.body)
		}
	})
	t.Run("RS-217: a proof for the call is asked for before consent", func(t *testing.T) {
		p := r.person()
		form := demandForm(p.signIn()["access_token"], "max_age", "60")
		path, query := p.stepUp(form, "prompt", "consent")
		r.advance(2 * time.Minute)
		pg := p.get("/authorize?" + query.Encode())
		if to := pg.header.Get("Location"); pg.status != http.StatusSeeOther || !strings.HasPrefix(to, "/prove?") {
			t.Fatalf("got %d to %q, want /prove", pg.status, to)
		}
		pg = p.get(pg.header.Get("Location"))
		pg = p.post("/prove", url.Values{"step": {pg.step(t)}, "password": {"correct horse battery"}})
		pg = p.consents(p.get(pg.header.Get("Location")))
		pg = p.post(path, url.Values{"step": {decideStep(t, pg)}, "decision": {"approve"}})
		p.wantCleared(form, p.redeems(pg), true)
	})
}

// TestClearanceElsewhere checks that a user who cannot decide about their call sees who can, and
// the client continues.
func TestClearanceElsewhere(t *testing.T) {
	r := newRig(t)
	if _, err := r.Users().Create(t.Context(), "olga", "correct horse battery", false); err != nil {
		t.Fatal(err)
	}
	olga := r.person()
	olga.comeAs("olga", "correct horse battery")
	p := r.person()
	token := p.signIn()["access_token"]
	of := func(tool string) url.Values {
		return demandForm(token, "tool", tool, "by", "other", "approvers", "olga otto")
	}
	told := func(t *testing.T, path string, pg page) {
		t.Helper()
		for _, want := range []string{
			"Another person has to approve this call", "olga", "otto", `value="` + r.http.URL + path + `"`, "Continue",
		} {
			if pg.status != http.StatusOK || !strings.Contains(pg.body, want) {
				t.Fatalf("got %d without %q: %s", pg.status, want, pg.body)
			}
		}
		if strings.Contains(pg.body, `value="approve"`) || strings.Contains(pg.body, "folder") {
			t.Error("the page has the other person's data")
		}
	}
	t.Run("RS-217: for whom a call waits is a step of the flow", func(t *testing.T) {
		form := of("plain")
		path, query := p.stepUp(form)
		pg := p.get("/authorize?" + query.Encode())
		told(t, path, pg)
		pg = p.goesOn(path, pg)
		next := p.redeems(p.get(pg.header.Get("Location")))
		p.wantCleared(form, next, false)
		olga.decideAt(path, "approve")
		p.wantCleared(form, next, true)
	})
	t.Run("RS-217: it comes after consent, which counts", func(t *testing.T) {
		form := of("consented")
		path, query := p.stepUp(form, "prompt", "consent")
		pg := p.consents(p.get("/authorize?" + query.Encode()))
		told(t, path, pg)
		next := p.redeems(p.goesOn(path, pg))
		olga.decideAt(path, "approve")
		p.wantCleared(form, next, true)
	})
	t.Run("RS-217: prompt=none goes on without a page", func(t *testing.T) {
		_, query := p.stepUp(of("silent"), "prompt", "none")
		if got := responseOf(t, p.get("/authorize?"+query.Encode())); got.Get("code") == "" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("RS-217: the page decides nothing", func(t *testing.T) {
		form := of("mine")
		path, query := p.stepUp(form)
		step := p.get("/authorize?" + query.Encode()).step(t)
		for _, verdict := range []string{"approve", "deny", ""} {
			pg := p.post(path, url.Values{"step": {step}, "decision": {verdict}})
			if pg.status != http.StatusBadRequest {
				t.Errorf("%q: got %d", verdict, pg.status)
			}
		}
		own := p.waits(demandForm(token, "tool", "own"))
		pg := p.post(own, url.Values{"step": {decideStep(t, p.get(own))}, "decision": {"continue"}})
		if pg.status != http.StatusBadRequest {
			t.Errorf("to go on where a person decides: got %d", pg.status)
		}
		p.wantCleared(form, token, false)
	})
	t.Run("RS-217: a client that claims the person was told spares them the page, and no more", func(t *testing.T) {
		form := of("claimed")
		_, query := p.stepUp(form, "clearance", "told")
		p.wantCleared(form, p.redeems(p.get("/authorize?"+query.Encode())), false)
		own := demandForm(token, "tool", "claimed too")
		_, query = p.stepUp(own, "clearance", "told")
		decideStep(t, p.get("/authorize?"+query.Encode()))
	})
	t.Run("RS-217: without names it waits for an administrator", func(t *testing.T) {
		_, query := p.stepUp(demandForm(token, "tool", "unnamed", "by", "other"))
		if pg := p.get("/authorize?" + query.Encode()); !strings.Contains(pg.body, "an administrator of this server") {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
	t.Run("RS-217: after five minutes the request goes on without it", func(t *testing.T) {
		path, query := p.stepUp(of("late"))
		pg := p.get("/authorize?" + query.Encode())
		r.advance(oauth.ClearanceLifetime)
		p.redeems(p.get(p.goesOn(path, pg).header.Get("Location")))
	})
}

// TestClearanceAtProvider checks that a client whose user signs in at a provider gets the page
// afterwards.
func TestClearanceAtProvider(t *testing.T) {
	r, _ := delegated(t)
	p := r.person()
	token := p.signInAt("google")["access_token"]
	t.Run("RS-217: a person who comes back from a provider decides about the call", func(t *testing.T) {
		form := demandForm(token)
		path, query := p.stepUp(form, "provider", "google", "prompt", "login")
		pg := p.back(callback(t, "google", p.leave(query)))
		pg = p.post(path, url.Values{"step": {decideStep(t, pg)}, "decision": {"approve"}})
		p.wantCleared(form, p.redeems(pg), true)
	})
	t.Run("RS-217: and is told for whom it waits", func(t *testing.T) {
		form := demandForm(token, "tool", "other", "by", "other")
		path, query := p.stepUp(form, "provider", "google", "prompt", "login")
		pg := p.back(callback(t, "google", p.leave(query)))
		if !strings.Contains(pg.body, "Another person has to approve this call") {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		p.redeems(p.goesOn(path, pg))
	})
}
