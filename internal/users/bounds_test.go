package users

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

func TestDefaults(t *testing.T) {
	if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "no store") {
		t.Errorf("without a store: got %v", err)
	}
	store := installation.Store(t)
	u, err := New(Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	account, err := u.Create(t.Context(), "alice", good, false)
	if err != nil || account.CreatedAt.Before(before) || time.Since(account.CreatedAt) > time.Minute {
		t.Fatalf("got %+v, %v", account, err)
	}
	// OWASP recommends 19 MiB, two passes and one lane.
	got, _, _, err := argon2id.DecodeHash(account.PasswordHash)
	if want := (argon2id.Params{
		Memory: 19 << 10, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}); err != nil || *got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if n, want := cap(u.hasher.slots), min(runtime.GOMAXPROCS(0)+1, 4); n != want {
		t.Errorf("%d passwords are hashed at once, want %d", n, want)
	}
	if _, err := u.Authenticate(t.Context(), Attempt{Name: "alice", Password: good, Network: "net"}); err != nil {
		t.Error(err)
	}
}

func TestSizes(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct {
		name, user, password string
		want                 error
	}{
		{"the shortest password", "a", "8 bytes.", nil},
		{"one byte less", "b", "7 bytes", ErrPassword},
		{"the longest password", "c", strings.Repeat("xy z", 256), nil},
		{"one byte more", "d", strings.Repeat("xy z", 256) + ".", ErrPassword},
		{"the longest name", strings.Repeat("e", 64), good, nil},
		{"one letter more", strings.Repeat("f", 65), good, ErrName},
		{"every kind of character", "azAZ09._-@+", good, nil},
		{"a colon", "a:b", good, ErrName},
		{"a letter that looks like another", "\u0430lice", good, ErrName},
	} {
		t.Run(tt.name, func(t *testing.T) {
			account, err := r.Create(t.Context(), tt.user, tt.password, false)
			if !errors.Is(err, tt.want) || err == nil && account.Name != tt.user {
				t.Fatalf("got %+v, %v, want %v", account, err, tt.want)
			}
			if tt.want != nil {
				return
			}
			if err := r.try(t, tt.user, tt.password, "net"); err != nil {
				t.Errorf("signing in: %v", err)
			}
		})
	}
}

func TestFind(t *testing.T) {
	r := newRig(t)
	alice, err := r.Find(t.Context(), "ALICE")
	if err != nil || alice.Name != "Alice" {
		t.Fatalf("by name: got %+v, %v", alice, err)
	}
	if got, err := r.Find(t.Context(), alice.ID); err != nil || got.ID != alice.ID {
		t.Errorf("by id: got %+v, %v", got, err)
	}
	if _, err := r.Find(t.Context(), "usr_nobody"); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	for _, name := range []string{alice.ID, "usr_x", "USR_x", "mcp_x", "grt_x", ".", "..", "Operator"} {
		if _, err := r.Create(t.Context(), name, good, false); !errors.Is(err, ErrName) {
			t.Errorf("EN-06: an account is named %q: %v, want ErrName", name, err)
		}
		if _, err := r.Invite(t.Context(), "https://as.example", Invitation{Name: name}); !errors.Is(err, ErrName) {
			t.Errorf("EN-06: an invitation is for %q: %v, want ErrName", name, err)
		}
	}
	// An earlier version accepted any name.
	liar := storage.User{ID: NewID(), Name: "usr_" + strings.Repeat("x", 22), CreatedAt: time.Now()}
	if err := r.cfg.Store.CreateUser(t.Context(), liar); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{liar.Name, strings.ToUpper(liar.Name)} {
		if got, err := r.Find(t.Context(), name); !errors.Is(err, ErrUnknown) {
			t.Errorf("EN-06: by %s, which is an id: got %+v, %v", name, got, err)
		}
	}
	if got, err := r.Find(t.Context(), liar.ID); err != nil || got.Name != liar.Name {
		t.Errorf("EN-06: by its id: got %+v, %v", got, err)
	}
	if err := r.Delete(t.Context(), liar.ID); err != nil {
		t.Fatal(err)
	}
	admin, err := r.Create(t.Context(), "root", good, true)
	if list, listErr := r.List(t.Context(), "", 10); err != nil || listErr != nil || len(list) != 2 ||
		admin.Role != storage.Administrator || alice.Role != "" {
		t.Errorf("got %+v, %v, %v", list, err, listErr)
	}
}

