package authserver

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// identifiedAt signs the user in for the client desk at a provider, and returns the token response.
func (p *person) identifiedAt(provider string) map[string]any {
	p.t.Helper()
	query := signInQuery("provider", provider, "scope", "openid offline_access")
	back := p.back(callback(p.t, provider, p.leave(query)))
	form := codeForm(responseOf(p.t, back).Get("code"), "client_id", "", "resource", "")
	status, out := p.token(form, asDesk...)
	if status != http.StatusOK {
		p.t.Fatalf("got %d %v", status, out)
	}
	return out
}

// TestAssertionsRestOnTheProvider checks that access that ends between the sign-in and the exchange
// ends assertions (AS-196).
func TestAssertionsRestOnTheProvider(t *testing.T) {
	for _, tt := range []struct {
		name   string
		end    func(t *testing.T, r *rig, f *providers, userID string)
		status int
		code   oauth.Code
	}{
		{"the session at the provider has ended, as it told us", func(t *testing.T, _ *rig, f *providers, _ string) {
			f.end(t, "google")
		}, 400, oauth.InvalidGrant},
		{"the provider says so when it is asked", func(_ *testing.T, _ *rig, f *providers, _ string) {
			f.set(func(f *providers) { f.checkErr = storage.ErrRevoked })
		}, 400, oauth.InvalidGrant},
		{"the provider cannot be asked", func(_ *testing.T, _ *rig, f *providers, _ string) {
			f.set(func(f *providers) { f.checkErr = errNotNow })
		}, 503, oauth.TemporarilyUnavailable},
		{"its rules leave nothing", func(_ *testing.T, _ *rig, f *providers, _ string) {
			f.set(func(f *providers) { f.permitted = oauth.Scopes{"other"} })
		}, 400, oauth.AccessDenied},
		{"the person was disabled", func(t *testing.T, r *rig, _ *providers, id string) {
			if err := r.store.SetUserDisabled(t.Context(), id, true, r.now()); err != nil {
				t.Fatal(err)
			}
		}, 400, oauth.InvalidGrant},
		{"the person was disabled, and enabled again", func(t *testing.T, r *rig, _ *providers, id string) {
			for _, off := range []bool{true, false} {
				if err := r.store.SetUserDisabled(t.Context(), id, off, r.now()); err != nil {
					t.Fatal(err)
				}
			}
		}, 400, oauth.InvalidGrant},
		{"the person stopped everything", func(t *testing.T, r *rig, _ *providers, id string) {
			if err := r.store.StopEverything(t.Context(), id, r.now()); err != nil {
				t.Fatal(err)
			}
		}, 400, oauth.InvalidGrant},
		{"the account was deleted", func(t *testing.T, r *rig, _ *providers, id string) {
			if err := r.store.DeleteUser(t.Context(), id, r.now()); err != nil {
				t.Fatal(err)
			}
		}, 400, oauth.InvalidGrant},
	} {
		t.Run("AS-196 "+tt.name, func(t *testing.T) {
			r, f := delegated(t)
			r.addAudience()
			p := r.person()
			out := p.identifiedAt("google")
			_, claims := jwtOf(t, out["id_token"])
			forms := map[string]any{oauth.TokenTypeID: out["id_token"], oauth.TokenTypeRefresh: out["refresh_token"]}
			for kind, token := range forms {
				f.set(func(f *providers) { f.checkedAge = nil })
				status, answer := p.token(idjagForm(token, "subject_token_type", kind), asDesk...)
				if status != http.StatusOK || !slices.Equal(f.checkedAge, []time.Duration{10 * time.Second}) {
					t.Fatalf("%s: before it: got %d %v, asked %v", kind, status, answer, f.checkedAge)
				}
			}
			tt.end(t, r, f, claims["sub"].(string))
			for kind, token := range forms {
				status, answer := p.token(idjagForm(token, "subject_token_type", kind), asDesk...)
				if wantError(t, status, answer, tt.status, tt.code); t.Failed() {
					t.Fatal(kind)
				}
			}
		})
	}
}
