package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// pausedRig returns a user who has connected a self-registered application, and has paused it.
func pausedRig(t *testing.T) (*rig, *person, storage.Client, map[string]any) {
	t.Helper()
	r, p := withDevice(t)
	app := storage.Client{
		ID: secrets.ID("mcp_"), Name: "Claude", RedirectURIs: []string{"https://app.example/cb"},
		GrantTypes: []string{oauth.GrantCode, oauth.GrantRefresh, oauth.GrantDeviceCode}, AuthMethod: "none",
		Source: storage.SourceDynamic, CreatedAt: r.now(),
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(r.store.PutClient(t.Context(), app))
	out := p.approve(authorizeQuery("client_id", app.ID, "redirect_uri", app.RedirectURIs[0]))
	status, tokens := p.token(codeForm(out.Get("code"), "client_id", app.ID, "redirect_uri", app.RedirectURIs[0]))
	if status != http.StatusOK {
		t.Fatalf("got %d %v", status, tokens)
	}
	return r, p, app, tokens
}

func (r *rig) pause(t *testing.T, app storage.Client) storage.Pause {
	t.Helper()
	u, err := r.store.UserByName(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	live, err := r.store.Connections(t.Context(), u.ID, "", r.now(), 10)
	if err != nil || len(live) == 0 {
		t.Fatal(err, len(live))
	}
	if err := r.store.PauseGrant(t.Context(), u.ID, live[0].ID, r.now()); err != nil {
		t.Fatal(err)
	}
	p, err := r.store.PauseByID(t.Context(), storage.PauseID(u.ID, app.Application(), testResource))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPausedApplication checks that a paused application gets no access in any way until it is
// resumed on a page (EN-02).
func TestPausedApplication(t *testing.T) {
	asks := func(app storage.Client, change ...string) url.Values {
		return authorizeQuery(append([]string{"client_id", app.ID, "redirect_uri", app.RedirectURIs[0]}, change...)...)
	}
	again := func(t *testing.T, r *rig, app storage.Client) storage.Client {
		t.Helper()
		app.ID = secrets.ID("mcp_")
		if err := r.store.PutClient(t.Context(), app); err != nil {
			t.Fatal(err)
		}
		return app
	}
	isPaused := func(t *testing.T, pg page) {
		t.Helper()
		if pg.status != http.StatusOK || !strings.Contains(pg.body, "You have paused this application") ||
			!strings.Contains(pg.body, testResource) || !strings.Contains(pg.body, "Claude") {
			t.Fatalf("got %d %.600s", pg.status, pg.body)
		}
	}
	t.Run("EN-02 at /authorize a page says so, for each registration of the program", func(t *testing.T) {
		r, p, app, _ := pausedRig(t)
		r.pause(t, app)
		isPaused(t, p.get("/authorize?"+asks(app).Encode()))
		isPaused(t, p.get("/authorize?"+asks(again(t, r, app)).Encode()))
	})
	t.Run("EN-02 a page says so to the client that was paused, whatever it is called now", func(t *testing.T) {
		r, p, app, _ := pausedRig(t)
		r.pause(t, app)
		app.Name, app.Source = "Claude 2", storage.SourceManaged
		if err := r.store.ReplaceClient(t.Context(), app, r.now()); err != nil {
			t.Fatal(err)
		}
		isPaused(t, p.get("/authorize?"+asks(app).Encode()))
	})
	t.Run("EN-02 prompt=none is interaction_required", func(t *testing.T) {
		r, p, app, _ := pausedRig(t)
		r.pause(t, app)
		for _, client := range []storage.Client{app, again(t, r, app)} {
			pg := p.get("/authorize?" + asks(client, "prompt", "none").Encode())
			if out := responseOf(t, pg); out.Get("error") != string(oauth.InteractionRequired) || out.Has("code") {
				t.Errorf("got %v", out)
			}
		}
	})
	t.Run("EN-02 Cancel is a denial", func(t *testing.T) {
		r, p, app, _ := pausedRig(t)
		r.pause(t, app)
		pg := p.get("/authorize?" + asks(app).Encode())
		out := responseOf(t, p.post("/paused", url.Values{"step": {formStep(t, pg, "/paused")}, "decision": {"deny"}}))
		if out.Get("error") != string(oauth.AccessDenied) || out.Get("state") != asks(app).Get("state") {
			t.Errorf("got %v", out)
		}
		isPaused(t, p.get("/authorize?"+asks(app).Encode()))
	})
	t.Run("EN-02 Resume needs a proof of the last minutes, and the person is asked what it may do", func(t *testing.T) {
		r, p, app, _ := pausedRig(t)
		paused := r.pause(t, app)
		r.advance(6 * time.Minute)
		pg := p.get("/authorize?" + asks(app).Encode())
		isPaused(t, pg)
		resume := url.Values{"step": {formStep(t, pg, "/paused")}, "decision": {"resume"}}
		p.post("/paused", resume).leads(t, "/prove?to=")
		if _, err := r.store.PauseByID(t.Context(), paused.ID); err != nil {
			t.Fatal(err)
		}
		r.advance(-6 * time.Minute)
		back := p.post("/paused", resume)
		back.leads(t, "/authorize?")
		if pg := p.get(p.there(back)); !strings.Contains(pg.body, "/consent") {
			t.Errorf("got %d %.300s", pg.status, pg.body)
		}
		unseen, err := r.store.UnseenNotices(t.Context(), paused.UserID)
		if err != nil || len(unseen) == 0 {
			t.Errorf("EN-02 the person was not told: %v", err)
		}
	})
	t.Run("EN-02 a page of before the pause approves nothing", func(t *testing.T) {
		r, p, app, _ := pausedRig(t)
		pg := p.get("/authorize?" + asks(app, "prompt", "consent").Encode())
		r.pause(t, app)
		isPaused(t, p.post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"approve"}}))
	})
	t.Run("EN-02 a code of before the pause, and a refresh token", func(t *testing.T) {
		r, p, app, tokens := pausedRig(t)
		out := p.approve(asks(app, "prompt", "consent"))
		r.pause(t, app)
		status, answer := p.token(codeForm(out.Get("code"), "client_id", app.ID, "redirect_uri", app.RedirectURIs[0]))
		wantError(t, status, answer, 400, oauth.InvalidGrant)
		status, answer = p.token(url.Values{"grant_type": {"refresh_token"}, "client_id": {app.ID},
			"refresh_token": {tokens["refresh_token"].(string)}})
		wantError(t, status, answer, 503, oauth.TemporarilyUnavailable)
	})
	t.Run("EN-02 the page of a device says so, denies and resumes", func(t *testing.T) {
		r, p, app, _ := pausedRig(t)
		r.pause(t, app)
		for _, verdict := range []string{"deny", "resume"} {
			_, a := p.ask("client_id", app.ID)
			pg := p.get(devicePath(a.UserCode))
			isPaused(t, pg)
			after := p.post("/paused", url.Values{"step": {formStep(t, pg, "/paused")}, "decision": {verdict}})
			if verdict == "deny" {
				status, out := p.poll(a, "client_id", app.ID)
				wantError(t, status, out, 400, oauth.AccessDenied)
				continue
			}
			after.leads(t, "/device?user_code=")
			p.decideDevice(p.get(p.there(after)), "approve")
			if status, out := p.poll(a, "client_id", app.ID); status != http.StatusOK {
				t.Errorf("got %d %v", status, out)
			}
		}
	})
	t.Run("EN-02 the account page shows a pause that outlives its grants, and resumes it", func(t *testing.T) {
		r, p, app, _ := pausedRig(t)
		paused := r.pause(t, app)
		if err := r.store.DeleteClient(t.Context(), app.ID, r.now()); err != nil {
			t.Fatal(err)
		}
		pg := p.get("/account")
		if !strings.Contains(pg.body, paused.ID) || !strings.Contains(pg.body, "Claude") {
			t.Fatalf("got %d, without the pause", pg.status)
		}
		act := url.Values{"step": {formStep(t, pg, "/account/connections")}, "pause": {paused.ID}, "act": {"end-pause"}}
		if after := p.post("/account/connections", act); after.status != http.StatusSeeOther {
			t.Errorf("got %d %.300s", after.status, after.body)
		}
		if pg := p.get("/account"); strings.Contains(pg.body, paused.ID) {
			t.Error("it is paused still")
		}
	})
	t.Run("EN-02 PE-08 another person's pause is unknown", func(t *testing.T) {
		r, _, app, _ := pausedRig(t)
		paused := r.pause(t, app)
		if _, err := r.Users().Create(t.Context(), "bob", bobsPassword, false); err != nil {
			t.Fatal(err)
		}
		bob := r.person()
		bob.post("/login", url.Values{
			"step": {bob.get("/login").step(t)}, "username": {"bob"}, "password": {bobsPassword},
		})
		if pg := bob.account("connections", "pause", paused.ID, "act", "end-pause"); pg.status != http.StatusOK {
			t.Errorf("got %d %.300s", pg.status, pg.body)
		}
		if _, err := r.store.PauseByID(t.Context(), paused.ID); err != nil {
			t.Error(err)
		}
	})
}
