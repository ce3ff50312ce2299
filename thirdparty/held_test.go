package thirdparty

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/fakeupstream"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/session"
	"github.com/mcp-authd/mcp-authd/storage"
)

// reluctant is a store that does not end sessions at once.
type reluctant struct {
	storage.Store
	refusals atomic.Int32
}

func (s *reluctant) EndUpstreams(
	ctx context.Context, k storage.UpstreamKey, reason string, at time.Time,
) ([]storage.Upstream, error) {
	if s.refusals.Add(-1) >= 0 {
		return nil, errAway
	}
	return s.Store.EndUpstreams(ctx, k, reason, at)
}

// TestLogoutOutlivesTheStore: AS-219, OpenID Back-Channel Logout §2.8. The provider says a
// logout once: it is carried out when the store is back, and never acknowledged without.
func TestLogoutOutlivesTheStore(t *testing.T) {
	for refusals, want := range map[int32]int{2: http.StatusOK, 100: http.StatusBadRequest} {
		r := newRig(t, nil)
		_, g := r.signIn("")
		store := &reluctant{Store: r.store}
		store.refusals.Store(refusals)
		form := url.Values{"logout_token": {r.up.LogoutToken(fakeupstream.Alice.Subject, "", nil)}}
		req := httptest.NewRequest(http.MethodPost, "/callback/corp/logout", strings.NewReader(form.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		r.another(store, nil).Logout().ServeHTTP(w, req)
		if ended := w.Code == http.StatusOK; ended != (want == http.StatusOK) || r.active(g) == ended {
			t.Errorf("after %d refusals: got %d, active: %v", refusals, w.Code, r.active(g))
		}
	}
}

// TestWhenToAskAgain: RFC 9110 §10.2.3. A provider says how long it wants to be left alone in
// seconds or by a date; GitHub by the second of the epoch.
func TestWhenToAskAgain(t *testing.T) {
	soon := time.Now().Add(100 * time.Second)
	for _, tt := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "90", 90 * time.Second},
		{"Retry-After", soon.UTC().Format(http.TimeFormat), 100 * time.Second},
		{"X-RateLimit-Reset", fmt.Sprint(soon.Unix()), 100 * time.Second},
		{"Retry-After", "soon", 0},
		{"Retry-After", soon.Add(-time.Hour).UTC().Format(http.TimeFormat), 0},
		{"X-RateLimit-Reset", "1", 0},
	} {
		h := http.Header{}
		h.Set(tt.name, tt.value)
		if got := askedTooOften(h).wait; got > tt.want || got < tt.want-20*time.Second && tt.want > 0 {
			t.Errorf("%s: %s: left alone for %s, want %s", tt.name, tt.value, got, tt.want)
		}
	}
}

// TestLabel: what people call an account is printable, and short.
func TestLabel(t *testing.T) {
	for _, tt := range []struct {
		claims map[string]any
		want   string
	}{
		{map[string]any{"sub": "1", "name": "Ann", "email": "a@example.com", "preferred_username": "ann"}, "ann"},
		{map[string]any{"sub": "1", "name": "Ann", "email": " \u202e\n"}, "Ann"},
		{map[string]any{"sub": "1", "name": "A\u0000n\u202en "}, "Ann"},
		{map[string]any{"name": strings.Repeat("ü", 150)}, strings.Repeat("ü", 100)},
		{map[string]any{"name": 7}, ""},
	} {
		if got := label(tt.claims); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.claims, got, tt.want)
		}
	}
}

