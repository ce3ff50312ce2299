//go:build unix

package bench

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

var (
	grants = flag.String("grants", "10000,100000",
		"how many grants BenchmarkGrown stores first, an ascending list; 10000000 take minutes and 10 GB")
	grownSQLite   = flag.String("grown-sqlite", "", "a file that BenchmarkGrown fills and keeps, to be measured again")
	grownPostgres = flag.String("grown-postgres", "", "likewise the URL of a PostgreSQL database on this machine")
)

// grownFile and grownURL return the databases that BenchmarkGrown fills.
func grownFile(b *testing.B) string {
	if *grownSQLite != "" {
		return *grownSQLite
	}
	return filepath.Join(b.TempDir(), "db")
}

func grownURL(b *testing.B) string {
	if *grownPostgres != "" {
		return *grownPostgres
	}
	return pgtest.Start(b).Database(b)
}

// BenchmarkGrown measures an approval with its code exchange, and a refresh, on a store with many
// grants, each with a client and a live refresh token. It reports time, CPU of this process and of
// PostgreSQL, and WAL of PostgreSQL. SQLite commits synchronously.
func BenchmarkGrown(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) {
		path := grownFile(b)
		grown(b, grownStore{
			driver: "sqlite", name: path, fill: fillSQLite,
			open: func() (storage.Store, error) { return sqlite.Open(b.Context(), path, sqlite.Options{}) },
		})
	})
	b.Run("postgres", func(b *testing.B) {
		url := grownURL(b)
		grown(b, grownStore{
			driver: "pgx", name: url, fill: fillPostgres, postgres: true,
			open: func() (storage.Store, error) { return postgres.Open(b.Context(), url, postgres.Options{}) },
		})
	})
}

// grownStore is one of the two stores, and the SQL that fills it.
type grownStore struct {
	driver, name string
	fill         []string // $1: last existing number, $2: last new number, $3: now, $4: their end
	postgres     bool
	open         func() (storage.Store, error)
}

var (
	fillSQLite = []string{
		numbers + `INSERT INTO clients (id, name, redirect_uris, grant_types, auth_method, source, created_at, last_used_at)
			SELECT printf('mcp_%040d', i), 'An application', '["http://127.0.0.1/callback"]', '["authorization_code","refresh_token"]',
				'none', 'dynamic', $3, $3 FROM n WHERE $4 > 0`,
		numbers + `INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at, code_hash, code_redirect, code_challenge,
			code_expires_at, code_used_at, sweep_at, status_index, generation, refresh_hash, rotated_at, refresh_expires_at)
			SELECT printf('grt_%027d', i), printf('mcp_%040d', i), 'usr_1', 'https://mcp.example.com/mcp', '["mcp"]', $3, $3, $4, randomblob(32), '', '',
				$3, $3, $4, (SELECT coalesce(max(status_index), 0) FROM grants) + i, 1, CAST(printf('%032d', i) AS BLOB), $3, $4 FROM n`,
		"UPDATE grant_walks SET codes = (SELECT max(status_index) FROM grants), newer = (SELECT max(status_index) FROM grants)",
	}
	fillPostgres = []string{
		`INSERT INTO clients (id, name, redirect_uris, grant_types, auth_method, source, created_at, last_used_at)
			SELECT 'mcp_' || lpad(i::text, 40, '0'), 'An application', '["http://127.0.0.1/callback"]', '["authorization_code","refresh_token"]',
				'none', 'dynamic', $3::bigint, $3 FROM generate_series($1::bigint, $2::bigint - 1) i WHERE $4::bigint > 0`,
		`INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at, code_hash, code_redirect, code_challenge,
			code_expires_at, code_used_at, sweep_at, generation, refresh_hash, rotated_at, refresh_expires_at)
			SELECT 'grt_' || lpad(i::text, 27, '0'), 'mcp_' || lpad(i::text, 40, '0'), 'usr_1', 'https://mcp.example.com/mcp', '["mcp"]', $3::bigint, $3, $4::bigint,
				sha256(i::text::bytea), '', '', $3, $3, $4, 1, lpad(i::text, 32, '0')::bytea, $3, $4 FROM generate_series($1::bigint, $2::bigint - 1) i`,
		"UPDATE grant_walks SET codes = (SELECT max(status_index) FROM grants), newer = (SELECT max(status_index) FROM grants)",
		"VACUUM (ANALYZE) grants", "VACUUM (ANALYZE) clients",
	}
)

