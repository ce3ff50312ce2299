package api_test

import (
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// TestIfMatchRace checks that only one of several changes with the same ETag is made, even on
// different servers (OB-10).
func TestIfMatchRace(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) func() (storage.Store, error){
		"SQLite": func(t *testing.T) func() (storage.Store, error) {
			path := filepath.Join(t.TempDir(), "db")
			return func() (storage.Store, error) { return sqlite.Open(t.Context(), path, sqlite.Options{}) }
		},
		"PostgreSQL": func(t *testing.T) func() (storage.Store, error) {
			url := pgtest.Start(t).Database(t)
			return func() (storage.Store, error) { return postgres.Open(t.Context(), url, postgres.Options{}) }
		},
	} {
		t.Run("OB-10 "+name, func(t *testing.T) {
			store := open(t)
			var servers []*rig
			for range 2 {
				s, err := store()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				servers = append(servers, newRigOn(t, s))
			}
			first := servers[0]
			first.person("root", admin.Administrator, "admin:write", time.Minute)
			first.person("alice", "", "", time.Minute)
			servers[1].tokens = first.tokens
			seen := first.do("root", "GET", "/users/alice", "").Header().Get("ETag")
			alice, err := first.users.Find(t.Context(), "alice")
			if err != nil {
				t.Fatal(err)
			}
			answers := make(chan *httptest.ResponseRecorder, 16)
			var all sync.WaitGroup
			for i := range cap(answers) {
				all.Go(func() {
					body := `{"role":"` + []string{"auditor", "support", "administrator"}[i%3] + `"}`
					path := "/users/" + []string{"Alice", alice.ID}[i/2%2] + "/role"
					answers <- servers[i%2].do("root", "PUT", path, body, "If-Match", seen)
				})
			}
			all.Wait()
			close(answers)
			made := 0
			for w := range answers {
				if w.Code == 200 {
					made++
					continue
				}
				first.is(w, 412, "changed")
			}
			if made != 1 {
				t.Errorf("made %d times, want once", made)
			}
		})
	}
}

// TestBusy checks that a change is refused while another server holds the lock, and succeeds
// afterwards.
func TestBusy(t *testing.T) {
	r := newRig(t)
	r.person("root", admin.Administrator, "admin:write", time.Minute)
	r.person("alice", "", "", time.Minute)
	for i := range 64 { // one of them is alice's
		task := "change " + strconv.Itoa(i)
		if _, err := r.store.Lease(t.Context(), task, "other", r.now, r.now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	disable := func() *httptest.ResponseRecorder {
		return r.do("root", "POST", "/users/alice/disable", "{}", "Idempotency-Key", "k")
	}
	w := disable()
	r.is(w, 503, "unavailable")
	if w.Header().Get("Retry-After") == "" {
		t.Error("it does not say when to try again")
	}
	r.now = r.now.Add(time.Minute)
	r.is(disable(), 200, "")
}
