package thirdparty

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// reluctant is a store that first refuses to end sessions.
type reluctant struct {
	storage.Store
	refusals atomic.Int32
}

func (s *reluctant) EndUpstreamsOnce(
	ctx context.Context, keys []storage.UpstreamKey, reason string, use storage.Use, at time.Time,
) ([]storage.Upstream, error) {
	if s.refusals.Add(-1) >= 0 {
		return nil, errAway
	}
	return s.Store.EndUpstreamsOnce(ctx, keys, reason, use, at)
}

// TestLogoutOutlivesTheStore: AS-219, OpenID Back-Channel Logout §2.8. The provider sends a logout
// only once. It takes effect when the store is back, and is never acknowledged before that.
func TestLogoutOutlivesTheStore(t *testing.T) {
	for refusals, want := range map[int32]int{2: http.StatusOK, 100: http.StatusBadRequest} {
		r := newRig(t, nil)
		_, g := r.signIn("")
		store := &reluctant{Store: r.store}
		store.refusals.Store(refusals)
		form := url.Values{"logout_token": {r.up.LogoutToken(fakeidp.Alice.Subject, "", nil)}}
		req := httptest.NewRequest(http.MethodPost, "/callback/corp/logout", strings.NewReader(form.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		r.another(store, nil).Logout().ServeHTTP(w, req)
		if ended := w.Code == http.StatusOK; ended != (want == http.StatusOK) || r.active(g) == ended {
			t.Errorf("after %d refusals: got %d, active: %v", refusals, w.Code, r.active(g))
		}
	}
}

// TestWhoChoosesAnAccount: RS-203. When an account is to be linked, every provider lets the user
// choose. For a known account, only providers without login_hint do so, and at a sign-in none.
func TestWhoChoosesAnAccount(t *testing.T) {
	expected := []account{{"1", "ann"}}
	for _, tt := range []struct {
		name        string
		sentRequest delegation.Request
		expected    []account
		hint        bool
		want        bool
	}{
		{"at a sign-in", delegation.Request{Purpose: delegation.PurposeSignIn}, nil, false, false},
		{"if the person asks for it", delegation.Request{Purpose: delegation.PurposeSignIn, Choose: true}, nil, true,
			true},
		{"to connect an account", delegation.Request{Purpose: delegation.PurposeLink}, nil, true, true},
		{"to extend one that can be named", delegation.Request{Purpose: delegation.PurposeExtend}, expected, true,
			false},
		{"to extend one that cannot", delegation.Request{Purpose: delegation.PurposeExtend}, expected, false, true},
		{"to extend without one", delegation.Request{Purpose: delegation.PurposeExtend}, nil, true, true},
	} {
		c := &connector{traits: provider.Traits{LoginHint: tt.hint}}
		if got := c.choose(tt.sentRequest, tt.expected); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestTokensThatStay: the log names tokens that remain valid at the provider, and no others. Tokens
// that cannot be opened are skipped.
func TestTokensThatStay(t *testing.T) {
	const said = "tokens of a provider could not be given back"
	for name, tt := range map[string]struct {
		edit  func(*Config)
		fault fakeidp.Fault
		calls int
		said  bool
	}{
		"a provider that is away": {nil, fakeidp.Down, 1, true},
		"a good one":              {nil, fakeidp.Fault{}, 1, false},
		"another master key": {func(c *Config) {
			c.SecretKeys = [][]byte{bytes.Repeat([]byte{8}, secrets.KeySize)}
		}, fakeidp.Fault{}, 0, false},
	} {
		t.Run("PL8: "+name, func(t *testing.T) {
			r := newRig(t, nil)
			a, _ := r.signIn("")
			if err := r.store.SetUserDisabled(t.Context(), a.User.ID, true, r.Now()); err != nil {
				t.Fatal(err)
			}
			if tt.fault.Down {
				r.up.Fail(fakeidp.Revoke, tt.fault)
			}
			d := r.another(r.store, tt.edit)
			d.handBack(t.Context())
			d.Close()
			if n := r.up.Calls(fakeidp.Revoke); n != tt.calls {
				t.Errorf("the provider was asked %d times, want %d", n, tt.calls)
			}
			if got := strings.Contains(r.Log.String(), said); got != tt.said {
				t.Errorf("in the log: %v, want %v: %s", got, tt.said, r.Log)
			}
		})
	}
}

// TestEndsSayWhy: the error for an ended session is ErrRevoked, with the reason if known.
func TestEndsSayWhy(t *testing.T) {
	for reason, want := range map[string]string{"": "", "left the team": ": left the team"} {
		err := errEnded(reason)
		if !errors.Is(err, storage.ErrRevoked) || err.Error() != "thirdparty: "+storage.ErrRevoked.Error()+want {
			t.Errorf("%q: got %q", reason, err)
		}
	}
}

// TestSessionsOneByOne: eachSession visits every session. It stops at the first error, which it
// returns, or when do returns false.
func TestSessionsOneByOne(t *testing.T) {
	r := newRig(t, nil)
	r.signIn("")
	r.signIn("")
	for _, tt := range []struct {
		more  bool
		err   error
		calls int
	}{{true, nil, 2}, {false, nil, 1}, {true, errAway, 1}, {false, errAway, 1}} {
		calls := 0
		err := r.eachSession(t.Context(), func(storage.Upstream) (bool, error) { calls++; return tt.more, tt.err })
		if !errors.Is(err, tt.err) || calls != tt.calls {
			t.Errorf("%+v: got %v after %d", tt, err, calls)
		}
	}
}
