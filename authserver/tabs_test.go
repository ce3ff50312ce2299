package authserver

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// together returns a browser that has opened several pages at once: none of the requests had a
// cookie.
func (r *rig) together(paths ...string) (*person, []page) {
	r.t.Helper()
	p, pages := r.person(), []page(nil)
	for _, path := range paths {
		tab := r.person()
		pages = append(pages, tab.get(path))
		p.client.Jar.SetCookies(mustURL(r.t, r.http.URL), tab.client.Jar.Cookies(mustURL(r.t, r.http.URL)))
	}
	return p, pages
}

// TestTabsOpenedTogether checks several tabs that open at once. A desktop client opens one for each
// of its MCP servers, and a browser restores those of the previous day.
func TestTabsOpenedTogether(t *testing.T) {
	authorize := func(change ...string) string { return "/authorize?" + authorizeQuery(change...).Encode() }
	t.Run("RU-03 password", func(t *testing.T) {
		p, tabs := newRig(t).together(authorize(), authorize("state", "2"), authorize("state", "3"))
		for i, tab := range tabs {
			pg := p.post("/login", url.Values{
				"step": {tab.step(t)}, "username": {"alice"}, "password": {"correct horse battery"},
			})
			if pg.status != http.StatusSeeOther {
				t.Fatalf("tab %d: got %d %.300s", i, pg.status, pg.body)
			}
			if pg = p.get(p.there(pg)); i == 0 {
				pg = p.post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"approve"}})
			}
			if !responseOf(t, pg).Has("code") {
				t.Errorf("tab %d: no code", i)
			}
		}
	})
	t.Run("RU-03 provider", func(t *testing.T) {
		r, _ := delegated(t)
		p, tabs := r.together(authorize("provider", "google"), authorize("provider", "google", "state", "2"))
		var left []page
		for _, tab := range tabs {
			left = append(left, p.post("/consent", url.Values{"step": {consentStep(t, tab)}, "decision": {"approve"}}))
		}
		for i, pg := range left {
			if !responseOf(t, p.back(callback(t, "google", pg))).Has("code") {
				t.Errorf("tab %d: no code", i)
			}
		}
	})
	t.Run("RU-03 device, setup, invitation, and an application beside them", func(t *testing.T) {
		r, tv := withDevice(t)
		_, a := tv.ask()
		invited, err := r.users.Invite(t.Context(), r.as.Issuer, users.Invitation{Name: "berta"})
		if err != nil {
			t.Fatal(err)
		}
		setup, err := r.SetupLink(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, token, _ := strings.Cut(setup, "token=")
		p, tabs := r.together(authorize(), "/setup", pathOf(t, invited.URL), devicePath(a.UserCode))
		for path, form := range map[string]url.Values{
			"/setup": {
				"step": {tabs[1].step(t)}, "token": {token}, "username": {"root"}, "password": {newPassword},
			},
			pathOf(t, invited.URL): passwordForm(tabs[2].step(t), newPassword),
		} {
			if pg := p.post(path, form); pg.status != http.StatusOK {
				t.Errorf("%s: got %d %.300s", path, pg.status, pg.body)
			}
		}
		pg := p.post("/login", url.Values{
			"step": {tabs[3].step(t)}, "username": {"alice"}, "password": {"correct horse battery"},
		})
		pg = p.decideDevice(p.get(p.there(pg)), "approve")
		if !strings.Contains(pg.body, "Your device is connected") {
			t.Errorf("device: got %d %.300s", pg.status, pg.body)
		}
	})
	t.Run("RU-03 requests that were pushed", func(t *testing.T) {
		r := newRig(t)
		var paths []string
		for range 2 {
			paths = append(paths, "/authorize?"+url.Values{
				"client_id": {"app"}, "request_uri": {r.person().reference(authorizeQuery())},
			}.Encode())
		}
		p, tabs := r.together(paths...)
		for i, tab := range tabs {
			if pg := p.get(p.there(tab)); pg.status != http.StatusOK {
				t.Errorf("tab %d: got %d %.300s", i, pg.status, pg.body)
			}
			if pg := p.get(paths[i]); pg.status != http.StatusSeeOther {
				t.Errorf("tab %d, loaded again: got %d %.300s", i, pg.status, pg.body)
			}
		}
	})
	t.Run("RU-03 a link that is good in one browser alone", func(t *testing.T) {
		r := newRig(t)
		alice, err := r.users.Find(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		p, tabs := r.together(authorize(), authorize("state", "2"))
		for i, tab := range tabs {
			req, _ := http.NewRequest(http.MethodGet, r.http.URL, nil)
			for _, c := range (&http.Response{Header: tab.header}).Cookies() {
				req.AddCookie(c)
			}
			token := fmt.Sprint("mcplk_", i)
			reset := storage.OneTimeLink{
				Hash: secrets.Hash(token), Kind: storage.LinkReset, UserID: alice.ID,
				Browser:   secrets.Hash(r.sessions.Browser(nil, req)),
				NotBefore: r.now(), ExpiresAt: r.now().Add(time.Hour), CreatedAt: r.now(),
			}
			if err := r.store.PutLink(t.Context(), reset, r.now()); err != nil {
				t.Fatal(err)
			}
			if pg := r.person().get("/link/" + token); pg.status == http.StatusOK {
				t.Errorf("another browser: got %d", pg.status)
			}
			step := p.get("/link/" + token).step(t)
			if pg := p.post("/link/"+token, passwordForm(step, newPassword)); pg.status != http.StatusOK {
				t.Errorf("tab %d: got %d %.300s", i, pg.status, pg.body)
			}
		}
	})
}
