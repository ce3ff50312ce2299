package authserver

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// pauseClient pauses the application of a client for a user, using a grant that was approved on a
// page or created from an assertion.
func (r *rig) pauseClient(userID, clientID string) {
	r.t.Helper()
	live, err := r.store.Connections(r.t.Context(), userID, "", r.now(), 10)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, c := range live {
		if c.ClientID != clientID {
			continue
		}
		if err := r.store.PauseGrant(r.t.Context(), userID, c.ID, r.now()); err != nil {
			r.t.Fatal(err)
		}
		return
	}
	r.t.Fatalf("%s has no connection of %s", userID, clientID)
}

// TestPausedAssertions checks that an assertion gets a paused application nothing, and is valid
// again after it is resumed (EN-02).
func TestPausedAssertions(t *testing.T) {
	r := newBearerRig(t)
	_, claims := r.granted(r.jag(r.claims()))
	r.pauseClient(claims.Subject, "agent")
	late := r.claims()
	late["jti"] = "while it is paused"
	var out map[string]any
	pg := r.jag(late)
	if err := json.Unmarshal([]byte(pg.body), &out); err != nil {
		t.Fatal(err, pg.body)
	}
	wantError(t, pg.status, out, http.StatusServiceUnavailable, oauth.TemporarilyUnavailable)
	pauses, err := r.store.Pauses(t.Context(), claims.Subject)
	if err != nil || len(pauses) != 1 {
		t.Fatalf("EN-02: %d pauses, %v", len(pauses), err)
	}
	if err := r.store.EndPause(t.Context(), claims.Subject, pauses[0].ID, r.now()); err != nil {
		t.Fatal(err)
	}
	r.granted(r.jag(late))
}

// TestPausedExchanges checks that a paused application gets no token for a sub-agent, and no
// assertion of its user (EN-02).
func TestPausedExchanges(t *testing.T) {
	t.Run("EN-02 a token of before the pause is exchanged for none", func(t *testing.T) {
		r, p, app, tokens := pausedRig(t)
		r.pause(t, app)
		status, out := p.token(url.Values{
			"grant_type": {oauth.GrantTokenExchange}, "client_id": {app.ID},
			"subject_token": {tokens["access_token"].(string)}, "subject_token_type": {oauth.TokenTypeAccess},
		})
		wantError(t, status, out, http.StatusServiceUnavailable, oauth.TemporarilyUnavailable)
	})
	t.Run("EN-02 a paused client for sign-ins gets no ID-JAG", func(t *testing.T) {
		p := withAudience(t)
		out := p.identified(signInQuery("scope", "openid profile offline_access"))
		_, id := jwtOf(t, out["id_token"])
		u := id["sub"].(string)
		ask := map[string]url.Values{
			"ID token":      idjagForm(out["id_token"]),
			"refresh token": idjagForm(out["refresh_token"], "subject_token_type", oauth.TokenTypeRefresh),
		}
		for name, form := range ask {
			if status, got := p.token(form, asDesk...); status != http.StatusOK {
				t.Fatalf("%s: got %d %v before the pause", name, status, got)
			}
		}
		p.pauseClient(u, "desk")
		for name, form := range ask {
			status, got := p.token(form, asDesk...)
			if status == http.StatusOK || got["access_token"] != nil {
				t.Errorf("EN-02: by its %s a paused client got %d %v", name, status, got)
			}
			wantError(t, status, got, http.StatusBadRequest, oauth.InvalidGrant)
		}
	})
}
