package authserver

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/qr"
)

var shownAnswer = regexp.MustCompile(`<textarea id="answer"[^>]*>([^<]*)</textarea>`)

// showAnswer approves a request for an application on another computer.
func (p *person) showAnswer(pg page) page {
	p.t.Helper()
	return p.post("/consent",
		url.Values{"step": {consentStep(p.t, pg)}, "decision": {"approve"}, "elsewhere": {"show"}})
}

func answerOf(t *testing.T, pg page) *url.URL {
	t.Helper()
	m := shownAnswer.FindStringSubmatch(pg.body)
	if pg.status != http.StatusOK || m == nil {
		t.Fatalf("got %d %s %s", pg.status, pg.header.Get("Location"), pg.body)
	}
	u, err := url.Parse(html.UnescapeString(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestAnswerShown(t *testing.T) {
	t.Run("PE-14 the answer is shown and not sent, and the application redeems it once", func(t *testing.T) {
		p := newRig(t).person()
		asks := p.login(authorizeQuery())
		if !strings.Contains(asks.body, `name="elsewhere"`) {
			t.Fatalf("the page does not offer it: %s", asks.body)
		}
		pg := p.showAnswer(asks)
		back := answerOf(t, pg)
		q := back.Query()
		if !strings.HasPrefix(back.String(), testRedirect+"?") || q.Get("state") != "st-1" ||
			q.Get("iss") != p.http.URL || q.Get("code") == "" {
			t.Errorf("got %s", back)
		}
		if pg.header.Get("Location") != "" || pg.header.Get("Refresh") != "" {
			t.Errorf("the browser is sent elsewhere: %v", pg.header)
		}
		if strings.Count(pg.body, q.Get("code")) != 1 || strings.Contains(pg.body, "href=\"http://127") {
			t.Errorf("the code is more than shown: %s", pg.body)
		}
		for name, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "same-origin"} {
			if got := pg.header.Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		for _, want := range []string{"only to the application that you started yourself", "60 seconds", `class="qr"`} {
			if !strings.Contains(pg.body, want) {
				t.Errorf("the page does not say %q", want)
			}
		}
		// package qr tests that the picture of a text matches its code
		if path, _, err := qr.Path(back.String()); err != nil || !strings.Contains(pg.body, `<path d="`+path+`"/>`) {
			t.Errorf("the picture is not that of the address: %v", err)
		}
		if status, out := p.token(codeForm(q.Get("code"))); status != http.StatusOK {
			t.Fatalf("got %d %v", status, out)
		}
		if status, out := p.token(codeForm(q.Get("code"))); status != 400 || out["error"] != "invalid_grant" {
			t.Errorf("a second time: got %d %v", status, out)
		}
		log := p.log.String()
		if !strings.Contains(log, `"msg":"answer.shown"`) || strings.Contains(log, q.Get("code")) {
			t.Error("SP-28: the log lacks the event, or has too much of it")
		}
	})
	t.Run("PE-14 the code lives as long as any other", func(t *testing.T) {
		p := newRig(t).person()
		code := answerOf(t, p.showAnswer(p.login(authorizeQuery()))).Query().Get("code")
		p.advance(time.Minute)
		if status, out := p.token(codeForm(code)); status != 400 || out["error"] != "invalid_grant" {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("PE-14 an https redirect URI is reached from any computer: the answer is sent", func(t *testing.T) {
		p := newRig(t).person()
		query := authorizeQuery("client_id", "static", "redirect_uri", "https://app.example.com/cb?a=1")
		asks := p.login(query)
		if strings.Contains(asks.body, `name="elsewhere"`) {
			t.Error("it is offered")
		}
		if pg := p.showAnswer(asks); pg.status != http.StatusSeeOther || responseOf(t, pg).Get("code") == "" {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
	t.Run("PE-14 the form of another browser shows nothing", func(t *testing.T) {
		r := newRig(t)
		step := consentStep(t, r.person().login(authorizeQuery()))
		pg := r.person().post("/consent", url.Values{"step": {step}, "decision": {"approve"}, "elsewhere": {"show"}})
		if pg.status != 400 || shownAnswer.MatchString(pg.body) {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
	t.Run("PE-14 a person who then signs in at a provider is shown the answer afterwards", func(t *testing.T) {
		r, _ := delegated(t)
		p := r.person()
		left := p.showAnswer(p.get("/authorize?" + authorizeQuery("provider", "google").Encode()))
		code := answerOf(t, p.back(callback(t, "google", left))).Query().Get("code")
		if status, out := p.token(codeForm(code)); status != http.StatusOK {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("PE-14 a denial has no answer to carry", func(t *testing.T) {
		p := newRig(t).person()
		pg := p.post("/consent", url.Values{
			"step": {consentStep(t, p.login(authorizeQuery()))}, "decision": {"deny"}, "elsewhere": {"show"},
		})
		if responseOf(t, pg).Get("error") != "access_denied" {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
}
