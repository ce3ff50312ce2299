package bench

import (
	"context"
	"database/sql"
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

var (
	tokensEach = flag.Int("tokens", 5,
		"how many refresh tokens with rows of their own each grant of BenchmarkSweep has; grants of today have none")
	backlog = flag.Int("backlog", 20_000,
		"how many grants BenchmarkSweep and BenchmarkCut have to end, 400000 take minutes")
)

var session = storage.Hash{1, 2, 3}

// engines open a store, and the same database for plain SQL.
var engines = []struct {
	name string
	open func(b *testing.B) (storage.Store, *sql.DB)
	fill []string // $1: how many, $2: now, $3: their end, $4: when they can be swept
}{
	{"sqlite", func(b *testing.B) (storage.Store, *sql.DB) {
		path := filepath.Join(b.TempDir(), "db")
		s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
		return opened(b, s, err, "sqlite", path)
	}, []string{
		`INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at,
			code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at, status_index)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		SELECT 'grt_' || hex(randomblob(13)), 'mcp_hosted', 'usr_' || (i / 10), 'https://mcp.example.com/mcp', '["mcp"]', $2, $2, $3,
			randomblob(32), 'http://127.0.0.1/callback', 'challenge', $2, $2, $4 + i, i FROM n`,
		`INSERT INTO refresh_tokens (hash, grant_id, created_at, expires_at)
		WITH RECURSIVE t(i) AS (SELECT 1 WHERE $1 > 0 UNION ALL SELECT i + 1 FROM t WHERE i < $1) SELECT randomblob(32), id, $2, $3 FROM grants, t WHERE $4 > 0`,
		walked, "PRAGMA wal_checkpoint(TRUNCATE)", // filling is not measured
	}},
	{"postgres", func(b *testing.B) (storage.Store, *sql.DB) {
		url := pgtest.Start(b).Database(b)
		s, err := postgres.Open(b.Context(), url, postgres.Options{})
		return opened(b, s, err, "pgx", url)
	}, []string{
		`INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at,
			code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at)
		SELECT 'grt_' || md5(i::text), 'mcp_hosted', 'usr_' || (i / 10), 'https://mcp.example.com/mcp', '["mcp"]', $2::bigint, $2, $3::bigint,
			sha256(i::text::bytea), 'http://127.0.0.1/callback', 'challenge', $2, $2, $4::bigint + i FROM generate_series(1, $1::bigint) i`,
		`INSERT INTO refresh_tokens (hash, grant_id, created_at, expires_at)
		SELECT sha256((id || t)::bytea), id, $2::bigint, $3::bigint FROM grants, generate_series(1, $1::bigint) t WHERE $4::bigint > 0`,
		walked, "ANALYZE",
	}},
}

// walked marks old grants as already examined, as they were when they were new.
const walked = "UPDATE grant_walks SET codes = (SELECT max(status_index) FROM grants), newer = (SELECT max(status_index) FROM grants)"

func opened(b *testing.B, s storage.Store, err error, driver, name string) (storage.Store, *sql.DB) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	db, err := sql.Open(driver, name)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return s, db
}

// BenchmarkSweep measures how long a server takes to remove a backlog of ended grants, with its
// pauses, while users refresh and sign in.
func BenchmarkSweep(b *testing.B) {
	for _, e := range engines {
		b.Run(e.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s, db := e.open(b)
				past := time.Now().Add(-24 * time.Hour)
				pile(b, s, db, e.fill, past, past, past)
				stop := traffic(b, s)
				b.StartTimer()
				began := time.Now()
				for n := 2000; n >= 2000; { // as in authserver
					batch := time.Now()
					var err error
					if n, err = s.Sweep(context.Background(), storage.Retention{Now: time.Now()}, 2000); err != nil {
						b.Fatal(err)
					}
					select {
					case <-time.After(time.Since(batch) / 8):
					case <-b.Context().Done():
					}
				}
				b.ReportMetric(float64((1+*tokensEach)**backlog)/time.Since(began).Seconds(), "records/s")
				stop()
			}
		})
	}
}

