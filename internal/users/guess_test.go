package users

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// guess tries a recovery code for a name.
func (r *rig) guess(t *testing.T, name string, right bool) error {
	t.Helper()
	account, _ := r.Store.UserByName(t.Context(), name)
	a := Attempt{Name: name, Network: "net"}
	return r.Guess(t.Context(), RecoveryCode, account, a, func(context.Context) error {
		if right {
			return nil
		}
		return ErrWrong
	})
}

func TestGuessedCodes(t *testing.T) {
	t.Run("PE-05 guesses of codes wait as guesses of passwords do", func(t *testing.T) {
		r := newRig(t)
		for i := range 12 {
			before := r.slept.Load()
			if err := r.guess(t, "alice", false); !errors.Is(err, ErrWrong) {
				t.Fatal(err)
			}
			want := 2 * time.Second
			if i < 10 {
				want = time.Second
			}
			if i < nearFree {
				want = 0
			}
			if got := time.Duration(r.slept.Load() - before); got != want {
				t.Errorf("guess %d waited %s, want %s", i+1, got, want)
			}
		}
		if got := strings.Count(r.Log.String(), `"reason":"wrong code"`); got != 12 {
			t.Errorf("SP-28: the log names %d wrong codes, want 12", got)
		}
	})
	t.Run("PE-05 a right password does not forgive wrong codes, nor a right code wrong passwords", func(t *testing.T) {
		r := newRig(t)
		for range nearFree {
			r.guess(t, "alice", false)
			r.try(t, "alice", "wrong", "net")
		}
		if err := r.try(t, "alice", good, "net"); err != nil {
			t.Fatal(err)
		}
		r.slept.Store(0)
		if r.guess(t, "alice", true); r.slept.Load() == 0 {
			t.Error("a code waits for nothing after the password was given again")
		}
		r.slept.Store(0)
		if r.guess(t, "alice", false); r.slept.Load() != 0 {
			t.Error("the right code did not forgive the wrong ones before it")
		}
	})
	t.Run("PE-08 codes of an unknown account wait alike", func(t *testing.T) {
		r := newRig(t)
		for range nearFree {
			r.guess(t, "nobody", false)
		}
		if r.guess(t, "nobody", false); time.Duration(r.slept.Load()) != time.Second {
			t.Errorf("waited %s", time.Duration(r.slept.Load()))
		}
	})
	t.Run("an error of the check is not a wrong code", func(t *testing.T) {
		r, away := newRig(t), errors.New("away")
		for range 2 * nearFree {
			if err := r.Guess(t.Context(), RecoveryCode, storage.User{}, Attempt{Name: "alice", Network: "net"},
				func(context.Context) error { return away }); !errors.Is(err, away) {
				t.Fatal(err)
			}
		}
		if r.guess(t, "alice", true); r.slept.Load() != 0 {
			t.Error("what failed was counted")
		}
	})
	t.Run("SP-28 a sign-in is recorded with its methods when it is complete", func(t *testing.T) {
		r := newRig(t)
		if err := r.try(t, "alice", good, "net"); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(r.Log.String(), audit.LoginSucceeded) {
			t.Error("a password alone is recorded as a sign-in")
		}
		alice, _ := r.Find(t.Context(), "alice")
		r.SignedIn(t.Context(), alice, "net", []string{"pwd", "otp"})
		if !strings.Contains(r.Log.String(), `"methods":"pwd otp"`) {
			t.Errorf("got %s", r.Log)
		}
		if again, _ := r.Find(t.Context(), "alice"); !again.LastLoginAt.Equal(r.Now()) {
			t.Errorf("last sign-in: got %s", again.LastLoginAt)
		}
	})
}
