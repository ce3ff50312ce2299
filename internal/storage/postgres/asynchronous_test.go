package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// behind starts a primary with an asynchronous standby, which replicates until cut is called. Later
// changes are lost when lose has killed the primary and promoted the standby.
func behind(t *testing.T) (primary *pgtest.Server, cut func(), lose func() *Store) {
	t.Helper()
	primary = pgtest.StartOwn(t)
	standby := primary.Standby(t, "n2")
	cut = func() {
		t.Helper()
		const caughtUp = "SELECT count(*) = 1 FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()"
		if err := errors.Join(primary.WaitFor(caughtUp), standby.Stop(pgtest.Fast)); err != nil {
			t.Fatal(err)
		}
	}
	lose = func() *Store {
		t.Helper()
		if err := errors.Join(primary.Stop(pgtest.Kill), standby.Start()); err != nil {
			t.Fatal(err)
		}
		if err := standby.Promote(); err != nil {
			t.Fatal(err)
		}
		s := open(t, strings.Replace(primary.URL(), primary.Host(), standby.Host(), 1), Options{})
		t.Cleanup(func() { s.Close() })
		return s
	}
	return primary, cut, lose
}

// redemption redeems the code that approve has made for a grant.
func redemption(id string, now time.Time) storage.RedeemCode {
	return storage.RedeemCode{Hash: hashOf("code " + id), GrantID: id, ClientID: "c", Now: now,
		Refresh: &storage.Refresh{Secret: hashOf("secret " + id), ExpiresAt: now.Add(time.Hour)}}
}

// TestAsynchronousFailover (issue 12, 2.3): a code whose redemption was lost with the primary can
// be redeemed at most once more, and only before it expires. A second use ends the grant. A client
// whose refreshes were lost continues with its newest token.
func TestAsynchronousFailover(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	minute := now.Add(time.Minute)
	primary, cut, lose := behind(t)
	before := open(t, primary.URL(), Options{})
	refresh := grants(t, before, "refreshed")[0]
	for _, id := range []string{"raced", "late"} {
		approveUntil(t, before, id, minute)
	}
	cut()
	for _, id := range []string{"raced", "late"} {
		if _, err := before.RedeemCode(ctx, redemption(id, now)); err != nil {
			t.Fatal(err)
		}
	}
	rotation := storage.RotateRefresh{
		Token: refresh, ClientID: "c", Now: now, Next: storage.Refresh{ExpiresAt: now.Add(time.Hour)},
	}
	for range 2 {
		out, err := before.RotateRefresh(ctx, rotation)
		if err != nil {
			t.Fatal(err)
		}
		refresh.Generation, refresh.IssuedAt = out.Generation, out.RotatedAt
		rotation.Token = refresh
	}
	before.Close()
	after := lose()

	var racers []func() error
	for range 32 {
		racers = append(racers, func() error {
			_, err := after.RedeemCode(ctx, redemption("raced", minute.Add(-time.Millisecond)))
			return err
		})
	}
	won := 0
	for _, err := range together(racers) {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, storage.ErrSpent) && !errors.Is(err, storage.ErrRevoked):
			t.Errorf("a loser: got %v, want ErrSpent or ErrRevoked", err)
		}
	}
	if won != 1 {
		t.Errorf("%d of 32 redeemed a code whose redemption was lost, want 1", won)
	}
	first := storage.NumberedRefresh{
		GrantID: "raced", Generation: 1, IssuedAt: now, ExpiresAt: minute, Secret: hashOf("secret raced"),
	}
	if err := rotate(ctx, after, first, now); !errors.Is(err, storage.ErrRevoked) {
		t.Errorf("the grant of a code used twice: got %v, want ErrRevoked", err)
	}
	for range 2 {
		if _, err := after.RedeemCode(ctx, redemption("late", minute)); !errors.Is(err, storage.ErrExpired) {
			t.Errorf("after its minute: got %v, want ErrExpired", err)
		}
	}
	out, err := after.RotateRefresh(ctx, rotation)
	if err != nil || !out.Recovered {
		t.Errorf("the newest refresh token of a client: got %+v, %v; want that it is recovered", out, err)
	}
	if err := rotate(ctx, after, refresh, now); !errors.Is(err, storage.ErrSpent) {
		t.Errorf("the same once more, without a grace: got %v, want ErrSpent", err)
	}
}

func rotate(ctx context.Context, s *Store, token storage.PresentedRefresh, now time.Time) error {
	_, err := s.RotateRefresh(ctx,
		storage.RotateRefresh{
			Token: token, ClientID: "c", Now: now, Next: storage.Refresh{ExpiresAt: now.Add(time.Hour)},
		})
	return err
}
