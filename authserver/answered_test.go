package authserver

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// answering is a user before a consent page, and their answer.
type answering struct {
	*person
	step string
}

func (a answering) send(change ...string) page {
	a.t.Helper()
	form := url.Values{"step": {a.step}, "decision": {"approve"}}
	for i := 0; i+1 < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return a.post("/consent", form)
}

// answering opens a consent page.
func (p *person) answering(query url.Values) answering {
	p.t.Helper()
	pg := p.get("/authorize?" + query.Encode())
	if strings.Contains(pg.body, `name="password"`) {
		pg = p.login(query)
	}
	return answering{p, consentStep(p.t, pg)}
}

func (p *person) wantConnections(want int) {
	p.t.Helper()
	people, err := p.store.ListUsers(p.t.Context(), "", 100)
	if err != nil {
		p.t.Fatal(err)
	}
	got := 0 // the page shows the connections of one application as one
	for _, u := range people {
		of, err := p.store.Connections(p.t.Context(), u.ID, "", p.now(), 100)
		if got += len(of); err != nil {
			p.t.Fatal(err)
		}
	}
	if got != want {
		p.t.Errorf("got %d connections, want %d", got, want)
	}
}

func wantAnswered(t *testing.T, pg page) {
	t.Helper()
	if pg.status != http.StatusConflict || pg.header.Get("Location") != "" ||
		!strings.Contains(pg.body, "You have already answered") {
		t.Errorf("got %d to %q, want the page of an answer that was given: %.400s",
			pg.status, pg.header.Get("Location"), pg.body)
	}
}

