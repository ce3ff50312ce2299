package auditlog_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// database is a store that tests can also change directly with SQL.
type database struct {
	storage.Store
	exec  func(t *testing.T, statement string)
	zeros string // SQL for the hashes of a tile, all zero
}

func onSQLite(t *testing.T) database {
	i := installation.New(t)
	return database{i.Store, func(t *testing.T, statement string) {
		db, err := sql.Open("sqlite", i.Path)
		must(t, err)
		defer db.Close()
		_, err = db.Exec(statement)
		must(t, err)
	}, "zeroblob(8192)"}
}

func onPostgres(t *testing.T) database {
	url := pgtest.Start(t).Database(t)
	s, err := postgres.Open(t.Context(), url, postgres.Options{})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return database{s, func(t *testing.T, statement string) {
		c, err := pgx.Connect(t.Context(), url)
		must(t, err)
		defer c.Close(t.Context())
		_, err = c.Exec(t.Context(), statement)
		must(t, err)
	}, "decode(repeat('00', 8192), 'hex')"}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func writer(s auditlog.Store) *auditlog.Writer {
	return auditlog.NewWriter(auditlog.Options{
		Store: s, Now: time.Now, Log: slog.New(slog.DiscardHandler), MAC: macOf(s),
	})
}

var masters = [][]byte{bytes.Repeat([]byte("k"), 32)}

const origin = "auth.example.com/audit"

func macOf(s auditlog.Store) func(context.Context) (*auditlog.MAC, error) {
	return auditlog.MACOf(s, masters, origin, time.Now)
}

func write(t *testing.T, s auditlog.Store, from, n int) {
	t.Helper()
	w := writer(s)
	r := audit.New(slog.New(slog.DiscardHandler)).Into(w)
	for i := range n {
		r.Record(t.Context(), audit.TokenIssued, audit.Person(fmt.Sprintf("usr_%d", (from+i)%7), "alice"),
			slog.String("grant", fmt.Sprintf("grt_%d", from+i)), slog.String("scope", "a \"b\"\n\x00\u2028"))
	}
	drain(t, w)
}

// drain makes a writer append its waiting entries.
func drain(t *testing.T, w *auditlog.Writer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Run(ctx)
	if waiting, lost := w.State(); waiting+int(lost) > 0 {
		t.Fatalf("%d wait, %d are lost", waiting, lost)
	}
}

func signer(t *testing.T, s storage.Store) *auditlog.Signer {
	t.Helper()
	out, err := auditlog.Open(t.Context(), s, masters, origin, time.Now())
	must(t, err)
	return out
}

func keyOf(s *auditlog.Signer) func(context.Context) (auditlog.Keys, error) {
	return func(context.Context) (auditlog.Keys, error) { return auditlog.Keys{Public: s.Key(), Signer: s}, nil }
}

func checkpoint(t *testing.T, s *auditlog.Signer) storage.AuditCheckpoint {
	t.Helper()
	return checkpointAt(t, s, time.Now())
}

func checkpointAt(t *testing.T, s *auditlog.Signer, at time.Time) storage.AuditCheckpoint {
	t.Helper()
	c, err := s.Checkpoint(t.Context(), at)
	must(t, err)
	return c
}

func onBoth(t *testing.T, run func(t *testing.T, db database)) {
	t.Run("SQLite", func(t *testing.T) { run(t, onSQLite(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { run(t, onPostgres(t)) })
}

// TestAttacks: OB-04. Entries are removed, changed, moved or cut off in the database. Verify names
// the first wrong entry.
func TestAttacks(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		sign := signer(t, db)
		write(t, db, 0, 300)
		early := checkpoint(t, sign)
		write(t, db, 300, 400)
		late := checkpoint(t, sign)
		write(t, db, 700, 60) // unsigned
		all := func(t *testing.T) (auditlog.Report, error) {
			return auditlog.Verify(t.Context(), db, keyOf(sign), early.Signed, late.Signed)
		}
		report, err := all(t)
		if err != nil || report.Entries != 760 || report.Confirmed != 700 || report.Checkpoints != 2 {
			t.Fatalf("before any attack: got %+v, %v", report, err)
		}
		for _, c := range []struct {
			name, attack string
			first        int64
			says         string
		}{
			{"removal", "DELETE FROM audit_entries WHERE idx = 123", 123, "it was removed"},
			{"removal, and the rest moves up", "DELETE FROM audit_entries WHERE idx = 123; " +
				"UPDATE audit_entries SET idx = -idx - 1 WHERE idx > 123; " +
				"UPDATE audit_entries SET idx = -idx - 2 WHERE idx < 0", 123, "not what it was"},
			{"change", "UPDATE audit_entries SET leaf = replace(leaf, 'usr_', 'usr-') WHERE idx = 699", 699,
				"not what it was"},
			{"change of what is not signed yet",
				"UPDATE audit_entries SET leaf = replace(leaf, 'usr_', 'usr-') WHERE idx = 701",
				701, "not what it was"},
			{"change of what finds it", "UPDATE audit_entries SET person = 'usr_9' WHERE idx = 5", 5, "beside it"},
			{"exchange", "UPDATE audit_entries SET idx = -1 WHERE idx = 400; UPDATE audit_entries SET idx = 400 WHERE idx = 401; " +
				"UPDATE audit_entries SET idx = 401 WHERE idx = -1", 400, "not what it was"},
			{"truncation", "DELETE FROM audit_entries WHERE idx >= 650", 650, "it was removed"},
			{"truncation with the head", "DELETE FROM audit_entries WHERE idx >= 650; UPDATE audit_head SET size = 650", 650,
				"a checkpoint has signed 700"},
			{"truncation with head and checkpoint",
				"DELETE FROM audit_entries WHERE idx >= 650; UPDATE audit_head SET size = 650; " +
					"DELETE FROM audit_checkpoints WHERE size > 650", 650, "a checkpoint has signed 700"},
			{"the head put back", "UPDATE audit_head SET size = 710", 710, "it ends after 710"},
			{"hashes removed", "DELETE FROM audit_tiles WHERE level = 0 AND number = 1", 256, "its hash is missing"},
			{"hashes made zero", "UPDATE audit_tiles SET hashes = " + db.zeros + " WHERE level = 0 AND number = 1", 256,
				"its hash is missing"},
			{"hashes of the tree changed", "UPDATE audit_tiles SET hashes = " +
				"(SELECT hashes FROM audit_tiles WHERE level = 0 AND number = 0) WHERE level = 1",
				0, "the hashes of the tree above"},
		} {
			t.Run(c.name, func(t *testing.T) {
				for _, copied := range []string{"audit_entries", "audit_head", "audit_tiles", "audit_checkpoints"} {
					db.exec(t, "CREATE TABLE kept_"+copied+" AS SELECT * FROM "+copied)
					defer func() {
						db.exec(t, "DELETE FROM "+copied+"; INSERT INTO "+copied+" SELECT * FROM kept_"+copied+
							"; DROP TABLE kept_"+copied)
					}()
				}
				db.exec(t, c.attack)
				_, err := all(t)
				var wrong *verify.Wrong
				if !errors.As(err, &wrong) || wrong.First != c.first || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v, want entry %d: ...%s", err, c.first, c.says)
				}
			})
		}
		if _, err := all(t); err != nil {
			t.Errorf("after all was undone: %v", err)
		}
	})
}

// TestRewritten: OB-04. An attacker with the database and our program can rewrite entries and
// hashes, but not sign them. An earlier checkpoint locates the change, and servers stop signing.
func TestRewritten(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		sign := signer(t, db)
		write(t, db, 0, 10)
		checkpoint(t, sign)
		write(t, db, 10, 10)
		kept := checkpoint(t, sign)
		other := onSQLite(t)
		write(t, other, 0, 10)
		write(t, other, 11, 10)
		entries, err := other.AuditEntries(t.Context(), storage.AuditQuery{Limit: 20})
		must(t, err)
		copyOf, err := db.AuditEntries(t.Context(), storage.AuditQuery{Limit: 10})
		must(t, err)
		db.exec(t, "DELETE FROM audit_entries; DELETE FROM audit_head; DELETE FROM audit_tiles")
		rewritten := auditlog.Rewrite(t, db, append(copyOf, entries[10:]...))
		if rewritten != 20 {
			t.Fatalf("%d entries", rewritten)
		}
		_, err = auditlog.Verify(t.Context(), db, keyOf(sign))
		var wrong *verify.Wrong
		if !errors.As(err, &wrong) || wrong.First != 10 {
			t.Errorf("got %v, want entry 10", err)
		}
		write(t, db, 20, 1)
		if _, err := sign.Checkpoint(t.Context(), time.Now()); !errors.Is(err, auditlog.ErrInconsistent) {
			t.Errorf("the key signs a log that does not continue the signed log: %v", err)
		}
		if _, err := signer(t, db).Checkpoint(t.Context(), time.Now()); !errors.Is(err, auditlog.ErrInconsistent) {
			t.Errorf("the key of a new process signs it: %v", err)
		}
		db.exec(t, "DELETE FROM audit_checkpoints")
		if _, err := sign.Checkpoint(t.Context(), time.Now()); !errors.Is(err, auditlog.ErrInconsistent) {
			t.Errorf("a process that has signed before signs it: %v", err)
		}
		_, err = auditlog.Verify(t.Context(), db, keyOf(sign), kept.Signed)
		if !errors.As(err, &wrong) || wrong.First != 10 {
			t.Errorf("with the kept checkpoint: got %v", err)
		}
	})
}

