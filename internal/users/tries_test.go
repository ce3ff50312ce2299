package users

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// code tries a code of alice's app, from an unknown browser or from a known one.
func (r *rig) code(t *testing.T, device string, right bool) error {
	t.Helper()
	alice, err := r.Store.UserByName(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	a := Attempt{Name: "alice", Network: "net"}
	if device != "" {
		a.KnownBrowser = KnownBrowser{Name: "alice", ID: device}
	}
	return r.Guess(t.Context(), AppCode, alice, a, func(context.Context) error {
		if right {
			return nil
		}
		return ErrWrong
	})
}

func (r *rig) wrongCodes(t *testing.T, device string, n int) {
	t.Helper()
	for i := range n {
		if err := r.code(t, device, false); !errors.Is(err, ErrWrong) {
			t.Fatalf("PE-05: wrong code %d: got %v", i+1, err)
		}
	}
}

// turnedAway checks that err refuses a code for some time.
func turnedAway(t *testing.T, err error, want time.Duration) {
	t.Helper()
	var late *ThrottledError
	if !errors.As(err, &late) || late.Counted != ByCode || late.RetryAfter != want {
		t.Errorf("PE-05: got %v, want to be turned away for %s", err, want)
	}
}

// TestTriesOfADay simulates a thief of the password who guesses as fast as possible for four days.
// On each day, the chance of a correct guess must be at most 1 in 1,000 (PE-05).
func TestTriesOfADay(t *testing.T) {
	r := newRig(t)
	var looked []time.Time
	for end := r.Now().Add(4 * 24 * time.Hour); r.Now().Before(end); {
		err := r.code(t, "", false)
		var late *ThrottledError
		switch {
		case errors.Is(err, ErrWrong):
			looked = append(looked, r.Now())
		case errors.As(err, &late) && late.RetryAfter > 0:
			r.Advance(late.RetryAfter)
		default:
			t.Fatalf("got %v", err)
		}
	}
	most, from := 0, 0
	for i, at := range looked {
		for at.Sub(looked[from]) >= 24*time.Hour {
			from++
		}
		most = max(most, i-from+1)
	}
	const right = 3.0 / 1_000_000 // each app has three valid codes at a time
	if chance := float64(most) * right * storage.MaxApps; chance >= 1.0/1000 || most < 30 {
		t.Errorf("PE-05: %d codes are looked at in a day: a chance of %f with %d apps", most, chance, storage.MaxApps)
	}
	t.Logf("%d codes a day: 1 in %.0f with one app", most, 1/(float64(most)*right))
}

func TestTries(t *testing.T) {
	t.Run("PE-05 a known browser has tries of its own, and a right code in it gives them back", func(t *testing.T) {
		r := newRig(t)
		r.wrongCodes(t, "", triesFree)
		turnedAway(t, r.code(t, "", true), time.Minute)
		r.wrongCodes(t, "laptop", triesFree-1)
		for range 2 {
			if err := r.code(t, "laptop", true); err != nil {
				t.Fatalf("got %v", err)
			}
			r.wrongCodes(t, "laptop", triesFree-1)
		}
		r.wrongCodes(t, "laptop", 1)
		turnedAway(t, r.code(t, "laptop", true), time.Minute)
		if err := r.code(t, "phone", true); err != nil {
			t.Errorf("PE-05: one browser uses up the tries of another: %v", err)
		}
		turnedAway(t, r.code(t, "", true), time.Minute)
	})
	t.Run("PE-05 a browser in which another person has signed in is not known", func(t *testing.T) {
		r := newRig(t)
		r.wrongCodes(t, "", triesFree)
		alice, _ := r.Store.UserByName(t.Context(), "alice")
		turnedAway(t, r.Guess(t.Context(), AppCode, alice,
			Attempt{Name: "alice", Network: "net", KnownBrowser: KnownBrowser{Name: "mallory", ID: "mine"}},
			func(context.Context) error { return ErrWrong }), time.Minute)
	})
	t.Run("PE-05 right codes use up no tries, and forgive none to a stranger", func(t *testing.T) {
		r := newRig(t)
		r.wrongCodes(t, "", triesFree-1)
		for range 3 * triesFree {
			if err := r.code(t, "", true); err != nil {
				t.Fatalf("got %v", err)
			}
		}
		r.wrongCodes(t, "", 1)
		turnedAway(t, r.code(t, "", true), time.Minute)
		r.Advance(time.Minute)
		if err := r.code(t, "", true); err != nil {
			t.Errorf("after the wait: got %v", err)
		}
	})
	t.Run("PE-05 an operator who sets a password gives new tries", func(t *testing.T) {
		r := newRig(t)
		r.wrongCodes(t, "", triesFree)
		if err := r.SetPassword(t.Context(), "alice", "another horse", true); err != nil {
			t.Fatal(err)
		}
		if err := r.code(t, "", true); err != nil {
			t.Errorf("got %v", err)
		}
	})
	t.Run("EN-04 a person does who has shown two factors, and no other", func(t *testing.T) {
		for _, two := range []bool{false, true} {
			r := newRig(t)
			r.wrongCodes(t, "", triesFree)
			alice, err := r.Find(t.Context(), "alice")
			if err != nil {
				t.Fatal(err)
			}
			in := Within{Session: storage.Hash{1}, TwoFactors: two}
			err = r.Store.PutSession(t.Context(), storage.Session{
				Hash: in.Session, UserID: alice.ID, AuthTime: r.Now(), ExpiresAt: r.Now().Add(time.Hour),
			}, storage.SignInStart{At: r.Now()})
			if err == nil {
				err = r.ChangePassword(t.Context(), alice, "another horse", in)
			}
			if err != nil {
				t.Fatal(err)
			}
			if two {
				if err := r.code(t, "", true); err != nil {
					t.Errorf("got %v", err)
				}
				continue
			}
			turnedAway(t, r.code(t, "", true), time.Minute)
		}
	})
	t.Run("PE-05 wrong codes of an app leave recovery codes alone", func(t *testing.T) {
		r := newRig(t)
		r.wrongCodes(t, "", triesFree)
		r.slept.Store(0)
		if err := r.guess(t, "alice", true); err != nil || r.slept.Load() != 0 {
			t.Errorf("got %v after %s", err, time.Duration(r.slept.Load()))
		}
	})
	t.Run("PE-05 a burst is one try once they are used up", func(t *testing.T) {
		r := newRig(t)
		r.wrongCodes(t, "", triesFree)
		r.Advance(time.Minute)
		var wg sync.WaitGroup
		var mu sync.Mutex
		looked := 0
		for range 3 {
			wg.Go(func() {
				if err := r.code(t, "", false); errors.Is(err, ErrWrong) {
					mu.Lock()
					looked++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if looked != 1 {
			t.Errorf("%d codes were looked at, want 1", looked)
		}
	})
	t.Run("PE-05 the person is told of the fifth wrong code, once", func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Notifier = notice.New(notice.Config{
				Store: c.Store.(storage.Store), Issuer: "https://as.example.com", Now: c.Now,
			})
		})
		alice, _ := r.Store.UserByName(t.Context(), "alice")
		for i, want := range []int{0, 0, 0, 0, 1, 1, 1} {
			r.wrongCodes(t, "", 1)
			told, err := r.Store.UnseenNotices(t.Context(), alice.ID)
			if err != nil || len(told) != want || want > 0 && told[0].Kind != string(notice.CodesGuessed) {
				t.Errorf("after %d: got %v %v", i+1, told, err)
			}
		}
	})
	t.Run("SP-28 codes that are not looked at are in the log", func(t *testing.T) {
		r := newRig(t)
		r.wrongCodes(t, "", triesFree)
		r.code(t, "", true)
		if !strings.Contains(r.Log.String(), fmt.Sprintf("%q:%q", "counted", ByCode)) {
			t.Errorf("got %s", r.Log)
		}
	})
}