// TestPace checks the delays in detail: five failures are free, then each attempt waits a second,
// and from the tenth failure on two seconds, which is the maximum.
func TestPace(t *testing.T) {
	r := newRig(t)
	for i := range 25 {
		before := r.slept.Load()
		if err := r.try(t, "alice", "wrong", "net"); !errors.Is(err, ErrWrong) {
			t.Fatal(err)
		}
		want := 2 * time.Second
		if i < 10 {
			want = time.Second
		}
		if i < 5 {
			want = 0
		}
		if got := time.Duration(r.slept.Load() - before); got != want {
			t.Errorf("AS-05: attempt %d waited %s, want %s", i+1, got, want)
		}
	}
}

// TestAllowances checks that an account has fifty free failures from other networks, and a network
// a hundred. Each failure counts once.
func TestAllowances(t *testing.T) {
	for name, tt := range map[string]struct {
		under []string
		free  int
	}{
		"the account, from anywhere":   {[]string{"far", "alice"}, 50},
		"the network, for any account": {[]string{"network", "net"}, 100},
	} {
		t.Run("AS-05 "+name, func(t *testing.T) {
			r := newRig(t)
			for range tt.free - 1 {
				if _, err := r.Store.RecordFailure(t.Context(), key(tt.under...), r.Now(), failureWindow); err != nil {
					t.Fatal(err)
				}
			}
			if r.try(t, "alice", "wrong", "net"); r.slept.Load() != 0 {
				t.Errorf("waited at failure %d", tt.free)
			}
			if n, _, err := r.Store.FailureCount(t.Context(), key(tt.under...), r.Now(), failureWindow); err != nil ||
				n != tt.free {
				t.Errorf("got %d, %v, want %d", n, err, tt.free)
			}
			if r.try(t, "alice", "wrong", "net"); time.Duration(r.slept.Load()) != time.Second {
				t.Errorf("waited %s at failure %d", time.Duration(r.slept.Load()), tt.free+1)
			}
		})
	}
}

// TestReasons checks that the log contains the reason why a user could not sign in.
func TestReasons(t *testing.T) {
	r := newRig(t)
	if _, err := r.Create(t.Context(), "bob", good, false); err != nil {
		t.Fatal(err)
	}
	if err := r.Disable(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"alice": "wrong password", "bob": "disabled", "nobody": "unknown account",
	} {
		r.Log.Reset()
		r.try(t, name, "wrong", "net")
		if !strings.Contains(r.Log.String(), `"reason":"`+want+`"`) {
			t.Errorf("SP-28: %s: got %s, want %q", name, r.Log, want)
		}
	}
}

// waiting counts the attempts under a key.
func (q *queues) waiting(key storage.Hash) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if in := q.byKey[key]; in != nil {
		return in.length
	}
	return 0
}

func (q *queues) used() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.byKey)
}

func TestGivingUpLeavesTheLine(t *testing.T) {
	hold := make(chan struct{})
	r := newRig(t, func(c *Config) {
		c.Sleep = func(context.Context, time.Duration) error { <-hold; return nil }
	})
	for range nearFree {
		r.try(t, "alice", "wrong", "net")
	}
	near := key("near", "alice", "net")
	waiting := func(n int) func() bool {
		return func() bool { return r.throttle.lines.waiting(near) == n }
	}
	var first, others sync.WaitGroup
	first.Go(func() {
		if err := r.try(t, "alice", "wrong", "net"); !errors.Is(err, ErrWrong) {
			t.Errorf("got %v", err)
		}
	})
	wait.Until(t, "one waits in the line", waiting(1))
	ctx, cancel := context.WithCancel(t.Context())
	for range maxLine - 1 {
		others.Go(func() {
			if _, err := r.Authenticate(ctx, Attempt{Name: "alice", Password: good, Network: "net"}); !errors.Is(err,
				context.Canceled) {
				t.Errorf("AS-05: who gives up: got %v, want the error of the context", err)
			}
		})
	}
	wait.Until(t, "the line is full", waiting(maxLine))
	var throttled *ThrottledError
	if err := r.try(t, "alice", good, "net"); !errors.As(err, &throttled) || throttled.Counted != ByAccount ||
		throttled.RetryAfter != 8*time.Second {
		t.Errorf("AS-05: a full line: got %v", err)
	}
	cancel()
	others.Wait()
	wait.Until(t, "AS-05 those who gave up have left the line", waiting(1))
	close(hold)
	first.Wait()
	if r.throttle.gates.used()+r.throttle.lines.used() != 0 {
		t.Error("AS-05: a gate or a line is left behind")
	}
}

