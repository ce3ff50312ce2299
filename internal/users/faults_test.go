package users

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
)

// TestFailuresAreTold checks that each failing call of the store is reported as an error. A failure
// must not look like success or like another answer: a guess that could not be counted is not a
// wrong password, and an account that could not be read is not unknown.
func TestFailuresAreTold(t *testing.T) {
	attempt := func(password string) Attempt {
		return Attempt{Name: "alice", Password: password, Network: "net", Wider: []string{"wide"}}
	}
	for name, prepare := range map[string]func(ctx context.Context, r *rig) func() error{
		"the right password": func(ctx context.Context, r *rig) func() error {
			return func() error { _, err := r.Authenticate(ctx, attempt(good)); return err }
		},
		"a wrong password": func(ctx context.Context, r *rig) func() error {
			return func() error {
				_, err := r.Authenticate(ctx, attempt("wrong"))
				if errors.Is(err, ErrWrong) {
					return nil
				}
				return err
			}
		},
		"the right code": func(ctx context.Context, r *rig) func() error {
			return func() error {
				return r.Guess(ctx, AppCode, storage.User{}, attempt(""), func(context.Context) error { return nil })
			}
		},
		"a wrong code": func(ctx context.Context, r *rig) func() error {
			return func() error {
				err := r.Guess(ctx, AppCode, storage.User{}, attempt(""),
					func(context.Context) error { return ErrWrong })
				if errors.Is(err, ErrWrong) {
					return nil
				}
				return err
			}
		},
		"SignedIn": func(ctx context.Context, r *rig) func() error {
			account, _ := r.Find(ctx, "alice")
			return func() error { r.SignedIn(ctx, account, "net", []string{"pwd"}); return nil }
		},
		"Create": func(ctx context.Context, r *rig) func() error {
			return func() error { _, err := r.Create(ctx, "bob", good, false); return err }
		},
		"Find by id": func(ctx context.Context, r *rig) func() error {
			account, _ := r.Find(ctx, "alice")
			return func() error { _, err := r.Find(ctx, account.ID); return err }
		},
		"List": func(ctx context.Context, r *rig) func() error {
			return func() error { _, err := r.List(ctx, "", 10); return err }
		},
		"SetPassword": func(ctx context.Context, r *rig) func() error {
			return func() error { return r.SetPassword(ctx, "alice", "another horse", false) }
		},
		"Disable": func(ctx context.Context, r *rig) func() error {
			return func() error { return r.Disable(ctx, "alice") }
		},
		"Delete": func(ctx context.Context, r *rig) func() error {
			return func() error { return r.Delete(ctx, "alice") }
		},
		"SetupOpen": func(ctx context.Context, r *rig) func() error {
			return func() error { _, err := r.SetupOpen(ctx); return err }
		},
		"SetupLink": func(ctx context.Context, r *rig) func() error {
			return func() error { _, _, err := r.SetupLink(ctx, "x"); return err }
		},
		"CompleteSetup": func(ctx context.Context, r *rig) func() error {
			link, _, err := r.SetupLink(ctx, "x")
			if err != nil {
				t.Fatal(err)
			}
			_, token, _ := strings.Cut(link, "#token=")
			return func() error { _, err := r.CompleteSetup(ctx, token, "root", good); return err }
		},
	} {
		t.Run("AS-05 "+name, func(t *testing.T) {
			for n := range 30 {
				var store *storagetest.Failing
				log := &strings.Builder{}
				r := newRig(t, func(c *Config) {
					store = storagetest.NewFailing(c.Store.(storage.Store))
					c.Logger = slog.New(slog.NewTextHandler(log, nil))
				})
				act := prepare(t.Context(), r)
				store.Arm(n)
				err := act()
				failed, called := store.Disarm()
				if failed == "" {
					if err != nil || n == 0 {
						t.Fatalf("without a failure: %v after %v", err, called)
					}
					return
				}
				// Errors after a sign-in must not prevent it.
				optional := slices.Contains([]string{"ClearFailures", "ReturnTry", "TouchLogin"}, failed)
				if optional && err != nil || !optional && !errors.Is(err, storagetest.ErrInjected) {
					t.Errorf("%s fails (call %d): got %v", failed, n+1, err)
				}
				if optional && !strings.Contains(log.String(), storagetest.ErrInjected.Error()) {
					t.Errorf("%s fails without a line in the log: %s", failed, log)
				}
				if err := act(); err != nil {
					t.Errorf("%s had failed, and again: %v", failed, err)
				}
			}
			t.Fatal("more than 30 calls")
		})
	}
}
