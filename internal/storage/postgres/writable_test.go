package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// TestReadinessWritesNextToNothing: a server that checks every second whether it can write causes
// no load. After a full disk it checks for room.
func TestReadinessWritesNextToNothing(t *testing.T) {
	s := open(t, pgtest.StartOwn(t, "autovacuum=off").URL(), Options{})
	defer s.Close()
	wal := func() (n int64) {
		t.Helper()
		if err := s.pool.QueryRow(t.Context(),
			"SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	writes := func(n int64) int64 {
		t.Helper()
		before := wal()
		for range n {
			if err := s.Writable(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return (wal() - before) / n
	}
	writes(1)
	if got := writes(50); got == 0 || got > 512 {
		t.Errorf("a question writes %d bytes of WAL, want 1 to 512", got)
	}
	s.pool.doubt(t.Context(), &pgconn.PgError{Code: diskFull})
	if got := writes(1); got < roomBytes {
		t.Errorf("after a disk was full it writes %d bytes, want %d", got, roomBytes)
	}
	if got := writes(10); got > 1024 {
		t.Errorf("when there is room again it writes %d bytes", got)
	}
}