func TestGivingUpLeavesTheGate(t *testing.T) {
	r := newRig(t)
	release := r.hasher.fill() // blocks all password checks
	defer release()
	near := key("near", "alice", "net")
	under := func(n int) func() bool {
		return func() bool { return r.throttle.gates.waiting(near) == n }
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range maxUsers {
		wg.Go(func() {
			if _, err := r.Authenticate(ctx, Attempt{Name: "alice", Password: good, Network: "net"}); !errors.Is(err,
				context.Canceled) {
				t.Errorf("AS-05: who gives up: got %v, want the error of the context", err)
			}
		})
	}
	wait.Until(t, "the gate is full", under(maxUsers))
	var throttled *ThrottledError
	if err := r.try(t, "alice", good, "net"); !errors.As(err, &throttled) || throttled.Counted != ByAccount {
		t.Errorf("AS-05: a full gate: got %v", err)
	}
	cancel()
	wg.Wait()
	if r.throttle.gates.used() != 0 {
		t.Error("AS-05: a gate is left behind")
	}
}

// TestWhatIsCounted checks that an attacker who sprays from one network learns that the network is
// throttled, and not an account.
func TestWhatIsCounted(t *testing.T) {
	hold := make(chan struct{})
	r := newRig(t, func(c *Config) {
		c.Sleep = func(context.Context, time.Duration) error { <-hold; return nil }
	})
	place := key("network", "sprayer")
	for range networkFree {
		if _, err := r.Store.RecordFailure(t.Context(), place, r.Now(), failureWindow); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for i := range maxLine {
		wg.Go(func() { r.try(t, fmt.Sprint("nobody", i), "wrong", "sprayer") })
	}
	wait.Until(t, "the line is full", func() bool { return r.throttle.lines.waiting(place) == maxLine })
	var throttled *ThrottledError
	if err := r.try(t, "alice", good, "sprayer"); !errors.As(err, &throttled) || throttled.Counted != ByNetwork {
		t.Errorf("AS-05: got %v, want too many of the network", err)
	}
	if !strings.Contains(r.Log.String(), `"counted":"network"`) ||
		!strings.Contains(r.Log.String(), audit.LoginThrottled) {
		t.Errorf("AS-05: the log lacks it: %s", r.Log)
	}
	close(hold)
	wg.Wait()
}

// TestChangesAreAudited checks that the log names each changed account and the change.
func TestChangesAreAudited(t *testing.T) {
	r := newRig(t)
	alice, err := r.Find(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		event, what string
		act         func() error
	}{
		{audit.UserChanged, "disabled", func() error { return r.Disable(t.Context(), "alice") }},
		{audit.UserChanged, "enabled", func() error { return r.Enable(t.Context(), "alice") }},
		{audit.UserChanged, "password",
			func() error { return r.SetPassword(t.Context(), "alice", "another horse", true) }},
		{audit.UserDeleted, "", func() error { return r.Delete(t.Context(), "alice") }},
	} {
		r.Log.Reset()
		if err := tt.act(); err != nil {
			t.Fatal(err)
		}
		var got struct{ Event, User, What string }
		err := json.Unmarshal([]byte(r.Log.String()), &got)
		if err != nil || got.Event != tt.event || got.User != alice.ID ||
			got.What != tt.what {
			t.Errorf("SP-28: got %s, %v, want %s %s", r.Log, err, tt.event, tt.what)
		}
	}
}

func TestOlderCostIsTold(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	if err := r.try(t, "alice", good, "net"); err != nil || log.Len() != 0 {
		t.Errorf("got %v, %s", err, &log)
	}
	costlier := *cheap
	costlier.Iterations++
	r.hasher.params = &costlier
	if err := r.try(t, "alice", good, "net"); err != nil || !strings.Contains(log.String(), "usr_") {
		t.Errorf("a hash of another cost: got %v, and the log has %q", err, &log)
	}
}

// TestDecoy checks that the decoy hash for unknown accounts costs as much as a real hash, and
// differs between servers.
func TestDecoy(t *testing.T) {
	a, b := newHasher(cheap, 1).decoy, newHasher(cheap, 1).decoy
	if a == b {
		t.Errorf("two servers have the same: %s", a)
	}
	if got, _, _, err := argon2id.DecodeHash(a); err != nil || *got != *cheap {
		t.Errorf("got %+v, %v, want %+v", got, err, cheap)
	}
}