const numbers = "WITH RECURSIVE n(i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $2) "

func grown(b *testing.B, e grownStore) {
	s, err := e.open() // creates the schema
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	err = s.CreateUser(b.Context(), storage.User{ID: "usr_1", Name: "alice", CreatedAt: now})
	if err == nil || errors.Is(err, storage.ErrExists) {
		err = s.PutSession(b.Context(),
			storage.Session{Hash: session, UserID: "usr_1", CreatedAt: now, ExpiresAt: now.Add(24 * time.Hour)},
			storage.SignInStart{})
	}
	if err != nil && !errors.Is(err, storage.ErrExists) {
		b.Fatal(err)
	}
	db, err := sql.Open(e.driver, e.name)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // the settings of grow apply to one connection
	for text := range strings.SplitSeq(*grants, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		e.grow(b, db, n)
		m := newMeter(b, e)
		b.Run(fmt.Sprintf("refresh/%d", n), func(b *testing.B) { refreshGrown(b, s, db, n, m) })
		b.Run(fmt.Sprintf("sign-in/%d", n), func(b *testing.B) { signInGrown(b, s, m) })
	}
}

// grow fills a database up to n grants with SQL, because the store's methods would take hours.
func (e grownStore) grow(b *testing.B, db *sql.DB, n int) {
	b.Helper()
	var have int
	if err := db.QueryRow("SELECT count(*) FROM clients WHERE id LIKE 'mcp_0000000000%'").Scan(&have); err != nil {
		b.Fatal(err)
	}
	if have >= n {
		return
	}
	now := time.Now()
	args := []any{have, n, now.UnixMilli(), now.Add(100 * 24 * time.Hour).UnixMilli()}
	fill := e.fill
	if !e.postgres {
		fill = append([]string{"PRAGMA synchronous = OFF", "PRAGMA cache_size = -800000"}, fill...)
	}
	for _, q := range fill {
		some := args
		if !strings.Contains(q, "INSERT") {
			some = nil
		}
		if _, err := db.Exec(q, some...); err != nil {
			b.Fatalf("%v: %s", err, q)
		}
	}
}

// secretOf returns the secret of grant i, as written by fill.
func secretOf(i int) (h storage.Hash) {
	copy(h[:], fmt.Sprintf("%032d", i))
	return h
}

// refreshGrown rotates tokens from all over the table.
func refreshGrown(b *testing.B, s storage.Store, db *sql.DB, n int, m *meter) {
	generations := rotated(b, db)
	i := 0
	m.start()
	for b.Loop() {
		i = (i + 7919) % n // a prime, to select distant rows
		now := time.Now()
		generation := max(generations[i], 1)
		_, err := s.RotateRefresh(context.Background(), storage.RotateRefresh{
			Token: storage.NumberedRefresh{
				GrantID: fmt.Sprintf("grt_%027d", i), Generation: generation, IssuedAt: now.Add(-15 * time.Minute),
				Secret: secretOf(i),
			},
			ClientID: fmt.Sprintf("mcp_%040d", i), Now: now, Grace: time.Minute,
			Next: storage.Refresh{ExpiresAt: now.Add(time.Hour)},
		})
		if err != nil {
			b.Fatal(err)
		}
		generations[i] = generation + 1
	}
	m.report(b)
}

// rotated returns the generations of the grants that an earlier run has refreshed.
func rotated(b *testing.B, db *sql.DB) map[int]int64 {
	b.Helper()
	rows, err := db.Query("SELECT id, generation FROM grants WHERE generation > 1")
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	out := map[int]int64{}
	for rows.Next() {
		var id string
		var generation int64
		if err := rows.Scan(&id, &generation); err != nil {
			b.Fatal(err)
		}
		if i, err := strconv.Atoi(strings.TrimPrefix(id, "grt_")); err == nil {
			out[i] = generation
		}
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	return out
}

func signInGrown(b *testing.B, s storage.Store, m *meter) {
	m.start()
	for b.Loop() {
		if err := signIn(s); err != nil {
			b.Fatal(err)
		}
	}
	m.report(b)
}
