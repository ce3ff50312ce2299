package authserver

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestOutageEndsNoGrant checks that a client gets valid tokens after a rotation whose reply was
// lost because the database hung for an hour (OP-03). A second use is detected after the grace
// period that follows the outage.
func TestOutageEndsNoGrant(t *testing.T) {
	lost := errors.New("the database has not answered")
	for name, c := range map[string]struct {
		first  error // of the rotation that was committed
		during bool  // the client asks while the database hangs
	}{
		"the client asks once more":             {lost, false},
		"the client asks again and again":       {lost, true},
		"the client hangs up, and asks again":   {context.Canceled, true},
		"only the readiness check sees the end": {context.Canceled, false},
	} {
		t.Run(name, func(t *testing.T) {
			var store *storagetest.Failing
			r := newRig(t, func(c *Config) {
				store = storagetest.NewFailing(c.Store.(storage.Store))
				c.Store = store
			})
			p := r.person()
			token := p.signIn()["refresh_token"]
			store.Surround(func(verb string, do func() error) error {
				if verb != "RotateRefresh" {
					return do()
				}
				if err := do(); err != nil {
					t.Errorf("the rotation: %v", err)
				}
				return c.first
			})
			if status, out := p.token(refreshForm(token)); status != http.StatusServiceUnavailable && c.first == lost {
				t.Fatalf("got %d %v", status, out)
			}
			store.Surround(func(string, func() error) error { return lost })
			r.followOutage(t.Context())
			if c.during {
				for range 6 {
					r.advance(10 * time.Minute)
					if status, out := p.token(refreshForm(token)); status != http.StatusServiceUnavailable {
						t.Fatalf("OP-03: while it hangs: got %d %v", status, out)
					}
				}
			} else {
				r.advance(time.Hour)
			}
			store.Surround(nil)
			r.followOutage(t.Context())
			r.advance(r.cfg.Tokens.RefreshGrace - time.Second)
			status, out := p.token(refreshForm(token))
			if status != http.StatusOK {
				t.Fatalf("OP-03: after the outage: got %d %v", status, out)
			}
			if left := out["expires_in"].(float64); left != r.cfg.Tokens.AccessTTL.Seconds() {
				t.Errorf("OP-03: the access token is good for %v s", left)
			}
			next := out["refresh_token"]
			if status, out = p.token(refreshForm(next)); status != http.StatusOK {
				t.Fatalf("OP-03: the successor: got %d %v", status, out)
			}
			r.advance(time.Second)
			status, reused := p.token(refreshForm(token))
			wantError(t, status, reused, http.StatusBadRequest, oauth.InvalidGrant)
			status, out = p.token(refreshForm(out["refresh_token"]))
			wantError(t, status, out, http.StatusBadRequest, oauth.InvalidGrant) // AS-95
		})
	}
}

// TestNoOutage checks that one failure of a working database does not count as an outage: a much
// later second use is detected (OP-03).
func TestNoOutage(t *testing.T) {
	var store *storagetest.Failing
	r := newRig(t, func(c *Config) {
		store = storagetest.NewFailing(c.Store.(storage.Store))
		c.Store = store
	})
	p := r.person()
	token := p.signIn()["refresh_token"]
	store.Surround(func(verb string, do func() error) error {
		err := do()
		if verb == "RotateRefresh" {
			err = errors.New("the connection was closed")
		}
		return err
	})
	p.token(refreshForm(token))
	store.Surround(nil)
	r.followOutage(t.Context())
	r.advance(r.cfg.Tokens.RefreshGrace)
	status, out := p.token(refreshForm(token))
	wantError(t, status, out, http.StatusBadRequest, oauth.InvalidGrant)
}
