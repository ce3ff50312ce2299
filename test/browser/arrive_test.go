package browser

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// TestFormsArrive: the callback of an application redirects on, to a host that no page of ours names.
// Chromium holds such redirects against the form-action of the page whose form they began with.
func TestFormsArrive(t *testing.T) {
	t.Parallel()
	d := demotest.Start(t, demotest.Options{})
	last := serveApp(t) // under another host than the callback
	hop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := strings.Replace(last.URL, "127.0.0.1", "localhost", 1)
		http.Redirect(w, r, to+"/callback?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(hop.Close)
	a := newManaged(t, d, "Redirects on", hop.URL+"/callback").app
	a.Server = hop
	b := open(t, looks[0])
	b.Do(chromedp.Navigate(a.link(d)))
	b.login(d.Username, d.Password)
	b.press("deny")
	if q := last.answer(t, b); q.Get("error") != "access_denied" {
		t.Errorf("RU-01 deny: got %v", q)
	}
	b.Do(chromedp.Navigate(a.link(d)))
	b.press("approve")
	if q := last.answer(t, b); !q.Has("code") {
		t.Errorf("RU-01 approve: got %v", q)
	}
	b.forget()
	b.Do(chromedp.Navigate(a.link(d)))
	b.login(d.Username, d.Password)
	if q := last.answer(t, b); !q.Has("code") {
		t.Errorf("RU-01 a sign-in with remembered consent: got %v", q)
	}
}
