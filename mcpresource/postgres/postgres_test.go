package postgres_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the tests

	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/postgres"
)

const resource = "https://mcp.example.com/mcp"

func open(t *testing.T, url, server string) (*sql.DB, *postgres.Shared) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	shared, err := postgres.New(t.Context(), db, server)
	if err != nil {
		t.Fatal(err)
	}
	return db, shared
}

// replica returns a guard in front of a server that opens a session for each initialize. The token
// names the caller: "alice", or "alice/thumbprint" for a token bound to a key.
func replica(t *testing.T, s *postgres.Shared, change func(*mcpresource.Config)) http.Handler {
	t.Helper()
	limiter, err := mcpresource.NewLimiter(mcpresource.Limits{
		Calls: mcpresource.Rate{PerSecond: 0.01, Burst: 10},
		Tools: map[string]mcpresource.Rate{"write": {PerSecond: 0.01, Burst: 4}},
	}, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := mcpresource.Config{
		Resource: resource, AuthorizationServers: []string{"https://auth.example.com"},
		Limiter: limiter, DPoP: &mcpresource.DPoP{Replays: s}, Sessions: s.Sessions(),
		Validator: mcpresource.ValidatorFunc(
			func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
				name, print, _ := strings.Cut(c.Token, "/")
				return &mcpresource.Principal{
					Issuer: "https://auth.example.com", Subject: name, ClientID: "app", Audience: []string{resource},
					ExpiresAt: time.Now().Add(time.Hour), Thumbprint: print,
				}, nil
			}),
	}
	if change != nil {
		change(&c)
	}
	guard, err := mcpresource.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return guard.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || strings.Contains(string(body), `"initialize"`) {
			w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", opened.Add(1)))
		}
	}))
}

var opened atomic.Int64

func ask(h http.Handler, authorization, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, resource, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", authorization)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	list       = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
)

func call(tool string) string {
	b, _ := json.Marshal(tool)
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":` + string(b) + `,"arguments":{}}}`
}

func TestReplicas(t *testing.T) {
	url := pgtest.Start(t).Database(t)
	// Both create the tables concurrently.
	var one, two *postgres.Shared
	var both sync.WaitGroup
	for _, s := range []**postgres.Shared{&one, &two} {
		db, err := sql.Open("pgx", url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		both.Go(func() {
			if *s, err = postgres.New(t.Context(), db, resource); err != nil {
				t.Error(err)
			}
		})
	}
	if both.Wait(); t.Failed() {
		t.FailNow()
	}
	replicas := []http.Handler{replica(t, one, nil), replica(t, two, nil)}

	passes := func(name, tool string, n int) (passed int) {
		var count atomic.Int64
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				switch w := ask(replicas[i%2], "Bearer "+name, call(tool)); {
				case w.Code == 200:
					count.Add(1)
				case w.Code != 429 || w.Header().Get("Retry-After") == "":
					t.Errorf("got %d %v", w.Code, w.Header())
				}
			})
		}
		all.Wait()
		return int(count.Load())
	}
	t.Run("RS-189 replicas count together, of many calls at once no more pass", func(t *testing.T) {
		for _, step := range []struct {
			name, tool string
			want       int
		}{
			{"carol", "read", 10}, {"carol", "read", 0}, {"dave", "write", 4}, {"dave", "read", 6},
			{"dave", "write", 0},
		} {
			if got := passes(step.name, step.tool, 32); got != step.want {
				t.Errorf("%s %s: %d passed, want %d", step.name, step.tool, got, step.want)
			}
		}
	})
	t.Run("RS-189 Retry-After is when one is had again", func(t *testing.T) {
		w := ask(replicas[0], "Bearer carol", call("read"))
		if wait, err := strconv.Atoi(w.Header().Get("Retry-After")); err != nil || wait < 60 || wait > 100 {
			t.Errorf("got %d %v", wait, err)
		}
	})
	t.Run("RS-209 a proof that one replica has seen is good at no other", func(t *testing.T) {
		signer, err := dpop.Generate()
		if err != nil {
			t.Fatal(err)
		}
		token := "erin/" + signer.Thumbprint()
		proof, err := signer.Proof(dpop.Claims{Method: "POST", URL: resource, Token: token, Now: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		var first atomic.Int64
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				switch w := ask(replicas[i%2], "DPoP "+token, list, "DPoP", proof); w.Code {
				case 200:
					first.Add(1)
				case 401:
				default:
					t.Errorf("got %d %s", w.Code, w.Body)
				}
			})
		}
		if all.Wait(); first.Load() != 1 {
			t.Errorf("%d passed, want 1", first.Load())
		}
	})
	t.Run("RS-112 RS-116 a session is its person's at every replica", func(t *testing.T) {
		id := ask(replicas[0], "Bearer alice", initialize).Header().Get("Mcp-Session-Id")
		for _, step := range []struct {
			name string
			want int
		}{{"bob", 404}, {"alice", 200}, {"bob", 404}} {
			if w := ask(replicas[1], "Bearer "+step.name, list, "Mcp-Session-Id", id); w.Code != step.want {
				t.Errorf("%s: got %d, want %d", step.name, w.Code, step.want)
			}
		}
	})
	t.Run("RS-189 what a person has open counts at every replica", func(t *testing.T) {
		few := func(c *mcpresource.Config) { c.MaxSessions = 3 }
		bounded := []http.Handler{replica(t, one, few), replica(t, two, few)}
		for i, want := range []int{200, 200, 200, 429} {
			if w := ask(bounded[i%2], "Bearer frank", initialize); w.Code != want {
				t.Errorf("%d: got %d, want %d", i, w.Code, want)
			}
		}
	})
	t.Run("RS-189 servers of other names share nothing", func(t *testing.T) {
		_, other := open(t, url, "https://other.example.com/mcp")
		if first, err := other.Use(t.Context(), "x", time.Now().Add(time.Minute)); !first || err != nil {
			t.Fatal(first, err)
		}
		if first, err := one.Use(t.Context(), "x", time.Now().Add(time.Minute)); !first || err != nil {
			t.Errorf("got %t %v", first, err)
		}
		if first, err := two.Use(t.Context(), "x", time.Now().Add(time.Minute)); first || err != nil {
			t.Errorf("own: got %t %v", first, err)
		}
		if w := ask(replica(t, other, nil), "Bearer carol", call("read")); w.Code != 200 {
			t.Errorf("got %d", w.Code)
		}
	})
}

