package users

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

func from(addr, name, password string) Attempt {
	blocks := network.Blocks(netip.MustParseAddr(addr))
	return Attempt{Name: name, Password: password, Network: blocks[0], Wider: blocks[1:]}
}

// oneByOne sets a Sleep in bubble time that fails the test if two attempts sleep at once.
func oneByOne(t *testing.T, slept *atomic.Int64) func(*Config) {
	var inside atomic.Int32
	return func(c *Config) {
		c.Sleep = func(_ context.Context, d time.Duration) error {
			if inside.Add(1) > 1 {
				t.Error("AS-05: two wait at once that should wait one after the other")
			}
			slept.Add(int64(d))
			wait.Advance(d)
			inside.Add(-1)
			return nil
		}
	}
}

// Security M8: an attacker who owns all /64s of a /48 guesses at one account.
func TestGuessingFromOneCustomer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		r := newRig(t, oneByOne(t, &slept))
		var wg sync.WaitGroup
		slots := make(chan struct{}, 3) // the queue takes four, so no caller is refused
		for i := range 160 {
			slots <- struct{}{}
			wg.Go(func() {
				_, err := r.Authenticate(t.Context(), from(fmt.Sprintf("2001:db8:1:%x::1", i*7), "alice", "wrong"))
				if !errors.Is(err, ErrWrong) {
					t.Errorf("got %v", err)
				}
				<-slots
			})
		}
		wg.Wait()
		if got, want := time.Duration(slept.Load()), 220*time.Second; got < want {
			t.Errorf("AS-05: 160 guesses from one /48 waited %s in all, want at least %s", got, want)
		}
		before := slept.Load()
		if _, err := r.Authenticate(t.Context(), from("2001:db8:2::1", "bob", good)); !errors.Is(err, ErrWrong) ||
			slept.Load() != before {
			t.Errorf("AS-05: another account elsewhere: got %v after waiting %d", err, slept.Load()-before)
		}
		// Password spraying counts for the wider networks.
		for i := range 4 * networkFree {
			if _, err := r.Authenticate(t.Context(),
				from(fmt.Sprintf("2001:db8:3:%x::1", i), fmt.Sprint("nobody", i), "wrong")); !errors.Is(err, ErrWrong) {
				t.Fatal(err)
			}
		}
		before = slept.Load()
		_, _ = r.Authenticate(t.Context(), from("2001:db8:3:ffff::1", "another", "wrong"))
		if slept.Load() == before {
			t.Error("AS-05: one /48 may try any number of accounts at full speed")
		}
	})
}

// Security M8: after a hundred failures of an account, all its unknown browsers wait in one queue,
// wherever they are. A known browser has its own queue.
func TestGuessingFromEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var apart, together atomic.Int64
		serial := Config{}
		oneByOne(t, &together)(&serial)
		r := newRig(t, func(c *Config) {
			c.Sleep = func(ctx context.Context, d time.Duration) error {
				if d == pause { // the first wait in the common queue; the waits of networks have reached their maximum
					return serial.Sleep(ctx, d)
				}
				apart.Add(int64(d))
				return nil
			}
		})
		for i := range farFree {
			r.try(t, "alice", "wrong", fmt.Sprint("net", i))
		}
		for range allFree - farFree {
			if _, err := r.Store.RecordFailure(t.Context(), key("far", "alice"), r.Now(), failureWindow); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		for i := range maxLine {
			wg.Go(func() {
				if err := r.try(t, "alice", "wrong", fmt.Sprint("far", i)); !errors.Is(err, ErrWrong) {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		if got, want := time.Duration(together.Load()), maxLine*pause; got != want || apart.Load() == 0 {
			t.Errorf("AS-05: %d attempts from as many networks waited %s in one line, want %s", maxLine, got, want)
		}
		before := together.Load() + apart.Load()
		_, err := r.Authenticate(t.Context(), Attempt{
			Name: "alice", Password: good, Network: "x", KnownBrowser: KnownBrowser{Name: "alice", ID: "phone"},
		})
		if err != nil || together.Load()+apart.Load() != before {
			t.Errorf("AS-05: the known browser: got %v, or waited", err)
		}
		if r.throttle.gates.used()+r.throttle.lines.used() != 0 {
			t.Error("a gate or a line is left behind")
		}
	})
}

// Security M8: common passwords are refused (NIST SP 800-63B §5.1.1.2).
func TestCommonPasswords(t *testing.T) {
	r := newRig(t)
	for _, password := range []string{
		"password", "PassWord1", "12345678", "iloveyou", "qwertyuiop", "administrator", "carol.example",
		"password123456", "P@ssw0rd!2026", "passwordpassword"} {
		if _, err := r.Create(t.Context(), "Carol.Example", password, false); !errors.Is(err, ErrCommon) {
			t.Errorf("%q: got %v, want ErrCommon", password, err)
		}
		if err := r.SetPassword(t.Context(), "alice", password, false); password != "carol.example" &&
			!errors.Is(err, ErrCommon) {
			t.Errorf("%q as a new password: got %v, want ErrCommon", password, err)
		}
	}
	for _, password := range []string{
		"correct horse battery", "password of mine", "12345678901234567890x", "wordpassword", "\npassword\n",
		"ssword\n12345678",
	} {
		if isCommon("alice", password) {
			t.Errorf("%q is refused", password)
		}
	}
	lines := strings.Split(strings.TrimSuffix(commonPasswords(), "\n"), "\n")
	if n := len(lines); n < 10_000 || n > 20_000 {
		t.Errorf("the list has %d lines", n)
	}
	if two := lines[len(lines)-2] + "\n" + lines[len(lines)-1]; isCommon("alice", two) {
		t.Errorf("%q, which are two of the list, is refused", two)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "#") && (len(line) < minPassword || line != strings.ToLower(line)) {
			t.Errorf("%q would never be found", line)
		}
	}
}

// TestGuessesOfCallersWhoLeaveCount: AS-05. A failure counts even if its caller disconnects before
// it is counted.
func TestGuessesOfCallersWhoLeaveCount(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	r := newRig(t, func(c *Config) {
		c.Audit = audit.New(slog.New(slog.DiscardHandler), func(event string, _ []slog.Attr) {
			if event == audit.LoginFailed { // the password has been checked
				leave()
			}
		})
	})
	a := Attempt{Name: "Alice", Password: "wrong", Network: "net"}
	if _, err := r.Authenticate(ctx, a); !errors.Is(err, ErrWrong) {
		t.Errorf("got %v", err)
	}
	n, _, err := r.Store.FailureCount(t.Context(), limits(a)[0][0].key, r.Now(), failureWindow)
	if err != nil || n != 1 {
		t.Errorf("%d failures are counted, %v", n, err)
	}
}
