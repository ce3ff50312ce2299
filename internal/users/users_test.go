package users

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

const good = "correct horse"

// cheap makes the tests fast, because they do not depend on the cost.
var cheap = &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}

type rig struct {
	*Users
	*installation.Installation
	slept *atomic.Int64
}

func newRig(t *testing.T, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{Installation: installation.New(t), slept: &atomic.Int64{}}
	c := Config{
		Store: r.Store, Params: cheap, Now: r.Now, Audit: r.Audit,
		Sleep: func(_ context.Context, d time.Duration) error { r.slept.Add(int64(d)); return nil }}
	for _, f := range change {
		f(&c)
	}
	var err error
	if r.Users, err = New(c); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Create(t.Context(), "Alice", good, false); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) try(t *testing.T, name, password, network string) error {
	t.Helper()
	_, err := r.Authenticate(t.Context(), Attempt{Name: name, Password: password, Network: network})
	return err
}

func TestAuthenticate(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct {
		name, user, password string
		ok                   bool
	}{
		{"the right password", "Alice", good, true},
		{"names regard no case", "aLICE", good, true},
		{"a wrong password", "Alice", "wrong", false},
		{"an unknown account", "bob", good, false},
		{"no password", "Alice", "", false},
		{"an endless password", "Alice", strings.Repeat("x", 1<<20), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := r.try(t, tt.user, tt.password, "net")
			if tt.ok && err != nil || !tt.ok && !errors.Is(err, ErrWrong) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("a disabled account looks like a wrong password", func(t *testing.T) {
		if err := r.Disable(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		if err := r.try(t, "alice", good, "net"); !errors.Is(err, ErrWrong) {
			t.Errorf("got %v", err)
		}
		if err := r.Enable(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		if err := r.try(t, "alice", good, "net"); err != nil {
			t.Errorf("enabled again: got %v", err)
		}
	})
	t.Run("AS-06 no password reaches the log, also one typed as a name", func(t *testing.T) {
		r.try(t, "my pass word!", "s3cret-in-the-log", "net")
		for _, s := range []string{good, "s3cret-in-the-log", "my pass word!"} {
			if strings.Contains(r.Log.String(), s) {
				t.Errorf("the log holds %q", s)
			}
		}
		if !strings.Contains(r.Log.String(), audit.LoginFailed) {
			t.Error("no failure in the audit log")
		}
	})
}

func TestThrottle(t *testing.T) {
	t.Run("AS-05 twenty wrong ones are slowed down, then the right one succeeds", func(t *testing.T) {
		r := newRig(t)
		for range 20 {
			if err := r.try(t, "alice", "wrong", "net"); !errors.Is(err, ErrWrong) {
				t.Fatalf("got %v", err)
			}
		}
		if waited := time.Duration(r.slept.Load()); waited < 15*time.Second {
			t.Errorf("20 attempts waited %s in all, want at least 15s", waited)
		}
		if err := r.try(t, "alice", good, "net"); err != nil {
			t.Errorf("the right password: got %v", err)
		}
		before := r.slept.Load()
		if err := r.try(t, "alice", "typo", "net"); !errors.Is(err, ErrWrong) || r.slept.Load() != before {
			t.Errorf("after success the count starts again: got %v, waited %d", err, r.slept.Load()-before)
		}
	})
	t.Run("AS-05 others are not locked out", func(t *testing.T) {
		r := newRig(t)
		if _, err := r.Create(t.Context(), "bob", good, false); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			r.try(t, "alice", "wrong", "attacker")
		}
		before := r.slept.Load()
		if err := r.try(t, "alice", good, "home"); err != nil || r.slept.Load() != before {
			t.Errorf("the owner elsewhere: got %v, waited %d", err, r.slept.Load()-before)
		}
		if err := r.try(t, "bob", good, "attacker"); err != nil || r.slept.Load() != before {
			t.Errorf("another account: got %v, waited %d", err, r.slept.Load()-before)
		}
	})
	t.Run("AS-05 an attack from everywhere slows strangers, not a known browser", func(t *testing.T) {
		r := newRig(t)
		for i := range 60 {
			r.try(t, "alice", "wrong", "net"+string(rune('A'+i)))
		}
		before := r.slept.Load()
		r.try(t, "alice", "wrong", "yet another")
		if r.slept.Load() == before {
			t.Error("a new network was not slowed down")
		}
		before = r.slept.Load()
		if _, err := r.Authenticate(t.Context(),
			Attempt{
				Name: "alice", Password: good, Network: "x", KnownBrowser: KnownBrowser{Name: "alice", ID: "phone"},
			}); err != nil ||
			r.slept.Load() != before {
			t.Errorf("the known browser: got %v, waited %d", err, r.slept.Load()-before)
		}
	})
	t.Run("AS-05 guessing in parallel is turned away", func(t *testing.T) {
		hold := make(chan struct{})
		r := newRig(t, func(c *Config) {
			c.Sleep = func(ctx context.Context, _ time.Duration) error { <-hold; return nil }
		})
		for range nearFree {
			r.try(t, "alice", "wrong", "net")
		}
		var turned, wrong atomic.Int64
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				var throttled *ThrottledError
				switch err := r.try(t, "alice", "wrong", "net"); {
				case errors.As(err, &throttled) && throttled.RetryAfter > 0:
					if turned.Add(1) == 50-maxLine {
						close(hold)
					}
				case errors.Is(err, ErrWrong):
					wrong.Add(1)
				}
			})
		}
		wg.Wait()
		if turned.Load() != 50-maxLine || wrong.Load() != maxLine {
			t.Errorf("got %d turned away and %d checked, want %d and %d", turned.Load(), wrong.Load(), 50-maxLine,
				maxLine)
		}
		if r.throttle.lines.used() != 0 {
			t.Error("the line is not empty afterwards")
		}
	})
	t.Run("AS-05 a burst is not checked before its failures count", func(t *testing.T) {
		hold := make(chan struct{})
		r := newRig(t, func(c *Config) {
			c.Sleep = func(ctx context.Context, _ time.Duration) error { <-hold; return nil }
		})
		var checked, returned atomic.Int64
		var wg sync.WaitGroup
		for range 500 {
			wg.Go(func() {
				if errors.Is(r.try(t, "alice", "wrong", "net"), ErrWrong) {
					checked.Add(1)
				}
				if returned.Add(1) == 500-maxLine { // the others are in the queue
					close(hold)
				}
			})
		}
		wg.Wait()
		if n := checked.Load(); n > nearFree+maxUnderWay+maxUsers {
			t.Errorf("%d of 500 guesses at once were checked", n)
		}
		if r.throttle.gates.used() != 0 {
			t.Error("a gate is left behind")
		}
	})
	t.Run("AS-05 many sign-ins of one person at once all succeed", func(t *testing.T) {
		r := newRig(t)
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				if err := r.try(t, "alice", good, "net"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
	t.Run("AS-05 failures are forgotten after the window", func(t *testing.T) {
		r := newRig(t)
		for range 10 {
			r.try(t, "alice", "wrong", "net")
		}
		r.Advance(failureWindow + time.Second)
		before := r.slept.Load()
		r.try(t, "alice", "wrong", "net")
		if r.slept.Load() != before {
			t.Error("still slowed down")
		}
	})
}

// fill takes every slot.
func (h *hasher) fill() (release func()) {
	for range cap(h.slots) {
		h.slots <- struct{}{}
	}
	return func() {
		for range cap(h.slots) {
			<-h.slots
		}
	}
}

func TestHashingIsBounded(t *testing.T) {
	h := newHasher(cheap, 1)
	if _, err := h.acquire(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.hash(ctx, good); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a wait for the slot that ends with the context", err)
	}
}

func TestStrangersLeaveASlot(t *testing.T) {
	h := newHasher(cheap, 2)
	release, err := h.acquire(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := h.acquire(ctx, false); err == nil {
		t.Error("AS-05: strangers take every slot")
	}
	known, err := h.acquire(t.Context(), true)
	if err != nil {
		t.Fatalf("AS-05: a known browser waits for strangers: %v", err)
	}
	known()
	release()
	if len(h.slots)+len(h.strangers) != 0 {
		t.Error("a slot is lost")
	}
}

func TestSpraying(t *testing.T) {
	r := newRig(t)
	for i := range networkFree {
		r.try(t, fmt.Sprintf("nobody%d", i), "wrong", "sprayer")
	}
	if r.slept.Load() != 0 {
		t.Fatal("slowed down too early")
	}
	r.try(t, "another", "wrong", "sprayer")
	if r.slept.Load() == 0 {
		t.Error("AS-05: one network may try any number of accounts at full speed")
	}
	before := r.slept.Load()
	if err := r.try(t, "alice", good, "elsewhere"); err != nil || r.slept.Load() != before {
		t.Errorf("AS-05: a person elsewhere is slowed down: %v", err)
	}
}

// TestStrangersCannotFillTheLine simulates sixteen strangers who fail for one account on changing
// networks. The owner, in a new browser on another network, gets in after a wait. This holds for
// the first hundred failures; see TestGuessingFromEverywhere for more.
func TestStrangersCannotFillTheLine(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Sleep = sleep })
	for i := range farFree {
		r.try(t, "alice", "wrong", fmt.Sprint("net", i/4))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := 0; ctx.Err() == nil; j++ {
				r.Authenticate(ctx, Attempt{Name: "alice", Password: "wrong", Network: fmt.Sprint("far", i, "-", j/4)})
			}
		})
	}
	if err := r.try(t, "alice", good, "home"); err != nil {
		t.Errorf("AS-05: locked out: %v", err)
	}
	cancel()
	wg.Wait()
}

