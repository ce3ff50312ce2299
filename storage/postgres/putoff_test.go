package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/migrations"
	"github.com/mcp-authd/mcp-authd/storage"
)

// older is a store of the version before refresh tokens were numbered.
func older(t *testing.T, url string) *Store {
	t.Helper()
	s := open(t, url, Options{SkipMigrate: true})
	s.steps = s.steps[:10]
	return s
}

// clock is a clock that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// A step that ends what replicas of the version before can do waits for an hour, or for
// the operator. Until then both versions are ready, and afterwards only the new one is.
func TestAStepIsPutOffWhileOlderReplicasMayRun(t *testing.T) {
	for _, at := range []string{"its time", "once"} {
		t.Run("applied at "+at, func(t *testing.T) {
			ctx, url := context.Background(), pgtest.Start(t).Database(t)
			old, c := older(t, url), &clock{at: time.Now()}
			defer old.Close()
			if err := old.Migrate(ctx); err != nil {
				t.Fatal(err)
			}
			s := open(t, url, Options{Now: c.now})
			defer s.Close()
			wantPutOff(t, s, c.at.Add(time.Hour))
			c.at = c.at.Add(time.Hour - time.Millisecond)
			fixed := open(t, url, Options{Now: c.now, SkipMigrate: true})
			defer fixed.Close()
			if err := errors.Join(s.Tend(ctx), fixed.Tend(ctx), s.Ready(ctx), fixed.Ready(ctx),
				old.Ready(ctx)); err != nil {
				t.Fatalf("before its time: %v", err)
			}
			wantPutOff(t, s, c.at.Add(time.Millisecond))
			migrate := s.MigrateNow
			if at != "once" {
				migrate, c.at = s.Tend, c.at.Add(time.Millisecond)
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
			wantPutOff(t, s, time.Time{})
			if err := old.Ready(ctx); !errors.Is(err, storage.ErrSchema) || !errors.Is(err, migrations.ErrNewer) {
				t.Errorf("the older replica: got %v, want ErrNewer", err)
			}
		})
	}
}

// wantPutOff checks when the step is due that is put off; the zero time: it is applied.
func wantPutOff(t *testing.T, s *Store, due time.Time) {
	t.Helper()
	all, err := s.MigrationStatus(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range all {
		if st.Name == migrations.NumberedRefresh &&
			(st.DueAt.UnixMilli() != due.UnixMilli() || st.AppliedAt.IsZero() == due.IsZero()) {
			t.Errorf("got %+v, want it due at %v", st, due)
		}
	}
}

func TestInANewDatabaseNothingIsPutOff(t *testing.T) {
	s := open(t, pgtest.Start(t).Database(t), Options{})
	defer s.Close()
	wantPutOff(t, s, time.Time{})
	var options []string
	err := s.pool.QueryRow(context.Background(),
		"SELECT reloptions FROM pg_class WHERE relname = 'grants'").Scan(&options)
	if err != nil || !slices.Contains(options, "fillfactor=95") {
		t.Errorf("the pages of grants keep no room: %v, %v", options, err)
	}
}
