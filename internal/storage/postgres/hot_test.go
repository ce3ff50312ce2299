package postgres

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestARotationTouchesNoIndex (issue 12, 1.1 and 4.2): after half a year of rotations, a grant has
// its initial size, no other table has a row, and PostgreSQL has updated no index (HOT) for nearly
// all of them.
func TestARotationTouchesNoIndex(t *testing.T) {
	const many, times, count = 40, 50,
		"SELECT (SELECT count(*) FROM refresh_tokens), sum(pg_column_size(g.*))::bigint FROM grants g"
	ctx := t.Context()
	s := open(t, pgtest.Start(t).Database(t), Options{MaxConns: 1}) // one connection reports its statistics sooner
	defer s.Close()
	var ids []string
	for i := range many {
		ids = append(ids, fmt.Sprintf("grt_%018d", i))
	}
	tokens := grants(t, s, ids...)
	rotate := func(every time.Duration) {
		t.Helper()
		for i, token := range tokens {
			now := token.IssuedAt.Add(every)
			out, err := s.RotateRefresh(ctx, storage.RotateRefresh{
				Token: token, ClientID: "c", Grace: time.Minute, Now: now,
				Next: storage.Refresh{ExpiresAt: token.ExpiresAt},
			})
			if err != nil {
				t.Fatal(err)
			}
			tokens[i].Generation, tokens[i].IssuedAt = out.Generation, out.RotatedAt
		}
	}
	state := func() (rows, size int64) {
		t.Helper()
		if err := s.pool.QueryRow(ctx, count).Scan(&rows, &size); err != nil {
			t.Fatal(err)
		}
		return rows, size
	}
	rotate(time.Second)
	_, first := state()
	var before, after string
	at := func(lsn *string) error {
		return s.pool.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text").Scan(lsn)
	}
	if err := at(&before); err != nil {
		t.Fatal(err)
	}
	for range times {
		rotate(time.Millisecond)
	}
	rows, last := state()
	if rows != 0 || last > first+8*7*many {
		t.Errorf("%d tokens have rows, and grants have %d bytes where they had %d", rows, last, first)
	}
	rotate(20 * time.Minute)
	if _, quiet := state(); quiet > first {
		t.Errorf("when every grace is over, grants have %d bytes where they had %d", quiet, first)
	}
	var wal, updates, hot int64
	err := errors.Join(at(&after),
		s.pool.QueryRow(ctx, "SELECT ($1::pg_lsn - $2::pg_lsn)::bigint", after, before).Scan(&wal))
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the statistics count all updates", func() bool {
		_, _ = s.pool.Exec(ctx, "SELECT 1")
		err := s.pool.QueryRow(ctx,
			"SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'grants'").Scan(&updates, &hot)
		if err != nil {
			t.Fatal(err)
		}
		return updates >= many*times
	})
	t.Logf("%d updates, %d of them HOT; %d bytes of WAL each; %d bytes a grant", updates, hot, wal/(many*(times+1)),
		last/many)
	if hot < updates*85/100 {
		t.Errorf("of %d updates %d touched no index", updates, hot)
	}
}
