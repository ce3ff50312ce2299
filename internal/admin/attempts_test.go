package admin_test

import (
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// TestAttemptsAreNamed checks that a step that recorded only IDs, such as a refresh, is listed with
// names.
func TestAttemptsAreNamed(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	s := newService(t, at)
	u, err := s.Users.Add(t.Context(), users.Account{Name: "bob", Password: "correct horse battery"})
	if err != nil {
		t.Fatal(err)
	}
	var store storage.Attempts = s.Store
	s.Attempts = attempt.Finder{Store: store, Now: s.Now}
	r := attempt.NewRecorder(attempt.Config{
		Store: store, Key: make([]byte, 32), Now: s.Now, Log: slog.New(slog.DiscardHandler),
	})
	sent := request.New(attempt.NewReference(), at, netip.MustParseAddr("192.0.2.1"))
	r.End(httptest.NewRequest("POST", "/token", nil), sent, attempt.Taken{
		Kind: attempt.Refresh, Path: "/token", Keys: attempt.Keys{Person: u.ID, Client: "gone"},
		Answer: attempt.Answer{Status: 400, Error: "invalid_grant", Cause: attempt.CauseRevoked},
	})
	r.Write(t.Context())
	found, err := admin.AttemptList.Do(t.Context(), s.As(admin.Actor{Role: admin.Auditor}), admin.AttemptsWanted{})
	if err != nil || len(found.Items) != 1 || found.Items[0].Person != "bob" || found.Items[0].ClientName != "" {
		t.Errorf("RU-12: got %+v, %v", found.Items, err)
	}
}
