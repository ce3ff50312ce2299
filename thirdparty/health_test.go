package thirdparty

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// Limits and times for leaving a provider alone: see provider.Health.
const (
	tolerated  = 3
	restTime   = 10 * time.Second
	probeEvery = time.Second
)

// several signs one user in n times, each with a separate session.
func (r *rig) several(n int) (ids []string) {
	r.t.Helper()
	for range n {
		a, _ := r.signIn("")
		ids = append(ids, a.Upstream)
	}
	return ids
}

// ask checks a session, ignores the result, and returns how many user info requests it caused.
func (r *rig) ask(id string) int {
	r.t.Helper()
	before := r.up.Calls(fakeidp.UserInfo)
	_ = r.Check(r.t.Context(), id, time.Second)
	return r.up.Calls(fakeidp.UserInfo) - before
}

// Security PH2: requests of strangers never stop the questions about sessions.
func TestStrangersMakeNoProviderRest(t *testing.T) {
	for name, junk := range map[string]func(r *rig){
		"codes that the provider answers with 429": func(r *rig) { r.up.Fail(fakeidp.Token, fakeidp.Error429) },
		"codes that the provider answers with 500": func(r *rig) { r.up.Fail(fakeidp.Token, fakeidp.Error500) },
		"sign-ins whose user info is refused for their own rate": func(r *rig) {
			r.up.Fail(fakeidp.UserInfo, fakeidp.Error429)
		},
		"sign-ins whose user info fails": func(r *rig) { r.up.Fail(fakeidp.UserInfo, fakeidp.Error500) },
	} {
		t.Run("AS-218: an end is noticed at the next check, beside "+name, func(t *testing.T) {
			r := newRig(t, nil)
			a, g := r.signIn("")
			r.Advance(6 * time.Minute)
			r.up.RevokeAll(fakeidp.Alice.Subject)
			junk(r)
			for range 4 * tolerated {
				if _, err := r.come(r.leave(signIn), "corp"); code(err) != oauth.TemporarilyUnavailable {
					t.Fatalf("the sign-in: got %v", err)
				}
			}
			r.up.Heal()
			if err := r.Check(t.Context(), a.Upstream, 0); !errors.Is(err, storage.ErrRevoked) || r.active(g) {
				t.Errorf("got %v, want %v", err, storage.ErrRevoked)
			}
			if n := r.Log.Events(audit.ProviderUnreachable); n != 0 {
				t.Errorf("%d events of an outage that was none", n)
			}
		})
	}
	t.Run("AS-218: departures that fail do not count", func(t *testing.T) {
		r := newRig(t, nil)
		ids := r.several(1)
		r.Advance(2 * time.Hour) // so that the metadata is read again
		r.up.Fail(fakeidp.Discovery, fakeidp.Error500)
		for range 4 * tolerated {
			_, _ = r.Depart(t.Context(), signIn)
		}
		r.up.Heal()
		if n := r.ask(ids[0]); n != 1 {
			t.Errorf("asked %d times, want 1", n)
		}
	})
}

func TestRest(t *testing.T) {
	down := func(r *rig) {
		r.Advance(6 * time.Minute)
		r.up.Fail(fakeidp.UserInfo, fakeidp.Error500)
	}
	t.Run("AS-223: one session that stays without an answer makes no provider rest, and is asked about again later",
		func(t *testing.T) {
			r := newRig(t, nil)
			ids := r.several(2)
			down(r)
			for i := range 4 * tolerated {
				if n := r.ask(ids[0]); (n == 1) != (i == 0) {
					t.Errorf("attempt %d: asked %d times", i, n)
				}
			}
			for range 4 * tolerated {
				r.Advance(restTime)
				if n := r.ask(ids[0]); n != 1 {
					t.Errorf("later: asked %d times, want 1", n)
				}
			}
			if n := r.ask(ids[1]); n != 1 {
				t.Errorf("another session: asked %d times, want 1", n)
			}
		})
	t.Run("AS-223: while it rests one question a second goes through, and an answer ends the rest", func(t *testing.T) {
		r := newRig(t, nil)
		ids := r.several(tolerated + 6)
		down(r)
		for _, id := range ids[:tolerated] {
			if n := r.ask(id); n != 1 {
				t.Fatalf("asked %d times, want 1", n)
			}
		}
		rest := ids[tolerated:]
		for i, want := range []int{0, 1, 0} {
			if n := r.ask(rest[i]); n != want {
				t.Errorf("question %d: asked %d times, want %d", i, n, want)
			}
			if i == 0 {
				r.Advance(probeEvery)
			}
		}
		r.up.Heal()
		if n := r.ask(rest[3]); n != 0 {
			t.Errorf("within the second: asked %d times", n)
		}
		r.Advance(probeEvery)
		for _, id := range rest[3:] {
			if n := r.ask(id); n != 1 {
				t.Errorf("after a good answer: asked %d times, want 1", n)
			}
		}
	})
	t.Run("AS-219: a no is an answer and ends the rest", func(t *testing.T) {
		r := newRig(t, nil)
		ids := r.several(tolerated)
		b, _ := r.signIn(fakeidp.Bob.Email)
		other, _ := r.signIn(fakeidp.Alice.Email)
		down(r)
		for _, id := range ids {
			r.ask(id)
		}
		r.up.Heal()
		r.up.RevokeAll(fakeidp.Bob.Subject)
		r.Advance(probeEvery)
		if err := r.Check(t.Context(), b.Upstream, 0); !errors.Is(err, storage.ErrRevoked) {
			t.Errorf("got %v", err)
		}
		if n := r.ask(other.Upstream); n != 1 {
			t.Errorf("asked %d times, want 1", n)
		}
	})
}