func TestNothingTypedIsLogged(t *testing.T) {
	r := newRig(t)
	r.try(t, "Tr0ub4dor-and-3", "x", "net")
	r.try(t, "alice", "wrong", "net")
	if log := r.Log.String(); strings.Contains(log, "Tr0ub4dor") || !strings.Contains(log, `"user_name":"Alice"`) {
		t.Errorf("SP-28: the log has the typed text, or lacks the account:\n%s", log)
	}
}

func TestAccounts(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct {
		what, name, password string
		want                 error
	}{
		{"taken, in another case", "ALICE", good, ErrExists},
		{"no name", "", good, ErrName},
		{"a space", "a b", good, ErrName},
		{"a control character", "a\x00", good, ErrName},
		{"too long", strings.Repeat("a", 65), good, ErrName},
		{"a short password", "carol", "1234567", ErrPassword},
		{"an endless password", "carol", strings.Repeat("x", 1025), ErrPassword},
	} {
		t.Run(tt.what, func(t *testing.T) {
			if _, err := r.Create(t.Context(), tt.name, tt.password, false); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	t.Run("a new password replaces the old one", func(t *testing.T) {
		if err := r.SetPassword(t.Context(), "alice", "another password", false); err != nil {
			t.Fatal(err)
		}
		if err := r.try(t, "alice", good, "n"); !errors.Is(err, ErrWrong) {
			t.Errorf("the old one: got %v", err)
		}
		if err := r.try(t, "alice", "another password", "n"); err != nil {
			t.Errorf("the new one: got %v", err)
		}
	})
	t.Run("unknown accounts cannot be changed", func(t *testing.T) {
		for _, err := range []error{
			r.SetPassword(t.Context(), "nobody", good, false), r.Disable(t.Context(), "nobody"),
			r.Delete(t.Context(), "nobody"),
		} {
			if !errors.Is(err, ErrUnknown) {
				t.Errorf("got %v, want ErrUnknown", err)
			}
		}
	})
	t.Run("a deleted account is gone", func(t *testing.T) {
		if err := r.Delete(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		if err := r.try(t, "alice", "another password", "n"); !errors.Is(err, ErrWrong) {
			t.Errorf("got %v", err)
		}
	})
}

func TestSetup(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	first, _, err := r.SetupLink(ctx, "https://auth.example.com")
	if err != nil {
		t.Fatal(err)
	}
	link, expires, err := r.SetupLink(ctx, "https://auth.example.com")
	if err != nil || !expires.Equal(r.Now().Add(SetupTTL)) ||
		!strings.HasPrefix(link, "https://auth.example.com/setup#token=") {
		t.Fatalf("got %q %v %v", link, expires, err)
	}
	token := func(link string) string { _, t, _ := strings.Cut(link, "#token="); return t }
	t.Run("an earlier link is no longer valid", func(t *testing.T) {
		if _, err := r.CompleteSetup(ctx, token(first), "root", good); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("Security L3: a wrong token has no password hashed", func(t *testing.T) {
		release := r.hasher.fill()
		defer release()
		if _, err := r.CompleteSetup(ctx, "guessed", "root", good); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("got %v, want an unknown token before there is a slot", err)
		}
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if _, err := r.CompleteSetup(ctx, token(link), "root", good); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a wait for a slot with the right one", err)
		}
	})
	t.Run("a bad name or password leaves the link good", func(t *testing.T) {
		if _, err := r.CompleteSetup(ctx, token(link), "root", "short"); !errors.Is(err, ErrPassword) {
			t.Errorf("got %v", err)
		}
		if _, err := r.CompleteSetup(ctx, token(link), "a b", good); !errors.Is(err, ErrName) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("of 32 at once one becomes the administrator", func(t *testing.T) {
		var won atomic.Int64
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				if u, err := r.CompleteSetup(ctx, token(link), "root"+string(rune('a'+i%26))+string(rune('a'+i/26)),
					good); err == nil && u.Role == storage.Administrator {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("got %d, want 1", won.Load())
		}
	})
	t.Run("afterwards setup is closed", func(t *testing.T) {
		if _, _, err := r.SetupLink(ctx, "x"); !errors.Is(err, ErrExists) {
			t.Errorf("got %v", err)
		}
		if open, err := r.SetupOpen(ctx); open || err != nil {
			t.Errorf("got %v %v", open, err)
		}
	})
	t.Run("an hour later a link is dead", func(t *testing.T) {
		r := newRig(t)
		link, _, err := r.SetupLink(ctx, "x")
		if err != nil {
			t.Fatal(err)
		}
		r.Advance(SetupTTL)
		if _, err := r.CompleteSetup(ctx, token(link), "root", good); !errors.Is(err, storage.ErrExpired) {
			t.Errorf("got %v", err)
		}
	})
}
