package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// older returns a store whose version does not number refresh tokens.
func older(t *testing.T, url string) *Store {
	t.Helper()
	s := open(t, url, Options{SkipMigrate: true})
	s.steps = s.steps[:10]
	return s
}

// pass makes the applied steps older by d.
func pass(t *testing.T, s *Store, d time.Duration) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), "UPDATE schema_version SET applied_at = applied_at - $1 WHERE version > 0",
		d.Milliseconds()); err != nil {
		t.Fatal(err)
	}
}

// A step that older replicas cannot handle waits for an hour, or for an administrator. Until then
// both versions are ready, and afterwards only the new one is.
func TestAStepIsPutOffWhileOlderReplicasMayRun(t *testing.T) {
	for _, at := range []string{"its time", "once"} {
		t.Run("applied at "+at, func(t *testing.T) {
			ctx, url := context.Background(), pgtest.Start(t).Database(t)
			old := older(t, url)
			defer old.Close()
			if err := old.Migrate(ctx); err != nil {
				t.Fatal(err)
			}
			s := open(t, url, Options{})
			defer s.Close()
			wantPutOff(t, s, time.Hour)
			pass(t, s, time.Hour-time.Minute)
			fixed := open(t, url, Options{SkipMigrate: true})
			defer fixed.Close()
			if err := errors.Join(s.Tend(ctx), fixed.Tend(ctx), s.Ready(ctx), fixed.Ready(ctx),
				old.Ready(ctx)); err != nil {
				t.Fatalf("before its time: %v", err)
			}
			wantPutOff(t, s, time.Minute)
			migrate := s.MigrateNow
			if at != "once" {
				migrate = s.Tend
				pass(t, s, time.Minute)
				if err := fixed.Tend(ctx); err != nil || fixed.numbered.Load() {
					t.Errorf("one that may not change the schema has: %v", err)
				}
			}
			if err := errors.Join(migrate(ctx), s.Tend(ctx), fixed.Tend(ctx), s.Ready(ctx)); err != nil {
				t.Fatal(err)
			}
			if !s.numbered.Load() || !fixed.numbered.Load() {
				t.Error("refresh tokens are not numbered then")
			}
			wantPutOff(t, s, 0)
			if err := old.Ready(ctx); !errors.Is(err, storage.ErrSchema) || !errors.Is(err, migration.ErrNewer) {
				t.Errorf("the older replica: got %v, want ErrNewer", err)
			}
		})
	}
}

// The database's clock decides when a step is due. So a machine whose clock is ahead does not
// shorten the hour to replace older replicas (issue 12, 2.2).
func TestAStepIsPutOffByTheClockOfTheDatabase(t *testing.T) {
	url := pgtest.Start(t).Database(t)
	old := older(t, url)
	defer old.Close()
	if err := old.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := open(t, url, Options{})
	defer first.Close()
	ahead := open(t, url, Options{Now: func() time.Time { return time.Now().Add(2 * time.Hour) }})
	defer ahead.Close()
	wantPutOff(t, ahead, time.Hour)
	if err := old.Ready(t.Context()); err != nil {
		t.Errorf("the older replica: %v", err)
	}
}

// wantPutOff checks in how long the deferred step is due; 0: it is applied.
func wantPutOff(t *testing.T, s *Store, in time.Duration) {
	t.Helper()
	all, err := s.MigrationStatus(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range all {
		switch {
		case st.Name != migration.NumberedRefresh:
		case in == 0 && (st.AppliedAt.IsZero() || !st.DueAt.IsZero()):
			t.Errorf("got %+v, want it applied", st)
		case in > 0 && (!st.AppliedAt.IsZero() || (time.Until(st.DueAt)-in).Abs() > 30*time.Second):
			t.Errorf("got %+v, want it due in %v", st, in)
		}
	}
}

func TestInANewDatabaseNothingIsPutOff(t *testing.T) {
	s := open(t, pgtest.Start(t).Database(t), Options{})
	defer s.Close()
	wantPutOff(t, s, 0)
	var options []string
	err := s.pool.QueryRow(context.Background(),
		"SELECT reloptions FROM pg_class WHERE relname = 'grants'").Scan(&options)
	if err != nil || !slices.Contains(options, "fillfactor=95") {
		t.Errorf("the pages of grants keep no room: %v, %v", options, err)
	}
}
