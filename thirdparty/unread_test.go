package thirdparty

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestUnreadProvider: each outage of a provider's metadata or keys causes one event, whether
// sign-ins or questions about sessions notice it.
func TestUnreadProvider(t *testing.T) {
	depart := func(r *rig) error {
		_, err := r.Depart(r.t.Context(), signIn)
		return err
	}
	comeBack := func(r *rig) error {
		_, err := r.come(r.leave(signIn), "corp")
		return err
	}
	for name, tt := range map[string]struct {
		endpoint fakeidp.Endpoint
		try      func(r *rig) error
	}{
		"metadata": {fakeidp.Discovery, depart},
		"keys":     {fakeidp.Keys, comeBack},
	} {
		t.Run("AS-223: the outage is told once, of "+name, func(t *testing.T) {
			r := newRig(t, nil)
			for outage := 1; outage <= 2; outage++ {
				r.Advance(25 * time.Hour) // so that the cached documents are too old
				r.up.RotateKeys()
				r.up.Fail(tt.endpoint, fakeidp.Down)
				for range 4 {
					if err := tt.try(r); code(err) != oauth.TemporarilyUnavailable {
						t.Fatalf("got %v, want %s", err, oauth.TemporarilyUnavailable)
					}
					if n := r.Log.Events(audit.ProviderUnreachable); n != outage {
						t.Fatalf("outage %d: got %d events, want one for each", outage, n)
					}
				}
				r.up.Heal()
				if err := comeBack(r); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	t.Run("AS-223: what a question about a session has told, a sign-in does not, nor the other way round",
		func(t *testing.T) {
			for _, first := range []string{"session", "sign-in"} {
				r := newRig(t, nil)
				a, _ := r.signIn("")
				r.Advance(25 * time.Hour)
				r.up.FailAll(fakeidp.Down)
				ask := func() { _ = r.Check(t.Context(), a.Upstream, time.Second) }
				if first == "session" {
					ask()
				}
				if err := depart(r); code(err) != oauth.TemporarilyUnavailable {
					t.Errorf("got %v, want %s", err, oauth.TemporarilyUnavailable)
				}
				ask()
				if n := r.Log.Events(audit.ProviderUnreachable); n != 1 {
					t.Errorf("%s first: got %d events, want 1", first, n)
				}
			}
		})
	t.Run("AS-223: what is asked too often is not away", func(t *testing.T) {
		r := newRig(t, nil)
		r.up.Fail(fakeidp.Discovery, fakeidp.Error429)
		if err := depart(r); code(err) != oauth.TemporarilyUnavailable {
			t.Errorf("got %v, want %s", err, oauth.TemporarilyUnavailable)
		}
		if n := r.Log.Events(audit.ProviderUnreachable); n != 0 {
			t.Errorf("got %d events, want 0", n)
		}
	})
}
