package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// A new database logs one line.
func TestNewDatabaseIsOneLine(t *testing.T) {
	var log strings.Builder
	open(t, pgtest.Start(t).Database(t), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if got := log.String(); strings.Count(got, "schema created") != 1 || strings.Contains(got, "schema migrated") {
		t.Errorf("got\n%s", got)
	}
}

// open gives verbs a minute, unless the test is about their timeout: a busy machine may need more
// than the default.
func open(t testing.TB, url string, o Options) *Store {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	s, err := Open(context.Background(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// migrated returns a function that creates databases with our schema and returns their URLs with
// the settings, which also applied to the schema's creation. To create the schema takes longer than
// most tests.
func migrated(t *testing.T, server *pgtest.Server, settings string) func(testing.TB) string {
	t.Helper()
	database := server.Template(t, func(url string) { open(t, url+settings, Options{}).Close() })
	return func(tb testing.TB) string { return database(tb) + settings }
}

func TestContract(t *testing.T) {
	database := migrated(t, pgtest.Start(t), "")
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, database(t), Options{}) })
}

// TestContractWhilePutOff runs the contract of tokens before step 12 is applied.
func TestContractWhilePutOff(t *testing.T) {
	lane.Long(t, "TestContract runs the contract after the step")
	server := pgtest.Start(t)
	storagetest.RunPutOff(t, func(t *testing.T) storage.Store {
		url := server.Database(t)
		old := older(t, url)
		defer old.Close()
		if err := old.Migrate(context.Background()); err != nil {
			t.Fatal(err)
		}
		return open(t, url, Options{})
	})
}

func TestTokensOfOlderReplicas(t *testing.T) {
	storagetest.Transition(t, openEditable(pgtest.Start(t)))
}

func TestHooks(t *testing.T) {
	storagetest.Hooks(t, open(t, pgtest.Start(t).Database(t), Options{}))
}

func TestDamagedRows(t *testing.T) { storagetest.Damaged(t, openEditable(pgtest.Start(t))) }

func TestDeliveriesOverflow(t *testing.T) { storagetest.Overflow(t, openEditable(pgtest.Start(t))) }

// openEditable opens an empty store, and returns a function that changes its rows by SQL.
func openEditable(server *pgtest.Server) func(t *testing.T) (storage.Store, func(query string, args ...any)) {
	return func(t *testing.T) (storage.Store, func(query string, args ...any)) {
		s := open(t, server.Database(t), Options{})
		return s, func(query string, args ...any) {
			t.Helper()
			for i := range args {
				query = strings.Replace(query, "?", fmt.Sprintf("$%d", i+1), 1)
			}
			if _, err := s.pool.Exec(context.Background(), query, args...); err != nil {
				t.Fatalf("%v: %s", err, query)
			}
		}
	}
}

// TestContractSerializable represents servers with serializable isolation only. There a conflict is
// an error 40001, and the verb must start over.
func TestContractSerializable(t *testing.T) {
	lane.Long(t, "TestContract runs the contract at the default isolation")
	database := migrated(t, serializable(t), "&default_transaction_isolation=serializable")
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, database(t), Options{}) })
}

// serializable returns a separate server. PostgreSQL forgets no serializable transaction while an
// older one runs in any database. If other tests kept some open, most of these would fail on each
// other.
func serializable(t *testing.T) *pgtest.Server {
	t.Helper()
	return pgtest.StartOwn(t, "synchronous_commit=off")
}

// TestContractBehindAPooler runs without prepared statements, as an old PgBouncer
// in transaction mode requires.
func TestContractBehindAPooler(t *testing.T) {
	lane.Long(t, "TestContract runs the contract with prepared statements")
	database := migrated(t, pgtest.Start(t), "&default_query_exec_mode=cache_describe")
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, database(t), Options{}) })
}

// TestContractBehindPgBouncer runs migrations and every verb through a real PgBouncer in
// transaction mode, which the URL does not mention.
func TestContractBehindPgBouncer(t *testing.T) {
	lane.Long(t, "TestContract runs the contract without PgBouncer")
	server := pgtest.Start(t)
	through := server.Bouncer(t)
	open(t, through(server.Database(t)), Options{}).Close() // PgBouncer keeps connections to it
	database := migrated(t, server, "")
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, through(database(t)), Options{}) })
}

func BenchmarkPostgres(b *testing.B) {
	server := pgtest.Start(b)
	storagetest.Bench(b, func(b *testing.B) storage.Store { return open(b, server.Database(b), Options{}) })
}

