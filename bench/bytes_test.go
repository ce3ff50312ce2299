package bench

import (
	"context"
	"database/sql"
	"flag"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

var signIns = flag.Int("signins", 2_000, "how many sign-ins BenchmarkBytes stores")

// BenchmarkBytes measures the size of sign-ins in a database, in bytes each. Every sign-in has
// another user and another client, whose ID has the length of a sealed registration. A grant
// consists of its row, the state of its refresh token, and the index entries of both.
func BenchmarkBytes(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "db")
		s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		fill(b, s, *signIns)
		s.Close()
		reportSizes(b, sqliteSizes(b, path))
	})
	b.Run("postgres", func(b *testing.B) {
		url := pgtest.Start(b).Database(b)
		s, err := postgres.Open(b.Context(), url, postgres.Options{})
		if err != nil {
			b.Fatal(err)
		}
		before := walBytes(b, url)
		fill(b, s, *signIns)
		s.Close()
		b.ReportMetric(float64(walBytes(b, url)-before)/float64(*signIns), "WAL-B/sign-in")
		reportSizes(b, postgresSizes(b, url))
	})
}

// fill signs n users in through the store's methods, with eight concurrent callers.
func fill(b *testing.B, s storage.Store, n int) {
	b.Helper()
	var callers sync.WaitGroup
	for first := range 8 {
		callers.Go(func() {
			for i := first; i < n; i += 8 {
				if err := signInOnce(s, i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
}

// signInOnce runs a sign-in's store calls: the session, earlier consent, the approval and the
// redemption.
func signInOnce(s storage.Store, i int) error {
	ctx, now := context.Background(), time.Now()
	var token, code storage.Hash = secrets.Hash(secrets.Token("")), secrets.Hash(secrets.Token(""))
	user := storage.User{ID: secrets.ID("usr_"), Name: "person-" + strconv.Itoa(i), CreatedAt: now}
	c := storage.Client{ID: "mcp_" + sealedLike(), Name: "An application", RedirectURIs: []string{redirect},
		GrantTypes: []string{"authorization_code", "refresh_token"}, AuthMethod: "none",
		Source: storage.SourceDynamic, CreatedAt: now}
	if err := s.CreateUser(ctx, user); err != nil {
		return err
	}
	if err := s.PutSession(ctx,
		storage.Session{Hash: token, UserID: user.ID, AuthTime: now, CreatedAt: now, ExpiresAt: now.Add(time.Hour)},
		storage.SignInStart{}); err != nil {
		return err
	}
	if _, err := s.Visit(ctx,
		storage.VisitKey{
			Session: token, ClientID: c.ID, Resource: resource, Place: "loopback", Material: c.Material(),
			Now: now}); err != nil {
		return err
	}
	id, challenge := secrets.ID("grt_"), secrets.Token("")
	err := s.Approve(ctx, storage.Approval{
		Session: token, Client: &c, Place: "loopback", Material: c.Material(), Now: now,
		Grant: storage.Grant{
			ID: id, ClientID: c.ID, UserID: user.ID, Scopes: []string{"mcp", "offline_access"}, Resource: resource,
			AuthTime: now, CreatedAt: now, ExpiresAt: now.Add(180 * 24 * time.Hour),
		},
		Code: storage.Code{Hash: code, RedirectURI: redirect, Challenge: challenge, ExpiresAt: now.Add(time.Minute)},
	})
	if err != nil {
		return err
	}
	_, err = s.RedeemCode(ctx, storage.RedeemCode{
		Hash: code, GrantID: id, ClientID: c.ID, Challenge: challenge, RedirectURI: redirect, Resource: resource,
		Now:     now,
		Refresh: &storage.Refresh{Secret: secrets.Hash(secrets.Token("")), ExpiresAt: now.Add(30 * 24 * time.Hour)},
	})
	return err
}

// sealedLike returns text as long and as random as a usual sealed registration.
func sealedLike() string { return strings.Repeat(secrets.Token(""), 5)[:190] }

func sqliteSizes(b *testing.B, path string) map[string]int64 {
	b.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT name, sum(pgsize) FROM dbstat GROUP BY name")
	if err != nil {
		b.Fatal(err)
	}
	out := make(map[string]int64)
	for rows.Next() {
		var name string
		var size int64
		if err := rows.Scan(&name, &size); err != nil {
			b.Fatal(err)
		}
		out[name] = size
	}
	return out
}

func walBytes(b *testing.B, url string) (n int64) {
	queryPostgres(b, url, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint",
		func(r pgx.Rows) error { return r.Scan(&n) })
	return n
}

func postgresSizes(b *testing.B, url string) map[string]int64 {
	out := make(map[string]int64)
	const relations = `SELECT relname, pg_relation_size(oid) + coalesce(pg_relation_size(nullif(reltoastrelid, 0)), 0)
		FROM pg_class
		WHERE relkind IN ('r','i') AND relnamespace = 'public'::regnamespace`
	queryPostgres(b, url, relations, func(r pgx.Rows) error {
		var name string
		var size int64
		err := r.Scan(&name, &size)
		out[name] = size
		return err
	})
	return out
}

func queryPostgres(b *testing.B, url, query string, row func(pgx.Rows) error) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())
	rows, err := conn.Query(b.Context(), query)
	if err != nil {
		b.Fatal(err)
	}
	for rows.Next() {
		if err := row(rows); err != nil {
			b.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
}

// reportSizes sums the tables and indexes of grants and refresh tokens. With -v it lists all of
// them.
func reportSizes(b *testing.B, sizes map[string]int64) {
	b.Helper()
	var grant, rest float64
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		each := float64(sizes[name]) / float64(*signIns)
		if name = strings.TrimPrefix(name, "sqlite_autoindex_"); strings.HasPrefix(name, "grants") ||
			strings.HasPrefix(name, "refresh_tokens") {
			grant += each
		} else {
			rest += each
		}
		b.Logf("%-36s %7.1f", name, each)
	}
	b.ReportMetric(grant, "B/grant")
	b.ReportMetric(rest, "B/else")
}
