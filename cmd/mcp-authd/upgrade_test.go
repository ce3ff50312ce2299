package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// earlier is a server of an earlier version. It signs users in and rotates their tokens with the
// statements of that version, on a file that others migrate meanwhile.
type earlier struct {
	t    *testing.T
	db   *sql.DB
	stop context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex     // guards the following fields
	tokens []storage.Hash // the newest acknowledged token of each grant
}

// startEarlier creates a database with the first steps, and starts the writes.
func startEarlier(t *testing.T, path string, steps int) *earlier {
	t.Helper()
	db, err := sql.Open("sqlite",
		"file:"+url.PathEscape(path)+"?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	e := &earlier{t: t, db: db, stop: stop}
	all, err := migration.Steps(migration.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	e.exec("CREATE TABLE schema_version (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT")
	for _, s := range all[:steps] {
		e.exec(s.SQL)
		e.exec("INSERT INTO schema_version (version, name, applied_at) VALUES (?, ?, 0)", s.Version, s.Name)
	}
	at := time.Now().UnixMilli()
	e.exec("INSERT INTO users (id, name, name_key, password_hash, admin, disabled, created_at) VALUES ('usr_1', 'alice', 'alice', 'h', 1, 0, ?)",
		at)
	e.exec("INSERT INTO clients (id, name, created_at) VALUES ('app', 'App', ?)", at)
	for range 2 {
		e.done.Go(func() { e.write(ctx) })
	}
	t.Cleanup(func() { e.end() })
	return e
}

func (e *earlier) exec(query string, args ...any) {
	e.t.Helper()
	if _, err := e.db.Exec(query, args...); err != nil {
		e.t.Fatalf("%v: %s", err, query)
	}
}

// end stops it, as an administrator does once a server of the next version runs.
func (e *earlier) end() {
	e.stop()
	e.done.Wait()
	e.db.Close()
}

func (e *earlier) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.tokens)
}

func (e *earlier) write(ctx context.Context) {
	for {
		select { // a pause, because SQLite does not queue writers
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
		token, err := e.signIn()
		if err == nil {
			token, err = e.rotate(token)
		}
		if err != nil {
			e.t.Errorf("the server of the earlier version was refused: %v", err)
			return
		}
		e.mu.Lock()
		e.tokens = append(e.tokens, token)
		e.mu.Unlock()
	}
}

// signIn runs the approval and the redemption of a code.
func (e *earlier) signIn() (token storage.Hash, err error) {
	id, at, far := secrets.ID("grt_"), time.Now().UnixMilli(), time.Now().Add(time.Hour).UnixMilli()
	code := secrets.Hash(secrets.Token(""))
	token = secrets.Hash(secrets.Token(""))
	return token, e.tx(func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at,
			code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at, status_index)
			VALUES (?, 'app', 'usr_1', ?, '["mcp"]', ?, ?, ?, ?, '', 'c', ?, ?, ?, (SELECT coalesce(max(status_index), 0) + 1 FROM grants))`,
			id, "https://r.example/"+id, at, at, far, code[:], far, at, far)
		if err == nil {
			_, err = tx.Exec(
				"INSERT INTO refresh_tokens (hash, grant_id, created_at, expires_at) VALUES (?, ?, ?, ?)", token[:],
				id, at, far,
			)
		}
		return err
	})
}

func (e *earlier) rotate(token storage.Hash) (next storage.Hash, err error) {
	next = secrets.Hash(secrets.Token(""))
	at, far := time.Now().UnixMilli(), time.Now().Add(time.Hour).UnixMilli()
	return next, e.tx(func(tx *sql.Tx) error {
		var id string
		err := tx.QueryRow(
			"UPDATE refresh_tokens SET rotated_at = ?, sealed = ? WHERE hash = ? AND rotated_at IS NULL AND expires_at > ? RETURNING grant_id",
			at, next[:], token[:], at).Scan(&id)
		if err == nil {
			_, err = tx.Exec(
				"INSERT INTO refresh_tokens (hash, grant_id, created_at, expires_at) VALUES (?, ?, ?, ?)", next[:],
				id, at, far,
			)
		}
		return err
	})
}

func (e *earlier) tx(do func(*sql.Tx) error) error {
	tx, err := e.db.Begin()
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// TestUpgradeWhileAServerWrites runs the upgrade of a SQLite installation while the server of the
// earlier version signs users in and refreshes their tokens (issue 12, proof). That server must not
// be disturbed, and everything that it acknowledged until it was stopped must be kept.
func TestUpgradeWhileAServerWrites(t *testing.T) {
	for _, steps := range []int{4, 10, 12} {
		t.Run(fmt.Sprintf("from %d", steps), func(t *testing.T) {
			l := &lost{t: t, dir: t.TempDir(),
				environ: []string{
					"HOME=" + t.TempDir(), "MCP_AUTHD_SECRET_KEY=0123456789012345678901234567890123456789",
				}}
			e := startEarlier(t, filepath.Join(l.dir, "mcp-authd.db"), steps)
			busy := func() {
				t.Helper()
				before := e.count()
				wait.Until(t, "the server of the earlier version gets on",
					func() bool { return e.count() >= before+20 || t.Failed() })
				if t.Failed() {
					t.FailNow()
				}
			}
			busy()
			l.run("pending", "migrate", "status")
			l.run("copied", "backup", filepath.Join(t.TempDir(), "before.db"))
			busy()
			l.run("the database is up to date", "migrate", "up")
			busy()
			if code, out, errs := runs(t, l.environ, "migrate", "status", "--data", l.dir); code != exitOK ||
				strings.Contains(out, "pending") {
				t.Errorf("after it: got %d %s %s", code, out, errs)
			}
			l.logOfServer("key.created") // it starts beside the earlier one
			e.end()
			l.refreshAll(e.tokens)
		})
	}
}

// refreshAll checks that each of the tokens works once.
func (l *lost) refreshAll(tokens []storage.Hash) {
	l.t.Helper()
	if err := sqlite.Check(l.t.Context(), filepath.Join(l.dir, "mcp-authd.db")); err != nil {
		l.t.Error(err)
	}
	l.store(func(ctx context.Context, s storage.Store) error {
		now := time.Now()
		for i, token := range tokens {
			r := storage.RotateRefresh{Token: storage.HashedRefresh(token), ClientID: "app", Now: now,
				Next: storage.Refresh{
					Hash: secrets.Hash(secrets.Token("")), Secret: secrets.Hash(secrets.Token("")),
					ExpiresAt: now.Add(time.Hour),
				}}
			if _, err := s.RotateRefresh(ctx, r); err != nil {
				return fmt.Errorf("the newest token of grant %d of %d: %w", i, len(tokens), err)
			}
		}
		return s.Ready(ctx)
	})
}