// statements counts the statements sent.
type statements struct{ n atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestTheHotVerbsAreOneStatement(t *testing.T) {
	ctx, now := context.Background(), time.Now()
	sent := &statements{}
	s := open(t, pgtest.Start(t).Database(t), Options{tracer: sent})
	defer s.Close()
	session, code, secret := storage.Hash{1}, storage.Hash{2}, storage.Hash{3}
	soon := now.Add(time.Hour)
	for _, v := range []struct {
		name string
		want int64
		do   func() error
	}{
		{"user", 0, func() error { return s.CreateUser(ctx, storage.User{ID: "u", Name: "u", CreatedAt: now}) }},
		{"session", 1, func() error {
			return s.PutSession(ctx, storage.Session{Hash: session, UserID: "u", CreatedAt: now, ExpiresAt: soon},
				storage.SignInStart{})
		}},
		{"Visit", 1, func() error {
			_, err := s.Visit(ctx, storage.VisitKey{Session: session, Now: now})
			return err
		}},
		{"Approve", 1, func() error {
			return s.Approve(ctx,
				storage.Approval{Session: session, Client: &storage.Client{ID: "c", CreatedAt: now}, Now: now,
					Grant: storage.Grant{ID: "g", ClientID: "c", UserID: "u", CreatedAt: now, ExpiresAt: soon},
					Code:  storage.Code{Hash: code, ExpiresAt: soon}})
		}},
		{"RedeemCode", 1, func() error {
			_, err := s.RedeemCode(ctx,
				storage.RedeemCode{
					Hash: code, GrantID: "g", ClientID: "c", Now: now,
					Refresh: &storage.Refresh{Secret: secret, ExpiresAt: soon},
				})
			return err
		}},
		{"RotateRefresh", 1, func() error {
			_, err := s.RotateRefresh(ctx,
				storage.RotateRefresh{ClientID: "c", Now: now, Next: storage.Refresh{ExpiresAt: soon},
					Token: storage.NumberedRefresh{GrantID: "g", Generation: 1, IssuedAt: now, Secret: secret}})
			return err
		}},
		{"TokenActive", 1, func() error {
			got, err := s.TokenActive(ctx, storage.TokenKey{TokenID: "t", GrantID: "g", ClientID: "c", Now: now})
			if err == nil && !got.Active {
				err = errors.New("inactive")
			}
			return err
		}},
		{"first GrantAssertion", 0, func() error { return asserted(s, "1", now) }},
		{"GrantAssertion", 1, func() error { return asserted(s, "2", now) }},
	} {
		before := sent.n.Load()
		if err := v.do(); err != nil {
			t.Fatalf("%s: %v", v.name, err)
		}
		if got := sent.n.Load() - before; v.want > 0 && got != v.want {
			t.Errorf("%s: sent %d statements, want %d", v.name, got, v.want)
		}
	}
}

// asserted stores or extends the grant of an assertion.
func asserted(s *Store, id string, now time.Time) error {
	_, err := s.GrantAssertion(context.Background(), storage.AssertionGrant{
		SpendID: id, SpentUntil: now.Add(time.Hour), IssuedAt: now, Configured: true,
		Client: &storage.Client{ID: "asserted", CreatedAt: now},
		Person: &storage.AssertedPerson{
			Issuer: "https://acme.example", Subject: "ada",
			NewUser: &storage.User{ID: "ada", Name: "ada", CreatedAt: now},
		},
		Grant: storage.Grant{
			ID: "asserted" + id, ClientID: "asserted", CreatedAt: now, ExpiresAt: now.Add(time.Hour), TrustID: "acme",
		},
	})
	return err
}

func TestEightReplicasOpenOneEmptyDatabase(t *testing.T) {
	url := pgtest.Start(t).Database(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := Open(context.Background(), url, Options{MaxConns: 2})
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(s.Ready(context.Background()), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestANewerSchemaIsRefusedWithAdvice(t *testing.T) {
	ctx, url := context.Background(), pgtest.Start(t).Database(t)
	s := open(t, url, Options{})
	defer s.Close()
	if _, err := s.pool.Exec(ctx,
		"INSERT INTO schema_version (version, name, applied_at) VALUES (999, 'future', 0)"); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(ctx); !errors.Is(err, storage.ErrSchema) {
		t.Errorf("Ready: got %v, want ErrSchema", err)
	}
	_, err := Open(ctx, url, Options{})
	if !errors.Is(err, storage.ErrSchema) || !strings.Contains(err.Error(), "install that version") {
		t.Errorf("Open: got %v, want ErrSchema with advice", err)
	}
}

func TestWithoutMigrationsItIsNotReady(t *testing.T) {
	ctx := context.Background()
	s := open(t, pgtest.Start(t).Database(t), Options{SkipMigrate: true})
	defer s.Close()
	if err := s.Ready(ctx); !errors.Is(err, storage.ErrSchema) || !strings.Contains(err.Error(), "migrate up") {
		t.Errorf("got %v, want ErrSchema with advice", err)
	}
	if st, err := s.MigrationStatus(ctx); err != nil || len(st) == 0 || !st[0].AppliedAt.IsZero() {
		t.Errorf("before: got %v, %v; want pending steps", st, err)
	}
	if err := errors.Join(s.Migrate(ctx), s.Migrate(ctx), s.Ready(ctx)); err != nil {
		t.Error(err)
	}
	if st, err := s.MigrationStatus(ctx); err != nil || st[0].AppliedAt.IsZero() {
		t.Errorf("after: got %v, %v; want applied steps", st, err)
	}
}

func TestAVerbThatWaitsTooLongEndsHereAndOnTheServer(t *testing.T) {
	ctx, url := context.Background(), pgtest.Start(t).Database(t)
	s := open(t, url, Options{})
	defer s.Close()
	if err := s.CreateUser(ctx, storage.User{ID: "u", Name: "u", CreatedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	s.timeout = 200 * time.Millisecond
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, "UPDATE users SET disabled = true"); err != nil {
		t.Fatal(err)
	}
	if err := s.TouchLogin(ctx, "u", time.Now()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want DeadlineExceeded", err)
	}
	waiting(t, s, false)
}

// waiting returns once a statement waits for a lock on the server, or with want false, once no
// statement waits.
func waiting(t *testing.T, s *Store, want bool) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("a statement waits for a lock: %v", want), func() bool {
		var got bool
		err := s.pool.QueryRow(t.Context(),
			"SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')").Scan(&got)
		if err != nil {
			t.Fatal(err)
		}
		return got == want
	})
}

// TestKeyVerbsWaitForAPromotion: a verb that comes during a promotion must see its result.
func TestKeyVerbsWaitForAPromotion(t *testing.T) {
	ctx, now := context.Background(), time.Now()
	key := func(id string) storage.SigningKey {
		return storage.SigningKey{
			ID: id, Algorithm: "ES256", Public: []byte("{}"), Private: []byte("x"), CreatedAt: now,
		}
	}
	for name, verb := range map[string]func(s *Store) error{
		"PutNextKey": func(s *Store) error {
			if stored, err := s.PutNextKey(ctx, "first", key("third")); err != nil || stored {
				return fmt.Errorf("stored %v, %w", stored, err)
			}
			return nil
		},
		"RevokeKey": func(s *Store) error {
			if err := s.RevokeKey(ctx, "second"); !errors.Is(err, storage.ErrSpent) {
				return fmt.Errorf("got %v, want ErrSpent", err)
			}
			return nil
		},
		"RetireKey": func(s *Store) error {
			if err := s.RetireKey(ctx, "second", now, now.Add(time.Hour)); !errors.Is(err, storage.ErrSpent) {
				return fmt.Errorf("got %v, want ErrSpent", err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, pgtest.Start(t).Database(t), Options{})
			defer s.Close()
			if _, err := s.PutFirstKey(ctx, key("first")); err != nil {
				t.Fatal(err)
			}
			if stored, err := s.PutNextKey(ctx, "first", key("second")); err != nil || !stored {
				t.Fatalf("stored %v, %v", stored, err)
			}
			tx, err := s.pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(ctx)
			for _, sql := range []string{
				"UPDATE signing_keys SET state = 'retired' WHERE id = 'first'",
				"UPDATE signing_keys SET state = 'active' WHERE id = 'second'",
			} {
				if _, err := tx.Exec(ctx, sql); err != nil {
					t.Fatal(err)
				}
			}
			done := make(chan error)
			go func() { done <- verb(s) }()
			waiting(t, s, true)
			if err := tx.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAWrongURLDoesNotShowItsPassword(t *testing.T) {
	for _, url := range []string{
		"postgres://u:hunter2@127.0.0.1:1/db?connect_timeout=1", "postgres://u:hunter2@%zz/db",
	} {
		_, err := Open(context.Background(), url, Options{})
		if err == nil || strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("got %v, want an error without the password", err)
		}
	}
}

func TestPauseElsewhere(t *testing.T) {
	url := pgtest.Start(t).Database(t)
	elsewhere := open(t, url, Options{})
	t.Cleanup(func() { elsewhere.Close() })
	storagetest.PauseElsewhere(t, open(t, url, Options{}), elsewhere)
}
