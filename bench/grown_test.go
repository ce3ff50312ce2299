package bench

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/sqlite"
)

var grants = flag.String("grants", "10000,100000", "how many grants BenchmarkGrown stores first, a list; 5000000 take minutes and 3 GB")

// BenchmarkGrown is what an approval with its code exchange, and a refresh, cost a store
// that holds many grants, each with a live refresh token. SQLite, synchronous commits.
func BenchmarkGrown(b *testing.B) {
	for text := range strings.SplitSeq(*grants, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		path := filepath.Join(b.TempDir(), "db")
		grow(b, path, n)
		s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("refresh/%d", n), func(b *testing.B) { refreshGrown(b, s, n) })
		b.Run(fmt.Sprintf("sign-in/%d", n), func(b *testing.B) { signInGrown(b, s) })
		s.Close()
	}
}

// grow fills a database by SQL alone: going through the verbs would take hours.
func grow(b *testing.B, path string, n int) {
	b.Helper()
	s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	if err := s.CreateUser(b.Context(), storage.User{ID: "usr_1", Name: "alice", CreatedAt: now}); err != nil {
		b.Fatal(err)
	}
	s.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // the settings below are of the connection
	at, far := now.UnixMilli(), now.Add(100*24*time.Hour).UnixMilli()
	const numbers = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1) "
	for _, q := range []struct {
		sql  string
		args []any
	}{
		{"PRAGMA synchronous = OFF", nil},
		{"PRAGMA cache_size = -800000", nil},
		{"INSERT INTO sessions (hash, user_id, auth_time, created_at, expires_at) VALUES (?, 'usr_1', ?, ?, ?)", []any{session[:], at, at, far}},
		{numbers + `INSERT INTO clients (id, name, redirect_uris, grant_types, auth_method, source, created_at, last_used_at)
			SELECT printf('mcp_%040d', i), 'An application', '["http://127.0.0.1/callback"]', '["authorization_code","refresh_token"]', 'none', 'dynamic', ?2, ?2 FROM n`, []any{n, at}},
		{numbers + `INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at,
			code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at, status_index)
			SELECT printf('grt_%027d', i), printf('mcp_%040d', i), 'usr_1', 'https://mcp.example.com/mcp', '["mcp"]', ?2, ?2, ?3,
				randomblob(32), 'http://127.0.0.1/callback', 'challenge', ?2, ?2, ?3, i + 1 FROM n`, []any{n, at, far}},
	} {
		if _, err := db.Exec(q.sql, q.args...); err != nil {
			b.Fatalf("%v: %s", err, q.sql)
		}
	}
	tokens(b, db, n, at, far)
}

// tokens gives each grant a refresh token.
func tokens(b *testing.B, db *sql.DB, n int, at, far int64) {
	b.Helper()
	tx, err := db.Begin()
	if err != nil {
		b.Fatal(err)
	}
	number, err := tx.Prepare("UPDATE grants SET generation = 1, refresh_hash = ?, rotated_at = ?, refresh_expires_at = ? WHERE id = ?")
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		h := secretOf(i)
		if _, err := number.Exec(h[:], at, far, fmt.Sprintf("grt_%027d", i)); err != nil {
			b.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
}

var session = storage.Hash{1, 2, 3}

func secretOf(i int) storage.Hash { return sha256.Sum256(strconv.AppendInt(nil, int64(i), 10)) }

// refreshGrown rotates tokens from all over the table.
func refreshGrown(b *testing.B, s storage.Store, n int) {
	i := 0
	generations := map[int]int64{}
	for b.Loop() {
		i = (i + 7919) % n // a prime: far apart
		now := time.Now()
		generations[i]++
		_, err := s.RotateRefresh(context.Background(), storage.RotateRefresh{
			Token:    storage.NumberedRefresh{GrantID: fmt.Sprintf("grt_%027d", i), Generation: generations[i], IssuedAt: now.Add(-15 * time.Minute), Secret: secretOf(i)},
			ClientID: fmt.Sprintf("mcp_%040d", i), Now: now, Grace: time.Minute,
			Next: storage.Refresh{ExpiresAt: now.Add(time.Hour)},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func signInGrown(b *testing.B, s storage.Store) {
	for b.Loop() {
		if err := signIn(s); err != nil {
			b.Fatal(err)
		}
	}
}
