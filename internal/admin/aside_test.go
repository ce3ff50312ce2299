package admin_test

import (
	"context"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

// watched records whether a search was marked as an administrator's query.
type watched struct {
	storage.Store
	aside bool
}

func (w *watched) SearchAudit(
	ctx context.Context, q storage.AuditSearch,
) ([]storage.AuditEntry, storage.AuditPlace, error) {
	w.aside = storage.IsAside(ctx)
	return w.Store.SearchAudit(ctx, q)
}

// TestQuestionsAreAside checks that console, API and MCP queries use the store's connections for
// administrators (OP-06).
func TestQuestionsAreAside(t *testing.T) {
	store := &watched{Store: installation.Store(t)}
	s := &admin.Service{Store: store, Now: time.Now}
	by := s.As(admin.Actor{Role: admin.Auditor, Proved: time.Now()})
	if _, err := admin.AuditList.Do(t.Context(), by, admin.AuditWanted{}); err != nil {
		t.Fatal(err)
	}
	if !store.aside {
		t.Error("the search was not marked")
	}
}