// TestTwoReplicas: OB-04. Two writers append concurrently. No entry is lost, duplicated or
// misplaced, even if responses are lost.
func TestTwoReplicas(t *testing.T) {
	db := onPostgres(t)
	const each = 1500
	var replicas sync.WaitGroup
	for range 2 {
		replicas.Go(func() {
			w := writer(&forgetful{Store: db.Store})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				w.Run(ctx)
			}()
			for i := range each {
				w.Add(ctx, audit.TokenIssued, []slog.Attr{slog.String("grant", fmt.Sprint("grt_", i))})
				if i%500 == 499 && !wait.Poll(wait.Bound, func() bool { left, _ := w.State(); return left == 0 }) {
					t.Error("entries are left")
				}
			}
			cancel()
			<-done
		})
	}
	replicas.Wait()
	sign := signer(t, db)
	checkpoint(t, sign)
	report, err := auditlog.Verify(t.Context(), db, keyOf(sign))
	if err != nil || report.Entries != 2*each || report.Confirmed != 2*each {
		t.Errorf("got %+v, %v", report, err)
	}
}

// forgetful loses every third response.
type forgetful struct {
	auditlog.Store
	calls int
}

func (f *forgetful) AppendAudit(
	ctx context.Context, writer string, known int64, build func(storage.AuditEnd) (storage.AuditAppend, error),
) error {
	err := f.Store.AppendAudit(ctx, writer, known, build)
	if f.calls++; f.calls%3 == 0 && err == nil {
		return errors.New("the connection is gone")
	}
	return err
}