// Security PH2: a rate limit applies to one user or to this client, and says nothing about the
// others.
func TestAskedTooOften(t *testing.T) {
	limited := func(header ...string) fakeidp.Fault {
		f := fakeidp.Fault{Status: http.StatusTooManyRequests, Header: http.Header{}}
		for i := 0; i < len(header); i += 2 {
			f.Header.Set(header[i], header[i+1])
		}
		return f
	}
	forbidden := func(header ...string) fakeidp.Fault {
		f := limited(header...)
		f.Status = http.StatusForbidden
		return f
	}
	for name, tt := range map[string]struct {
		fault fakeidp.Fault
		after time.Duration
	}{
		"429 with Retry-After":             {limited("Retry-After", "40"), 40 * time.Second},
		"429 without":                      {limited(), retryAfter},
		"429 for longer than a check":      {limited("Retry-After", "86400"), 5 * time.Minute},
		"403 of GitHub":                    {forbidden("X-RateLimit-Remaining", "0"), retryAfter},
		"403 with Retry-After":             {forbidden("Retry-After", "60"), time.Minute},
		"429 with an invalid number":       {limited("Retry-After", "soon"), retryAfter},
		"429 with a date that has gone by": {limited("Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT"), retryAfter},
	} {
		t.Run("RFC 6585 4: "+name+" postpones that session, and counts for nothing", func(t *testing.T) {
			r := newRig(t, nil)
			ids := r.several(2*tolerated + 1)
			last := ids[2*tolerated]
			r.Advance(6 * time.Minute)
			r.up.Fail(fakeidp.UserInfo, tt.fault)
			for _, id := range ids[:2*tolerated] {
				if n := r.ask(id); n != 1 {
					t.Errorf("asked %d times, want 1", n)
				}
			}
			r.up.Heal()
			if n := r.ask(last); n != 1 {
				t.Errorf("another session: asked %d times, want 1", n)
			}
			if n := r.Log.Events(audit.ProviderUnreachable); n != 0 {
				t.Errorf("%d events", n)
			}
			if due := r.upstream(ids[0]).DueAt.Sub(r.Now()); due < tt.after {
				t.Errorf("due again after %v, want %v", due, tt.after)
			}
			r.Advance(tt.after - time.Second)
			if n := r.ask(ids[0]); n != 0 {
				t.Errorf("asked %d times too early", n)
			}
			r.Advance(time.Second)
			if n := r.ask(ids[0]); n != 1 {
				t.Errorf("asked %d times when it is time, want 1", n)
			}
		})
	}
}

// Security PH2, RFC 6749 App. A.11: an impossible code is not passed on.
func TestCodes(t *testing.T) {
	for name, bad := range map[string]string{
		"nothing": "", "NUL": "a\x00b", "a line end": "a\nb", "a tab": "a\tb", "DEL": "a\x7f",
		"beyond ASCII": "caf\u00e9", "no UTF-8": "a\xff",
		"too long": strings.Repeat("c", maxCode+1),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			b := r.leave(signIn)
			b.back.Set("code", bad)
			r.Advance(9 * time.Minute)
			r.up.Forget()
			if _, err := r.come(b, "corp"); code(err) != oauth.ServerError ||
				!strings.Contains(oauth.AsError(err).Unwrap().Error(), "no code") {
				t.Errorf("got %v", err)
			}
			if n := len(r.up.Requests("")); n != 0 {
				t.Errorf("the provider was asked %d times", n)
			}
			r.nothingMade()
		})
	}
	if !isCode(strings.Repeat("~ !", 600)) {
		t.Error("a code with every kind of character is refused")
	}
}

// FuzzCode: isCode accepts exactly the codes of RFC 6749 App. A.11.
func FuzzCode(f *testing.F) {
	for _, s := range []string{"", "abc", "a b~", "\x00", "\u212a", strings.Repeat("x", maxCode+1)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		good := len(s) > 0 && len(s) <= maxCode
		for i := range len(s) {
			good = good && s[i] >= 0x20 && s[i] <= 0x7e
		}
		if got := isCode(s); got != good {
			t.Errorf("isCode(%q) = %v", s, got)
		}
	})
}

// FuzzPause: whatever wait a provider demands, a session is asked about again within CheckEvery,
// but not immediately.
func FuzzPause(f *testing.F) {
	for _, d := range []time.Duration{0, 1, -1, time.Second, time.Hour, 1 << 62} {
		f.Add(int64(d))
	}
	c := &connector{Connector: Connector{CheckEvery: 5 * time.Minute}}
	f.Fuzz(func(t *testing.T, wait int64) {
		if d := c.pause(&provider.TooOften{Wait: time.Duration(wait)}); d < time.Second || d > c.CheckEvery {
			t.Errorf("left alone for %v", d)
		}
	})
}

// Security PH2, race: concurrent strangers do not prevent the detection of an end.
func TestRacesOfHealth(t *testing.T) {
	r := newRig(t, nil)
	r.reproached = true // the codes are made up
	var victims []string
	for range 8 {
		a, _ := r.signIn("")
		victims = append(victims, a.Upstream)
	}
	r.Advance(6 * time.Minute)
	r.up.RevokeAll(fakeidp.Alice.Subject)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 10 {
				b := r.leave(signIn)
				b.back.Set("code", "junk")
				if _, err := r.come(b, "corp"); err == nil {
					t.Error("junk signs in")
				}
			}
		})
	}
	for _, id := range victims {
		group.Go(func() {
			if err := r.Check(t.Context(), id, 0); !errors.Is(err, storage.ErrRevoked) {
				t.Errorf("got %v, want %v", err, storage.ErrRevoked)
			}
		})
	}
	group.Wait()
	if n := r.Log.Events(audit.ProviderUnreachable); n != 0 {
		t.Errorf("%d events of an outage that was none", n)
	}
}
