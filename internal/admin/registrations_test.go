package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// counting counts the entries of the audit log that the searches of a store may have read.
type counting struct {
	storage.Store
	reads int
}

func (c *counting) SearchAudit(
	ctx context.Context, q storage.AuditSearch,
) (found []storage.AuditEntry, next storage.AuditPlace, err error) {
	if q.Reads == 0 {
		q.Reads = storage.AuditReads
	}
	c.reads += q.Reads
	return c.Store.SearchAudit(ctx, q)
}

// TestApplicationEntriesBounded: RU-18, OP-06: one request for the entries of an application reads a bounded number of
// entries, also if few of them meet its other conditions, and the caller can continue.
func TestApplicationEntriesBounded(t *testing.T) {
	s := installed(t)
	ctx, by := t.Context(), s.As(admin.Actor{Role: admin.Administrator})
	if err := s.Store.PutClient(ctx, storage.Client{
		ID: "mcp_notes", Name: "Notes", Source: storage.SourceDynamic, CreatedAt: s.Now(),
	}); err != nil {
		t.Fatal(err)
	}
	add := func(w *auditlog.Writer, event, client string) {
		w.Add(ctx, event, []slog.Attr{slog.String("user", "usr_1"), slog.String("client_id", client)})
	}
	keep(t, s, func(ctx context.Context, w *auditlog.Writer) { add(w, audit.TokenIssued, "mcp_notes") })
	for range 25 { // of each thousand entries, some are of the event
		keep(t, s, func(ctx context.Context, w *auditlog.Writer) {
			for i := range 1000 {
				event := audit.ToolCalled
				if i%15 == 0 {
					event = audit.TokenIssued
				}
				add(w, event, "mcp_other")
			}
		})
	}
	store := &counting{Store: s.Store}
	s.Store = store
	requests := 0
	all, err := admin.Everything(func(p admin.Paging) (admin.Page[admin.AuditEntry], error) {
		requests++
		store.reads = 0
		got, err := admin.AuditList.Do(ctx, by, admin.AuditWanted{
			Application: "Notes", Person: "usr_1", Event: audit.TokenIssued, Paging: p,
		})
		if store.reads > storage.AuditReads {
			t.Errorf("OP-06: one request read %d entries", store.reads)
		}
		return got, err
	})
	if err != nil || len(all) != 1 || all[0].Index != 0 || requests < 2 {
		t.Errorf("OP-06: got %v and %v after %d requests, want entry 0 after several", all, err, requests)
	}
}

// TestListsByApplication: RU-18: the audit log and the attempts of an application are those of all of its
// registrations: approved or not, deleted or merged.
func TestListsByApplication(t *testing.T) {
	s := installed(t)
	ctx, by := t.Context(), s.As(admin.Actor{Role: admin.Administrator, Program: true})
	registry, err := s.Registry()
	if err != nil {
		t.Fatal(err)
	}
	register := func(name, redirect string) storage.Client {
		body, _ := json.Marshal(map[string]any{"client_name": name, "redirect_uris": []string{redirect}})
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/register", strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		registry.ServeHTTP(w, r)
		var out struct {
			ID string `json:"client_id"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || out.ID == "" {
			t.Fatalf("%v: %s", err, w.Body)
		}
		c, ok := registry.Sealed(out.ID)
		if !ok {
			t.Fatalf("%s is not sealed", out.ID)
		}
		return c
	}
	store := func(c storage.Client) string {
		if err := s.Store.PutClient(ctx, c); err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	approved := register("Claude", "http://localhost:1/cb")
	deleted := register("Claude", "http://localhost:2/cb")
	sealed := register("Claude", "http://127.0.0.1:3/cb").ID
	namesake := register("Claude", "https://other.example/cb")
	store(approved)
	store(deleted)
	store(namesake)
	key := approved.Application()
	if _, err := s.Store.FiledApplication(ctx, key); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.DeleteClient(ctx, deleted.ID, s.Now()); err != nil {
		t.Fatal(err)
	}
	// A stranger can send the key of an application, or of one that is merged into it, as a client ID.
	ids := []string{approved.ID, namesake.ID, deleted.ID, sealed, "mcp_unknown", key, namesake.Application()}
	keep(t, s, func(ctx context.Context, w *auditlog.Writer) {
		for _, id := range ids {
			w.Add(ctx, audit.TokenIssued, []slog.Attr{slog.String("client_id", id)})
		}
		w.Add(ctx, audit.ApplicationChanged, []slog.Attr{slog.String("application", key)})
	})
	s.Attempts = attempt.Finder{Store: s.Store, Now: s.Now}
	recorder := attempt.NewRecorder(attempt.Config{
		Store: s.Store, Key: make([]byte, 32), Now: s.Now, Log: slog.New(slog.DiscardHandler),
	})
	for i, id := range ids {
		sent := request.New(attempt.NewReference(), s.Now(), netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
		recorder.End(httptest.NewRequest("POST", "/token", nil), sent, attempt.Taken{
			Kind: attempt.Refresh, Path: "/token", Keys: attempt.Keys{Client: id},
			Answer: attempt.Answer{Status: 400, Error: "invalid_grant", Cause: attempt.CauseRevoked},
		})
	}
	recorder.Write(ctx)

	listed := func(application string) (inAudit, tried []string) {
		t.Helper()
		for limit := range 4 {
			var page []string
			all, err := admin.Everything(func(p admin.Paging) (admin.Page[admin.AuditEntry], error) {
				p.Limit = limit + 1
				return admin.AuditList.Do(ctx, by, admin.AuditWanted{Application: application, Paging: p})
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range all {
				page = append(page, e.ClientID+e.Fields["application"])
			}
			if inAudit != nil && !slices.Equal(page, inAudit) {
				t.Errorf("RU-18: pages of %d have %v, others %v", limit+1, page, inAudit)
			}
			inAudit = page
		}
		found, err := admin.AttemptList.Do(ctx, by, admin.AttemptsWanted{Application: application})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range found.Items {
			tried = append(tried, a.ClientID)
		}
		return inAudit, tried
	}
	same := func(what string, got []string, want ...string) {
		t.Helper()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("RU-18: %s: got %v, want %v", what, got, want)
		}
	}
	inAudit, tried := listed(key)
	same("audit", inAudit, approved.ID, deleted.ID, sealed, key)
	same("attempts", tried, approved.ID, deleted.ID, sealed)
	for _, name := range []string{sealed, deleted.ID} {
		inAudit, _ = listed(name)
		same("audit of a registration", inAudit, approved.ID, deleted.ID, sealed, key)
	}
	pair := admin.ApplicationPair{ApplicationID: admin.ApplicationID{ID: namesake.Application()}, Into: key}
	if _, err := admin.ApplicationMerge.Do(ctx, by, pair); err != nil {
		t.Fatal(err)
	}
	inAudit, tried = listed("Claude")
	same("audit of what was merged", inAudit, approved.ID, namesake.ID, deleted.ID, sealed, key)
	same("attempts of what was merged", tried, approved.ID, namesake.ID, deleted.ID, sealed)
	_, err = admin.AuditList.Do(ctx, by, admin.AuditWanted{Application: "None"})
	if !errors.Is(err, admin.ErrNotFound) || !strings.Contains(err.Error(), "application list") {
		t.Errorf("RU-18: got %v", err)
	}
}
