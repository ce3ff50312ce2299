package admin_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// TestAuditRequired checks audit.required (OB-06): through every front end, a change is answered
// when its entry is in the log. It is not started while the log accepts no entries.
func TestAuditRequired(t *testing.T) {
	real := installation.Store(t)
	var away atomic.Bool
	store := storagetest.NewFailing(real)
	store.Surround(func(verb string, do func() error) error {
		if verb == "AppendAudit" && away.Load() {
			return storagetest.ErrInjected
		}
		return do()
	})
	w := auditlog.NewWriter(auditlog.Options{
		Store: store, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		MAC: auditlog.MACOf(store, [][]byte{bytes.Repeat([]byte("k"), 32)}, "auth.example.com/audit", time.Now),
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	recorder := audit.New(slog.New(slog.DiscardHandler)).Into(w)
	accounts, err := users.New(users.Config{Store: store, Audit: recorder})
	if err != nil {
		t.Fatal(err)
	}
	s := &admin.Service{
		Store: store, Users: accounts, FreshFor: admin.FreshFor, Now: time.Now,
		Audit: recorder, AuditRequired: true,
	}
	by := s.As(admin.Actor{Role: admin.Administrator, Name: "root", Proved: time.Now()})
	add := func(name string) error {
		_, err := admin.UserAdd.Do(t.Context(), by, admin.NewUser{Name: name, Password: "correct horse battery"})
		return err
	}
	entries := func() int {
		found, err := store.AuditEntries(t.Context(), storage.AuditQuery{Event: audit.UserCreated, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if err := add("alice"); err != nil || entries() != 1 {
		t.Errorf("OB-06: %v, and %d entries at once", err, entries())
	}
	away.Store(true)
	if err := add("bob"); !errors.Is(err, admin.ErrUnkept) {
		t.Errorf("OB-06: whose entry is not kept: got %v", err)
	}
	if err := add("carol"); !errors.Is(err, admin.ErrUnavailable) {
		t.Errorf("OB-06: while the log takes nothing: got %v", err)
	}
	if _, err := store.UserByName(t.Context(), "carol"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("OB-06: it was begun: %v", err)
	}
	if _, err := admin.UserShow.Do(t.Context(), by, admin.UserName{Name: "bob"}); err != nil {
		t.Errorf("OB-06: what changes nothing: %v", err)
	}
	away.Store(false)
	wait.Success(t, "OB-06 changes are taken again", func() error { return add("carol") })
	if entries() != 3 {
		t.Errorf("OB-06: got %d entries, want 3", entries())
	}
}
