package authserver

import (
	"net/url"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestRevokedAfterExpiry checks that every end of access also counts for an expired token, so that
// it ends calls that outlast their token (RU-06). The expiry alone is not a revocation.
func TestRevokedAfterExpiry(t *testing.T) {
	type ending struct {
		name string
		end  func(*rig, oauth.Introspection) error
	}
	endings := []ending{
		{"nothing", nil},
		{"a revocation by the operator", func(r *rig, of oauth.Introspection) error {
			return r.store.RevokeGrant(t.Context(), of.GrantID, storage.ByOperator, r.now())
		}},
		{"a disabled user", func(r *rig, of oauth.Introspection) error {
			return r.store.SetUserDisabled(t.Context(), of.Subject, true, r.now())
		}},
		{"a pause", func(r *rig, of oauth.Introspection) error {
			return r.store.PauseGrant(t.Context(), of.Subject, of.GrantID, r.now())
		}},
		{"a deleted client", func(r *rig, of oauth.Introspection) error {
			return r.store.DeleteClient(t.Context(), of.ClientID, r.now())
		}},
	}
	for _, e := range endings {
		for _, after := range []time.Duration{-3 * time.Second, 0, time.Minute} { // the expiry of the token
			t.Run("RU-06 "+e.name+" "+after.String()+" after the expiry", func(t *testing.T) {
				r := newRig(t)
				token, _ := r.person().signIn()["access_token"].(string)
				wantRevoked(t, r, token, after, e.end)
			})
		}
	}
	t.Run("RU-06 a token of a machine that is revoked when it has expired", func(t *testing.T) {
		r := newRig(t)
		p := r.person()
		form := url.Values{"grant_type": {oauth.GrantClientCredentials}, "resource": {testResource}}
		_, out := p.token(form, asMachine...)
		token, _ := out["access_token"].(string)
		wantRevoked(t, r, token, time.Minute, func(r *rig, _ oauth.Introspection) error {
			p.post("/revoke", url.Values{"token": {token}}, asMachine...)
			_, err := r.store.Sweep(t.Context(), storage.Retention{Now: r.now()}, 100)
			return err
		})
	})
}

// wantRevoked checks that a token is valid until end is called, at the given time after its expiry.
func wantRevoked(
	t *testing.T, r *rig, token string, after time.Duration, end func(*rig, oauth.Introspection) error,
) {
	t.Helper()
	of, err := r.Introspect(t.Context(), token)
	if err != nil || !of.Active {
		t.Fatalf("got %+v, %v", of, err)
	}
	r.advance(time.Unix(of.Expires, 0).Add(after).Sub(r.now()))
	revoked := func(want bool) {
		t.Helper()
		if got, err := r.Revoked(t.Context(), of); err != nil || got != want {
			t.Errorf("revoked: got %v, %v, want %v", got, err, want)
		}
	}
	revoked(false)
	if end == nil {
		return
	}
	if err := end(r, of); err != nil {
		t.Fatal(err)
	}
	revoked(true)
}
