package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// removing is a store that removes an entry just before it is read.
type removing struct{ storage.Store }

func (r removing) AuditEntries(ctx context.Context, q storage.AuditQuery) ([]storage.AuditEntry, error) {
	if _, err := r.RemoveAudit(ctx, q.From+1, 100); err != nil {
		return nil, err
	}
	return r.Store.AuditEntries(ctx, q)
}

// TestShowRemoved checks that an entry that expires while it is being read is not reported as
// missing (OB-04).
func TestShowRemoved(t *testing.T) {
	s := installed(t)
	recorded(t, s, 5)
	s.Store = removing{s.Store}
	_, err := admin.AuditShow.Do(t.Context(), s.As(admin.Actor{Role: admin.Auditor}), admin.AuditIndex{Index: 3})
	if !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("got %v, want that it was removed", err)
	}
}

// macOf opens the MAC of the audit log of an installation.
func macOf(s *admin.Service) func(context.Context) (*auditlog.MAC, error) {
	return func(ctx context.Context) (*auditlog.MAC, error) {
		signer, err := s.AuditSigner(ctx)
		if err != nil {
			return nil, err
		}
		return signer.MAC(ctx)
	}
}

// recorded appends n entries of a user to the audit log of an installation.
func recorded(t *testing.T, s *admin.Service, n int) {
	t.Helper()
	keep(t, s, func(ctx context.Context, w *auditlog.Writer) {
		for i := range n {
			w.Add(ctx, audit.UserChanged, []slog.Attr{
				slog.String("user", "usr_gone"), slog.String("user_name", fmt.Sprint("gone", i)),
			})
		}
	})
}

// keep appends the entries that add gives to a writer.
func keep(t *testing.T, s *admin.Service, add func(context.Context, *auditlog.Writer)) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	w := auditlog.NewWriter(auditlog.Options{
		Store: s.Store, Now: s.Now, Log: slog.New(slog.DiscardHandler), MAC: macOf(s),
	})
	add(ctx, w)
	end() // Run appends the queue before it ends
	w.Run(ctx)
}

// TestAuditOperations checks that the audit log is read from its end, in pages that contain each
// entry once, and that entries can be proved (OB-05).
func TestAuditOperations(t *testing.T) {
	s := installed(t)
	by := s.As(admin.Actor{Role: admin.Auditor})
	recorded(t, s, 5)
	for limit := 1; limit <= 6; limit++ {
		var read []int64
		_, err := admin.Everything(func(p admin.Paging) (admin.Page[admin.AuditEntry], error) {
			p.Limit = limit
			got, err := admin.AuditList.Do(t.Context(), by, admin.AuditWanted{Person: "usr_gone", Paging: p})
			for _, e := range got.Items {
				read = append(read, e.Index)
			}
			return got, err
		})
		if got := fmt.Sprint(read); err != nil || got != "[4 3 2 1 0]" {
			t.Errorf("OB-05: pages of %d: %s, %v, want each entry once, the newest first", limit, got, err)
		}
	}
	for _, after := range []string{"x", "-1", "1", "1.x", "1.-1"} {
		in := admin.AuditWanted{Paging: admin.Paging{After: after}}
		if _, err := admin.AuditList.Do(t.Context(), by, in); !errors.Is(err, admin.ErrInvalid) {
			t.Errorf("after %q: %v, want ErrInvalid", after, err)
		}
	}
	if _, err := admin.AuditShow.Do(t.Context(), by, admin.AuditIndex{Index: 5}); !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("an entry that is not there: %v, want ErrNotFound", err)
	}
	proof, err := admin.AuditProve.Do(t.Context(), by, admin.AuditIndex{Index: 3})
	if err != nil || len(proof.Chain) != 1 || proof.Chain[0].Fields["user_name"] != "gone3" {
		t.Fatalf("OB-05: the proof is of %+v, %v", proof.Chain, err)
	}
	if _, err := proof.Open(proof.Key); err != nil {
		t.Errorf("OB-05: the proof cannot be checked: %v", err)
	}
	newest, err := admin.AuditCheckpointNew.Do(t.Context(), by, admin.None{})
	if err != nil || newest.Size != 5 || newest.Key != proof.Key || newest.Checkpoint != proof.Checkpoint {
		t.Errorf("OB-05: the checkpoint is %+v, %v", newest, err)
	}
}

// TestAuditNames checks that entries with only IDs, such as tool calls, are listed with names
// (OB-05).
func TestAuditNames(t *testing.T) {
	s := installed(t)
	err := errors.Join(
		s.Store.CreateUser(t.Context(), storage.User{ID: "usr_bob", Name: "bob", CreatedAt: s.Now()}),
		s.Store.PutClient(t.Context(), storage.Client{ID: "mcp_notes", Name: "Notes", CreatedAt: s.Now()}),
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	w := auditlog.NewWriter(auditlog.Options{
		Store: s.Store, Now: s.Now, Log: slog.New(slog.DiscardHandler), MAC: macOf(s),
	})
	for _, user := range []string{"usr_bob", "usr_gone"} {
		w.Add(ctx, audit.ToolCalled, []slog.Attr{slog.String("user", user), slog.String("client_id", "mcp_notes")})
	}
	end() // Run appends the queue before it ends
	w.Run(ctx)
	got, err := admin.AuditList.Do(t.Context(), s.As(admin.Actor{Role: admin.Auditor}), admin.AuditWanted{})
	if err != nil || len(got.Items) != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
	for i, want := range []string{"", "bob"} {
		if e := got.Items[i]; e.UserName != want || e.ClientName != "Notes" {
			t.Errorf("got %q and %q, want %q and Notes", e.UserName, e.ClientName, want)
		}
	}
	proof, err := admin.AuditProve.Do(t.Context(), s.As(admin.Actor{Role: admin.Auditor}), admin.AuditIndex{Index: 0})
	if err != nil || len(proof.Chain) != 1 {
		t.Fatalf("OB-05: the proof is of %+v, %v", proof.Chain, err)
	}
	e := proof.Chain[0]
	if got := e.NameOf("user") + " " + e.NameOf("client_id") + e.NameOf("tool"); got != "bob Notes" {
		t.Errorf("OB-05: a proof names %q, want bob and Notes", got)
	}
	e.Fields["user_name"] = "robert"
	if got := e.NameOf("user"); got != "" {
		t.Errorf("OB-05: an entry with a name is given another: %q", got)
	}
}