// TestWhoChoosesAnAccount: RS-203. A provider that cannot be told which account is expected lets
// the person choose; so does each when an account is to be connected, and none at a sign-in.
func TestWhoChoosesAnAccount(t *testing.T) {
	expected := []account{{"1", "ann"}}
	for _, tt := range []struct {
		name     string
		trip     session.Trip
		expected []account
		hint     string
		want     bool
	}{
		{"at a sign-in", session.Trip{Errand: session.ErrandSignIn}, nil, "", false},
		{"if the person asks for it", session.Trip{Errand: session.ErrandSignIn, Choose: true}, nil, "login_hint", true},
		{"to connect an account", session.Trip{Errand: session.ErrandLink}, nil, "login_hint", true},
		{"to extend one that can be named", session.Trip{Errand: session.ErrandExtend}, expected, "login_hint", false},
		{"to extend one that cannot", session.Trip{Errand: session.ErrandExtend}, expected, "", true},
		{"to extend without one", session.Trip{Errand: session.ErrandExtend}, nil, "login_hint", true},
	} {
		c := &connector{}
		c.preset = &preset{loginHint: tt.hint}
		if got := c.choose(tt.trip, tt.expected); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestDroppedClaims: a claim that its source has dropped is gone, wherever else it was said;
// what another source alone has said stays.
func TestDroppedClaims(t *testing.T) {
	earlier := profile{Parts: map[string]map[string]any{
		"id_token": {"role": "admin", "team": "a"}, "userinfo": {"role": "admin", "hd": "example.com"},
	}}
	now := profile{Parts: map[string]map[string]any{"userinfo": {"hd": "example.com"}}}.over(earlier)
	if _, ok := now.Claims["role"]; ok || now.Claims["team"] != "a" || now.Claims["hd"] != "example.com" {
		t.Errorf("got %v", now.Claims)
	}
	if len(earlier.Parts["id_token"]) != 2 {
		t.Error("the earlier profile has changed")
	}
}

// TestTokensThatStay: the operator learns of tokens that live on at the provider, and only of
// those; what cannot be opened is not asked about.
func TestTokensThatStay(t *testing.T) {
	const said = "upstream tokens could not be given back"
	for name, tt := range map[string]struct {
		edit  func(*Config)
		fault fakeupstream.Fault
		calls int
		said  bool
	}{
		"a provider that is away": {nil, fakeupstream.Down, 1, true},
		"a good one":              {nil, fakeupstream.Fault{}, 1, false},
		"another master key": {func(c *Config) {
			c.SecretKeys = [][]byte{bytes.Repeat([]byte{8}, secrets.KeySize)}
		}, fakeupstream.Fault{}, 0, false},
	} {
		t.Run("PL8: "+name, func(t *testing.T) {
			r := newRig(t, nil)
			a, _ := r.signIn("")
			if err := r.store.SetUserDisabled(t.Context(), a.User.ID, true, r.clock.Now()); err != nil {
				t.Fatal(err)
			}
			if tt.fault.Down {
				r.up.Fail(fakeupstream.Revoke, tt.fault)
			}
			d := r.another(r.store, tt.edit)
			d.handBack(t.Context())
			d.Close()
			if n := r.up.Calls(fakeupstream.Revoke); n != tt.calls {
				t.Errorf("the provider was asked %d times, want %d", n, tt.calls)
			}
			if got := strings.Contains(r.log.String(), said); got != tt.said {
				t.Errorf("in the log: %v, want %v: %s", got, tt.said, r.log)
			}
		})
	}
}

// TestEndsSayWhy: an error of a session that is over is ErrRevoked, with the reason if there is
// one.
func TestEndsSayWhy(t *testing.T) {
	for reason, want := range map[string]string{"": "", "left the team": ": left the team"} {
		err := errEnded(reason)
		if !errors.Is(err, storage.ErrRevoked) || err.Error() != "thirdparty: "+storage.ErrRevoked.Error()+want {
			t.Errorf("%q: got %q", reason, err)
		}
	}
}

// TestSessionsOneByOne: what goes wrong with one session is not taken for the end of all.
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

// TestNothingToAsk: RFC 7662. A provider with neither user info nor introspection is one that
// cannot be asked, which says nothing about the token.
func TestNothingToAsk(t *testing.T) {
	r := newRig(t, nil)
	_, err := r.byID["corp"].base.inspectBy(t.Context(), &endpoints{}, tokens{Access: "x"}, nil)
	if !errors.Is(err, errUnsupported) {
		t.Errorf("got %v, want %v", err, errUnsupported)
	}
}