// BenchmarkCut measures how long it takes to revoke a client with many grants: the cut itself, and
// marking them without pauses, while users sign in.
func BenchmarkCut(b *testing.B) {
	for _, e := range engines {
		b.Run(e.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s, db := e.open(b)
				now := time.Now()
				pile(b, s, db, e.fill[:1], now, now.Add(time.Hour), now.Add(time.Hour))
				stop := traffic(b, s)
				b.StartTimer()
				began := time.Now()
				if err := s.DeleteClient(context.Background(), "mcp_hosted", now); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "ms-to-cut")
				cuts, err := s.PendingCuts(context.Background(), now)
				if err != nil || len(cuts) != 1 {
					b.Fatal(cuts, err)
				}
				for c := cuts[0]; !c.Done; {
					if c, err = s.FollowCut(context.Background(), c.ID, now, 5000); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(*backlog)/time.Since(began).Seconds(), "grants/s")
				stop()
			}
		})
	}
}

// pile fills a database with plain SQL.
func pile(b *testing.B, s storage.Store, db *sql.DB, fill []string, created, expires, sweep time.Time) {
	b.Helper()
	now := time.Now()
	for _, err := range []error{
		s.CreateUser(b.Context(), storage.User{ID: "usr_1", Name: "alice", CreatedAt: now}),
		s.PutClient(b.Context(),
			storage.Client{
				ID: "mcp_hosted", Name: "Hosted", AuthMethod: "none", Source: storage.SourceCIMD, CreatedAt: now,
			}),
		s.PutSession(b.Context(),
			storage.Session{Hash: session, UserID: "usr_1", CreatedAt: now, ExpiresAt: now.Add(24 * time.Hour)},
			storage.SignInStart{}),
	} {
		if err != nil {
			b.Fatal(err)
		}
	}
	for _, q := range fill {
		args := []any{*backlog, created.UnixMilli(), expires.UnixMilli(), sweep.UnixMilli()}
		if strings.Contains(q, "INTO refresh_tokens") {
			args[0] = *tokensEach
		}
		if !strings.Contains(q, "$1") {
			args = nil
		}
		if _, err := db.Exec(q, args...); err != nil {
			b.Fatalf("%v: %s", err, q)
		}
	}
}

// traffic signs in repeatedly until it is stopped, and reports the maximum and the 99th percentile
// of the duration.
func traffic(b *testing.B, s storage.Store) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan []time.Duration)
	go func() {
		var took []time.Duration
		for ctx.Err() == nil {
			began := time.Now()
			if err := signIn(s); err != nil {
				b.Error(err)
				break
			}
			took = append(took, time.Since(began))
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		done <- took
	}()
	return func() {
		cancel()
		took := <-done
		slices.Sort(took)
		if len(took) > 0 {
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-max")
		}
	}
}

func signIn(s storage.Store) error {
	now, id, code := time.Now(), secrets.ID("grt_"), storage.Hash(secrets.Hash(secrets.Token("")))
	c := storage.Client{
		ID: secrets.ID("mcp_"), RedirectURIs: []string{redirect}, GrantTypes: []string{"authorization_code"},
		AuthMethod: "none", Source: storage.SourceDynamic, CreatedAt: now,
	}
	err := s.Approve(context.Background(), storage.Approval{
		Session: session, Client: &c, Now: now,
		Grant: storage.Grant{
			ID: id, ClientID: c.ID, UserID: "usr_1", Scopes: []string{"mcp"}, Resource: resource, AuthTime: now,
			CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		},
		Code: storage.Code{Hash: code, Challenge: "c", ExpiresAt: now.Add(time.Minute)},
	})
	if err != nil {
		return err
	}
	_, err = s.RedeemCode(context.Background(),
		storage.RedeemCode{Hash: code, GrantID: id, ClientID: c.ID, Challenge: "c", Now: now,
			Refresh: &storage.Refresh{Secret: secrets.Hash(secrets.Token("")), ExpiresAt: now.Add(time.Hour)}})
	return err
}
