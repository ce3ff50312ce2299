package thirdparty

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

// Security L8 of the providers' report: the provider is notified when a session ends here.
func TestTokensAreGivenBack(t *testing.T) {
	for name, end := range map[string]func(r *rig, a delegation.Result, s storage.Session) error{
		"PL8: user disable": func(r *rig, a delegation.Result, _ storage.Session) error {
			return r.store.SetUserDisabled(r.t.Context(), a.User.ID, true, r.Now())
		},
		"PL8: user delete": func(r *rig, a delegation.Result, _ storage.Session) error {
			return r.store.DeleteUser(r.t.Context(), a.User.ID, r.Now())
		},
		"PL8: sign-out": func(r *rig, _ delegation.Result, s storage.Session) error {
			return r.store.EndSession(r.t.Context(), s.Hash, r.Now())
		},
		"PL8: a sweep of what nothing rests on": func(r *rig, _ delegation.Result, _ storage.Session) error {
			r.Advance(25 * time.Hour)
			_, err := r.store.Sweep(r.t.Context(), storage.Retention{Now: r.Now()}, 100)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			b, s := r.leave(signIn), r.minted()
			a, err := r.Return(t.Context(),
				delegation.AuthorizationResponse{Provider: "corp", Params: b.back, Binding: b.Binding, Session: s})
			if err != nil {
				t.Fatal(err)
			}
			r.handBack(t.Context())
			if n := len(r.up.Sessions(fakeidp.Alice.Subject)); n != 1 {
				t.Fatalf("%d sessions before the end", n)
			}
			if err := end(r, a, s); err != nil {
				t.Fatal(err)
			}
			r.handBack(t.Context())
			r.Close()
			if n := len(r.up.Sessions(fakeidp.Alice.Subject)); n != 0 {
				t.Errorf("%d sessions live on at the provider", n)
			}
			if n := r.rows("handbacks"); n != 0 {
				t.Errorf("%d rows are kept", n)
			}
		})
	}
	t.Run("PL8: a provider that is down keeps no person signed in, and nothing waits for it", func(t *testing.T) {
		r := newRig(t, nil)
		a, g := r.signIn("")
		r.up.FailAll(fakeidp.Down)
		if err := r.store.SetUserDisabled(t.Context(), a.User.ID, true, r.Now()); err != nil || r.active(g) {
			t.Errorf("got %v, active: %v", err, r.active(g))
		}
		r.handBack(t.Context())
		if n := r.rows("handbacks"); n != 0 {
			t.Errorf("%d rows are kept", n)
		}
	})
	t.Run("PL8: where a person's tokens are revoked together, another session of theirs is spared", func(t *testing.T) {
		r := newRig(t, nil)
		r.byID["corp"].traits.OneGrant = true
		r.signIn("")
		b, s := r.leave(signIn), r.minted()
		if _, err := r.Return(t.Context(),
			delegation.AuthorizationResponse{
				Provider: "corp", Params: b.back, Binding: b.Binding, Session: s}); err != nil {
			t.Fatal(err)
		}
		if err := r.store.EndSession(t.Context(), s.Hash, r.Now()); err != nil {
			t.Fatal(err)
		}
		r.handBack(t.Context())
		r.Close()
		if n := r.up.Calls(fakeidp.Revoke); n != 0 {
			t.Errorf("told %d times", n)
		}
	})
}