// TestSessions checks the parts of mcpresource.SessionBinder that requests to a guard do not show.
func TestSessions(t *testing.T) {
	db, shared := open(t, pgtest.Start(t).Database(t), resource)
	s, ctx := shared.Sessions(), t.Context()
	alice := mcpresource.Binding{Person: "https://auth.example.com\x00alice", Client: "app"}
	pending := alice
	pending.Pending = true
	bob := mcpresource.Binding{Person: "https://auth.example.com\x00bob", Client: "app"}
	claims := func(id string, b, want mcpresource.Binding) {
		t.Helper()
		if got, err := s.Claim(ctx, id, b); got != want || err != nil {
			t.Errorf("got %+v %v, want %+v", got, err, want)
		}
	}
	owned := func(id string, want mcpresource.Binding, known bool) {
		t.Helper()
		if got, ok, err := s.Owner(ctx, id); got != want || ok != known || err != nil {
			t.Errorf("got %+v %t %v, want %+v %t", got, ok, err, want, known)
		}
	}
	t.Run("RS-112 a claim holds against others, and is kept when it is accepted", func(t *testing.T) {
		claims("a", pending, pending)
		claims("a", bob, pending)
		claims("a", alice, alice)
		claims("a", pending, alice)
		owned("a", alice, true)
	})
	t.Run("RS-112 of 32 claims one holds", func(t *testing.T) {
		var all sync.WaitGroup
		holds := make([]mcpresource.Binding, 32)
		for i := range holds {
			all.Go(func() {
				b := mcpresource.Binding{Person: fmt.Sprint("p", i), Client: "app"}
				var err error
				if holds[i], err = s.Claim(ctx, "race", b); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, b := range holds {
			if b != holds[0] {
				t.Errorf("got %v and %v", b, holds[0])
			}
		}
	})
	t.Run("RS-112 what is taken back is that claim alone", func(t *testing.T) {
		if err := errors.Join(s.Release(ctx, "a", pending), s.Release(ctx, "a", bob)); err != nil {
			t.Fatal(err)
		}
		owned("a", alice, true)
		if err := s.Release(ctx, "a", alice); err != nil {
			t.Fatal(err)
		}
		owned("a", mcpresource.Binding{}, false)
	})
	t.Run("RS-112 who opens a session has it, whoever claimed it", func(t *testing.T) {
		claims("b", bob, bob)
		if err := s.Open(ctx, "b", alice); err != nil {
			t.Fatal(err)
		}
		owned("b", alice, true)
	})
	t.Run("RS-217 what the client said when it opened the session stays", func(t *testing.T) {
		shows := alice
		shows.ShowsLinks = true
		if err := s.Open(ctx, "links", shows); err != nil {
			t.Fatal(err)
		}
		owned("links", shows, true)
		claims("links", alice, shows)
		if err := s.Release(ctx, "links", alice); err != nil {
			t.Fatal(err)
		}
		owned("links", shows, true)
		if err := s.Open(ctx, "links", alice); err != nil {
			t.Fatal(err)
		}
		owned("links", alice, true)
		if err := s.Release(ctx, "links", alice); err != nil {
			t.Fatal(err)
		}
	})
	rest := func(age time.Duration) {
		t.Helper()
		if _, err := db.ExecContext(ctx, "UPDATE mcpresource_sessions SET used_at = used_at - $1", age.Microseconds()); err != nil {
			t.Fatal(err)
		}
	}
	lives := func(want int) {
		t.Helper()
		if n, err := s.Live(ctx, alice.Person); n != want || err != nil {
			t.Errorf("got %d %v, want %d", n, err, want)
		}
	}
	t.Run("RS-114 what rests does not count, until it is used, and ends after a day", func(t *testing.T) {
		lives(1)
		rest(31 * time.Minute)
		lives(0)
		owned("b", alice, true) // counts as a use
		lives(1)
		rest(25 * time.Hour)
		owned("b", mcpresource.Binding{}, false)
		claims("b", bob, bob)
	})
}

// TestSweep: expired rows are removed.
func TestSweep(t *testing.T) {
	url := pgtest.Start(t).Database(t)
	db, s := open(t, url, resource)
	ctx := t.Context()
	_, err := s.Use(ctx, "ended", time.Now().Add(-time.Hour))
	_, again := s.Take(ctx, []mcpresource.Allowance{{Key: [32]byte{1}, Every: time.Millisecond, Burst: 1}})
	opened := s.Sessions().Open(ctx, "ended", mcpresource.Binding{Person: "p"})
	if err := errors.Join(err, again, opened); err != nil {
		t.Fatal(err)
	}
	for _, rests := range []string{
		"UPDATE mcpresource_allowances SET full_at = 0", "UPDATE mcpresource_sessions SET used_at = 0",
	} {
		if _, err := db.ExecContext(ctx, rests); err != nil {
			t.Fatal(err)
		}
	}
	_, other := open(t, url, resource) // has not swept yet
	if _, err := other.Use(ctx, "new", time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{"allowances": 0, "replays": 1, "sessions": 0} {
		var n int
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM mcpresource_"+table).Scan(&n); n != want || err != nil {
			t.Errorf("RS-51 %s: got %d %v, want %d", table, n, err, want)
		}
	}
}

// TestAway: without the database, limits still apply, and requests that depend on it are rejected.
func TestAway(t *testing.T) {
	db, s := open(t, pgtest.Start(t).Database(t), resource)
	h := replica(t, s, nil)
	id := ask(h, "Bearer alice", initialize).Header().Get("Mcp-Session-Id")
	db.Close()
	t.Run("RS-189 limits are counted by the replica alone", func(t *testing.T) {
		passed := 0
		for range 20 {
			if w := ask(h, "Bearer alice", call("read")); w.Code == 200 {
				passed++
			} else if w.Code != 429 {
				t.Errorf("got %d", w.Code)
			}
		}
		if passed != 10 {
			t.Errorf("%d passed, want 10", passed)
		}
	})
	t.Run("RS-112 a session is not continued", func(t *testing.T) {
		if w := ask(h, "Bearer alice", list, "Mcp-Session-Id", id); w.Code != 503 {
			t.Errorf("got %d", w.Code)
		}
	})
	t.Run("RS-209 a proof is not believed", func(t *testing.T) {
		if first, err := s.Use(t.Context(), "x", time.Now()); first || err == nil {
			t.Errorf("got %t %v", first, err)
		}
	})
}

// TestSchema: a program without the right to create tables uses existing ones.
func TestSchema(t *testing.T) {
	url := pgtest.Start(t).Database(t)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), postgres.Schema); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "ALTER TABLE mcpresource_sessions DROP COLUMN shows_links"); err != nil {
		t.Fatal(err)
	}
	open(t, url, resource) // adds missing parts to tables of an earlier version
	db, s := open(t, url+"&default_transaction_read_only=on", resource)
	if _, err := s.Use(t.Context(), "x", time.Now()); err == nil {
		t.Error("the test shows nothing: the database can be written")
	}
	if _, err := db.ExecContext(t.Context(), postgres.Schema); err == nil {
		t.Error("the test shows nothing: tables can be created")
	}
}