// TestCollect: OB-04. Events by commands stay in the store until they are in the log, even if a
// server ends before that.
func TestCollect(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		discard := slog.New(slog.DiscardHandler)
		audit.Deferred(db, discard).Record(t.Context(), audit.UserChanged, audit.Person("usr_1", "bob"))
		ctx, end := context.WithCancel(t.Context())
		now, idle, ended := time.Now(), writer(db), make(chan error, 1)
		go func() { ended <- audit.New(discard).Into(idle).Collect(ctx, db, now) }()
		wait.Until(t, "the event waits for the log", func() bool { n, _ := idle.State(); return n == 1 })
		end()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a server that ends: got %v, want %v", err, context.Canceled)
		}
		w := writer(db)
		running, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { w.Run(running) })
		other := audit.New(discard).Into(w)
		for _, c := range []struct {
			after time.Duration
			size  int64
		}{{0, 0}, {storage.EventLease, 1}, {3 * storage.EventLease, 1}} {
			must(t, other.Collect(t.Context(), db, now.Add(c.after)))
			head, err := db.AuditHead(t.Context(), "")
			must(t, err)
			if head.Size != c.size {
				t.Errorf("after %s: got %d entries, want %d", c.after, head.Size, c.size)
			}
		}
		stop()
		run.Wait()
	})
}

// TestExport: OB-04. The verifier accepts an export by itself, and detects a change in it.
func TestExport(t *testing.T) {
	db := onSQLite(t)
	sign := signer(t, db)
	past := time.Now()
	aged(t, db, 26, past.Add(-60*24*time.Hour)) // 260 entries
	write(t, db, 260, 340)
	removed, err := removing(t, db, sign, 30*24*time.Hour, past)
	if err != nil || removed != 260 {
		t.Fatalf("%d removed, %v", removed, err)
	}
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	must(t, auditlog.Export(t.Context(), db, auditlog.Standing{}, func(l verify.Line) error { return lines.Encode(l) }))
	log := verify.NewLog(sign.Key())
	if err := log.Read(bytes.NewReader(out.Bytes())); err != nil || log.Size() != 601 || log.Confirmed() != 601 {
		t.Errorf("got %v, %d entries, %d confirmed", err, log.Size(), log.Confirmed())
	}
	report, err := auditlog.Verify(t.Context(), db, keyOf(sign))
	if err != nil || report.Removed != 260 || report.Confirmed != 601 {
		t.Errorf("in the store: got %+v, %v", report, err)
	}
	changed := strings.Replace(out.String(), "grt_555", "grt_556", 1)
	var wrong *verify.Wrong
	if err := verify.NewLog(sign.Key()).Read(strings.NewReader(changed)); !errors.As(err, &wrong) || wrong.Last != 600 {
		t.Errorf("a changed export: got %v", err)
	}
}
