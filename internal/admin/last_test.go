package admin_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestLastAdministrator checks that no user or program can remove the last administrator with any
// operation, not even two of them concurrently (OB-10). Commands with direct database access can.
func TestLastAdministrator(t *testing.T) {
	takeAway := map[string]func(context.Context, admin.Caller, string) error{
		"disable": func(ctx context.Context, c admin.Caller, name string) error {
			_, err := admin.UserDisable.Do(ctx, c, admin.UserName{Name: name})
			return err
		},
		"delete": func(ctx context.Context, c admin.Caller, name string) error {
			_, err := admin.UserDelete.Do(ctx, c, admin.UserName{Name: name})
			return err
		},
		"set-role": func(ctx context.Context, c admin.Caller, name string) error {
			_, err := admin.UserSetRole.Do(ctx, c, admin.UserRole{Name: name, Role: admin.NoRole})
			return err
		},
	}
	for what, do := range takeAway {
		t.Run(what, func(t *testing.T) {
			s, actor := two(t)
			root, program := s.As(actor("root")), s.As(admin.Actor{Role: admin.Administrator, Program: true})
			if err := do(t.Context(), root, "anna"); err != nil {
				t.Fatalf("one of two: %v", err)
			}
			for who, c := range map[string]admin.Caller{"root": root, "a program": program} {
				if err := do(t.Context(), c, "root"); !errors.Is(err, admin.ErrConflict) {
					t.Errorf("OB-10: %s, of the last one: %v, want ErrConflict", who, err)
				}
			}
			if err := do(t.Context(), s.Operator(), "root"); what != "set-role" && err != nil {
				t.Errorf("who has the database: %v", err)
			}
		})
	}
	t.Run("at once", func(t *testing.T) {
		s, actor := two(t)
		root, anna := s.As(actor("root")), s.As(actor("anna"))
		var wait sync.WaitGroup
		wait.Go(func() { _ = takeAway["disable"](t.Context(), root, "anna") })
		wait.Go(func() { _ = takeAway["set-role"](t.Context(), anna, "root") })
		wait.Wait()
		left := 0
		for _, name := range []string{"root", "anna"} {
			if u, err := s.Users.Find(t.Context(), name); err == nil && admin.RoleOf(u) == admin.Administrator {
				left++
			}
		}
		if left != 1 {
			t.Errorf("OB-10: %d administrators are left, want 1", left)
		}
	})
}

// TestOwnProposals checks that one user cannot keep others from proposing (OB-10).
func TestOwnProposals(t *testing.T) {
	s, actor := two(t, "user disable")
	root, anna := s.As(actor("root")), s.As(actor("anna"))
	for range 20 {
		_, err := admin.UserDisable.Do(t.Context(), root, admin.UserName{Name: "bob"})
		proposed(t, err)
	}
	_, err := admin.UserDisable.Do(t.Context(), root, admin.UserName{Name: "bob"})
	if !errors.Is(err, admin.ErrConflict) {
		t.Errorf("OB-10: of one person: %v, want ErrConflict", err)
	}
	_, err = admin.UserDisable.Do(t.Context(), anna, admin.UserName{Name: "bob"})
	p := proposed(t, err)
	if found, err := s.Store.Proposal(t.Context(), p.ID, s.Now()); err != nil || found.State != storage.ProposalOpen {
		t.Errorf("OB-10: of another: %+v %v", found, err)
	}
}