// Each consent page creates one connection, however often its form is sent.
func TestConsentFormsAreAnsweredOnce(t *testing.T) {
	whole := authorizeQuery("scope", "mcp notes:write", "prompt", "consent")
	t.Run("a double click has the same answer twice", func(t *testing.T) {
		p := newRig(t).person()
		form := p.answering(whole)
		first, second := form.send(), form.send()
		to := first.header.Get("Location")
		if code := responseOf(t, first).Get("code"); code == "" || second.header.Get("Location") != to {
			t.Fatalf("got %q and then %d %q", to, second.status, second.header.Get("Location"))
		}
		if n := strings.Count(p.log.String(), `"msg":"consent.approved"`); n != 1 {
			t.Errorf("%d approvals are in the log", n)
		}
		p.wantTokens(responseOf(t, second).Get("code"))
		p.wantConnections(1)
	})
	t.Run("32 at once get one code", func(t *testing.T) {
		p := newRig(t).person()
		form := p.answering(whole)
		var wg sync.WaitGroup
		var mu sync.Mutex
		to := map[string]int{}
		for range 32 {
			wg.Go(func() {
				pg := form.send()
				mu.Lock()
				defer mu.Unlock()
				to[pg.header.Get("Location")]++
			})
		}
		wg.Wait()
		if len(to) != 1 || to[""] != 0 {
			t.Errorf("got %v", to)
		}
	})
	t.Run("once its code was redeemed it gives a page, and the connection stays", func(t *testing.T) {
		p := newRig(t).person()
		form := p.answering(whole)
		tokens := p.wantTokens(responseOf(t, form.send()).Get("code"))
		wantAnswered(t, form.send())
		if status, out := p.token(refreshForm(tokens["refresh_token"])); status != http.StatusOK {
			t.Errorf("a refresh afterwards: got %d %v", status, out)
		}
		p.wantConnections(1)
	})
	t.Run("a window that was left open brings back no connection that was ended", func(t *testing.T) {
		r := newRig(t)
		p := r.person()
		form := p.answering(whole)
		p.wantTokens(responseOf(t, form.send()).Get("code"))
		u, err := r.store.UserByName(t.Context(), "alice")
		if err == nil {
			err = r.store.ForgetConsent(t.Context(), u.ID, "app", testResource, r.now())
		}
		if err != nil {
			t.Fatal(err)
		}
		wantAnswered(t, form.send())
		p.wantConnections(0)
		if pg := p.get("/authorize?" + authorizeQuery().Encode()); !consentForm.MatchString(pg.body) {
			t.Errorf("and the consent is remembered again: %d", pg.status)
		}
	})
	t.Run("another choice the second time is no second connection", func(t *testing.T) {
		p := newRig(t).person()
		form := p.answering(whole)
		form.send("preset", "choose", "scope", "")
		wantAnswered(t, form.send())
	})
	t.Run("an answer whose code has run out is not sent again", func(t *testing.T) {
		r := newRig(t)
		form := r.person().answering(whole)
		responseOf(t, form.send())
		r.advance(10 * time.Minute)
		wantAnswered(t, form.send())
	})
	t.Run("PE-14 the page that shows the answer shows it twice", func(t *testing.T) {
		p := newRig(t).person()
		form := p.answering(whole)
		first, second := form.send("elsewhere", "on"), form.send("elsewhere", "on")
		code := regexp.MustCompile(`code=mcpac_[\w-]+`)
		if got := code.FindString(first.body); got == "" || got != code.FindString(second.body) {
			t.Errorf("got %q and %q", got, code.FindString(second.body))
		}
	})
	t.Run("a denial is an answer, also of the form before a provider", func(t *testing.T) {
		r, _ := delegated(t)
		p := r.person()
		query := authorizeQuery("provider", "google", "scope", "mcp notes:write")
		atProvider := answering{p, consentStep(t, p.get("/authorize?"+query.Encode()))}
		for _, form := range []answering{atProvider, r.person().answering(whole)} {
			for range 2 { // after a double click the browser shows the second answer
				if got := responseOf(t, form.send("decision", "deny")); got.Get("error") != "access_denied" {
					t.Errorf("got %v, want access_denied", got)
				}
			}
			pg := form.send()
			if form == atProvider {
				pg = p.back(callback(t, "google", pg))
			}
			wantAnswered(t, pg)
		}
		if n := strings.Count(p.log.String(), `"msg":"consent.approved"`); n != 0 {
			t.Errorf("%d approvals are in the log", n)
		}
	})
	t.Run("an approval is not denied by its page", func(t *testing.T) {
		p := newRig(t).person()
		form := p.answering(whole)
		code := responseOf(t, form.send()).Get("code")
		wantAnswered(t, form.send("decision", "deny"))
		p.wantTokens(code)
		wantAnswered(t, form.send("decision", "deny"))
		p.wantConnections(1)
	})
	t.Run("the next request is another answer", func(t *testing.T) {
		p := newRig(t).person()
		a, b := responseOf(t, p.answering(whole).send()), responseOf(t, p.answering(whole).send())
		if a.Get("code") == b.Get("code") {
			t.Error("two pages have one code")
		}
		p.wantTokens(a.Get("code"))
		p.wantTokens(b.Get("code"))
	})
	t.Run("an account at a provider: a page gives one code, however often the person goes there", func(t *testing.T) {
		r, _ := delegated(t)
		p := r.person()
		query := authorizeQuery("provider", "google", "scope", "mcp notes:write")
		form := answering{p, consentStep(t, p.get("/authorize?"+query.Encode()))}
		first := responseOf(t, p.back(callback(t, "google", form.send())))
		second := responseOf(t, p.back(callback(t, "google", form.send())))
		if first.Get("code") == "" || first.Get("code") != second.Get("code") {
			t.Fatalf("got %v and %v", first, second)
		}
		p.wantTokens(first.Get("code"))
		wantAnswered(t, p.back(callback(t, "google", form.send())))
		p.wantConnections(1)
	})
}

// wantTokens redeems a code.
func (p *person) wantTokens(code string) map[string]any {
	p.t.Helper()
	status, out := p.token(codeForm(code))
	if status != http.StatusOK || out["access_token"] == nil {
		p.t.Fatalf("got %d %v", status, out)
	}
	return out
}
