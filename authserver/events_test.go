package authserver

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// last returns the last event of a name in the log.
func (r *rig) last(t *testing.T, event string) map[string]any {
	t.Helper()
	var out map[string]any
	for line := range strings.Lines(r.log.String()) {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil && fields["event"] == event {
			out = fields
		}
	}
	if out == nil {
		t.Fatalf("there is no %s in the log:\n%s", event, r.log.String())
	}
	return out
}

// TestEventsAnswerQuestions checks that the log can answer "Why did Bob's Claude fail yesterday at
// 15:02?" (issue 11, 4.2).
func TestEventsAnswerQuestions(t *testing.T) {
	type fields map[string]any
	check := func(t *testing.T, r *rig, event string, want fields) {
		t.Helper()
		got := r.last(t, event)
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s has %s %#v, want %#v", event, k, got[k], v)
			}
		}
		if id, _ := got["request_id"].(string); id == "" || got["remote"] != "127.0.0.1" {
			t.Errorf("%s has request_id %v and remote %v", event, got["request_id"], got["remote"])
		}
	}
	app := func(more fields) fields {
		more["client_id"], more["client_name"] = "app", "An App"
		return more
	}

	t.Run("a sign-in fails", func(t *testing.T) {
		r := newRig(t)
		try := func(name, password string) {
			p := r.person()
			pg := p.get("/authorize?" + authorizeQuery().Encode())
			p.post("/login", url.Values{"step": {pg.step(t)}, "username": {name}, "password": {password}})
		}
		alice, err := r.Users().Find(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		try("alice", "wrong")
		check(t, r, audit.LoginFailed, app(fields{"user": alice.ID, "user_name": "alice", "reason": "wrong password"}))
		try("nobody-of-this-name", "wrong")
		check(t, r, audit.LoginFailed, app(fields{"user": nil, "user_name": nil, "reason": "unknown account"}))
		if strings.Contains(r.log.String(), "nobody-of-this-name") {
			t.Error("an unknown user name is in the log")
		}
		try("alice", "correct horse battery")
		check(t, r, audit.LoginSucceeded, app(fields{"user_name": "alice"}))
		if err := r.Users().Disable(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		try("alice", "correct horse battery")
		check(t, r, audit.LoginFailed, app(fields{"user_name": "alice", "reason": "disabled"}))
	})

	t.Run("a person signs out, once", func(t *testing.T) {
		r := newRig(t)
		p := r.person()
		p.login(authorizeQuery())
		step := p.get("/").step(t)
		if pg := p.post("/logout", url.Values{"step": {step}}); pg.status != http.StatusOK {
			t.Fatalf("got %d", pg.status)
		}
		check(t, r, audit.LoggedOut, fields{"user_name": "alice"})
		r.log.Reset()
		if pg := p.post("/logout", url.Values{"step": {step}}); pg.status != http.StatusOK ||
			strings.Contains(r.log.String(), audit.LoggedOut) {
			t.Errorf("again: got %d, and the log has %s", pg.status, r.log)
		}
	})

	t.Run("a consent form comes without a decision", func(t *testing.T) {
		r := newRig(t)
		p := r.person()
		pg := p.login(authorizeQuery())
		p.post("/consent", url.Values{"step": {pg.step(t)}})
		check(t, r, audit.AuthorizeRefused,
			app(fields{"reason": "The form was not complete.", "resource": testResource}))
	})

	t.Run("a client gives its tokens back", func(t *testing.T) {
		r := newRig(t)
		for _, kind := range []string{"refresh_token", "access_token"} {
			p := r.person()
			token, _ := p.signIn()[kind].(string)
			grants, err := r.store.ListGrants(t.Context(), "", "", "", 2)
			if err != nil || len(grants) != 1 {
				t.Fatal(grants, err)
			}
			if pg := p.post("/revoke", url.Values{"token": {token}, "client_id": {"app"}}); pg.status != 200 {
				t.Fatalf("%s: got %d %s", kind, pg.status, pg.body)
			}
			check(t, r, audit.TokenRevoked, app(fields{"kind": kind, "grant": grants[0].ID, "user": grants[0].UserID}))
		}
	})

	for name, cut := range map[string]struct {
		do   func(r *rig, g storage.Grant) error
		want fields
	}{
		"grant revoke": {func(r *rig, g storage.Grant) error {
			return r.store.RevokeGrant(t.Context(), g.ID, storage.ByOperator, r.now())
		}, app(fields{"reason": "revoked", "revoked_by": "operator"})},
		"user disable": {func(r *rig, g storage.Grant) error { return r.Users().Disable(t.Context(), "alice") },
			app(fields{"reason": "revoked", "revoked_by": "user disabled"})},
		"client delete": {
			func(r *rig, g storage.Grant) error { return r.store.DeleteClient(t.Context(), "app", r.now()) },
			fields{"client_id": "app", "reason": "the client was deleted", "error": "invalid_client"}},
		"resource remove": {func(r *rig, g storage.Grant) error {
			return r.store.RemoveResource(t.Context(), "https://other.example/mcp", r.now())
		}, nil},
		"nothing, but it was long ago": {
			func(r *rig, g storage.Grant) error { r.advance(31 * 24 * time.Hour); return nil },
			app(fields{"reason": "expired", "revoked_by": nil})},
	} {
		if cut.want == nil {
			continue // the resources of the rig are configured
		}
		t.Run("a refresh fails after "+name, func(t *testing.T) {
			r := newRig(t)
			p := r.person()
			out := p.signIn()
			grants, err := r.store.ListGrants(t.Context(), "", "", "", 2)
			if err != nil || len(grants) != 1 {
				t.Fatal(grants, err)
			}
			if err := cut.do(r, grants[0]); err != nil {
				t.Fatal(err)
			}
			if status, got := p.token(refreshForm(out["refresh_token"])); status == http.StatusOK {
				t.Fatal(got)
			}
			check(t, r, audit.TokenRefused, cut.want)
			if cut.want["error"] == nil {
				check(t, r, audit.TokenRefused,
					fields{"grant": grants[0].ID, "user": grants[0].UserID, "resource": testResource,
						"error": "invalid_grant", "grant_type": "refresh_token"})
			}
			if cut.want["revoked_by"] != nil && r.last(t, audit.TokenRefused)["revoked_at"] != "2026-11-21T12:00:00Z" {
				t.Errorf("revoked at %v", r.last(t, audit.TokenRefused)["revoked_at"])
			}
		})
	}

	t.Run("an authorization request is refused", func(t *testing.T) {
		r := newRig(t)
		p := r.person()
		p.get("/authorize?" + authorizeQuery("resource", "https://mcp.example.com/mpc").Encode())
		check(t, r, audit.AuthorizeRefused,
			app(fields{"error": "invalid_target", "resource": "https://mcp.example.com/mpc",
				"redirect_uri": testRedirect}))
		p.get("/authorize?" + authorizeQuery("redirect_uri", "https://evil.example/cb?token=s3cret").Encode())
		check(t, r, audit.AuthorizeRefused,
			app(fields{"error": "invalid_request", "redirect_uri": "https://evil.example/cb"}))
		check(t, r, audit.AuthorizeRefused, fields{"reason": "the redirect URI is not registered for this client"})
		if strings.Contains(r.log.String(), "s3cret") {
			t.Error("the query of a redirect URI is in the log")
		}
		p.get("/authorize?" + authorizeQuery("client_id", "nobody").Encode())
		check(t, r, audit.AuthorizeRefused,
			fields{"error": "invalid_client", "client_id": "nobody", "reason": "the client is unknown"})
		p.login(authorizeQuery())
		p.get("/authorize?" + authorizeQuery("resource", "https://mcp.example.com/mpc").Encode())
		check(t, r, audit.AuthorizeRefused, app(fields{"error": "invalid_target", "user_name": "alice"}))
	})

	t.Run("a request and its event have one number, which is on the page", func(t *testing.T) {
		r := newRig(t)
		pg := r.person().get("/authorize?" + authorizeQuery("client_id", "nobody").Encode())
		id, _ := r.last(t, audit.AuthorizeRefused)["request_id"].(string)
		if id == "" || pg.header.Get("X-Request-Id") != id || !strings.Contains(pg.body, id) {
			t.Errorf("event %q, header %q, page %.300s", id, pg.header.Get("X-Request-Id"), pg.body)
		}
	})

	t.Run("what a command does is in the server's log once", func(t *testing.T) {
		r := newRig(t)
		command := audit.Deferred(r.store, r.Server.log)
		ctx := request.Without().Within(t.Context())
		command.Record(ctx, audit.UserChanged, audit.Person("usr_1", "bob"))
		if strings.Contains(r.log.String(), audit.UserChanged) {
			t.Fatal("the command has logged it")
		}
		for range 2 {
			if err := r.cfg.Audit.Collect(t.Context(), r.store, r.now()); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.last(t, audit.UserChanged); got["user_name"] != "bob" || got["at"] == nil ||
			strings.Count(r.log.String(), `"event":"user.changed"`) != 1 {
			t.Errorf("got %v", got)
		}
	})
}
