package storagetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func housekeeping(t *testing.T, e *env) {
	t.Run("a new store is ready", func(t *testing.T) { check(t, e.s.Ready(e.ctx)) })
	t.Run("the first fingerprint stays", func(t *testing.T) {
		for _, fp := range []string{"", "one", "two"} {
			want := map[string]string{"": ""}[fp]
			if fp != "" {
				want = "one"
			}
			got, err := e.s.Fingerprint(e.ctx, []byte(fp))
			check(t, err)
			same(t, string(got), want)
		}
	})
	sweep := func(t *testing.T, now time.Time, grace time.Duration, limit, want int) {
		t.Helper()
		n, err := e.s.Sweep(e.ctx, storage.Retention{Now: now, Rotated: now.Add(-grace)}, limit)
		check(t, err)
		if n != want {
			t.Errorf("swept at +%v: got %d, want %d", now.Sub(e.now), n, want)
		}
	}
	// A store may also sweep additional rows.
	swept := func(t *testing.T, now time.Time) {
		t.Helper()
		n, err := e.s.Sweep(e.ctx, storage.Retention{Now: now, Rotated: now}, 1000)
		check(t, err)
		if n >= 1000 {
			t.Errorf("got %d in one sweep", n)
		}
	}
	t.Run("what is alive is not swept", func(t *testing.T) {
		a, refresh := e.granted(t)
		r := e.rotation(a, refresh)
		e.rotate(t, r)
		check(t, e.s.Spend(e.ctx, "jti", "x", e.now.Add(time.Minute)))
		check(t, e.s.DenyToken(e.ctx, "x", e.now.Add(time.Minute)))
		_, err := e.s.RecordFailure(e.ctx, randomHash(), e.now, time.Minute)
		check(t, err)
		sweep(t, e.now, time.Minute, 100, 0)
		e.wantLive(t, a, true)
	})
	t.Run("what has expired is swept: a jti, a denial, a failure", func(t *testing.T) {
		sweep(t, e.now.Add(time.Minute), time.Minute, 100, 3)
		check(t, e.s.Spend(e.ctx, "jti", "x", e.now.Add(time.Minute)))
		sweep(t, e.now.Add(time.Minute), time.Minute, 100, 1)
	})
	t.Run("a sweep is bounded, and what is dead goes in the end", func(t *testing.T) {
		far := e.now.Add(1000 * 24 * time.Hour)
		for total, rounds := 0, 0; ; rounds++ {
			n, err := e.s.Sweep(e.ctx, storage.Retention{Now: far, Rotated: far, ClientUnused: far, ClientIdle: far}, 1)
			check(t, err)
			if n > 15 {
				t.Errorf("got %d in one sweep, want at most one of each kind", n)
			}
			if total += n; n == 0 {
				break
			}
			if rounds > 1000 {
				t.Fatal("it never ends")
			}
		}
		left, err := e.s.ListGrants(e.ctx, "", "", "", 100)
		check(t, err)
		if len(left) > 0 {
			t.Errorf("%d grants are left", len(left))
		}
	})
	t.Run("AS-145 unused clients are forgotten, by idleness and never with a grant",
		func(t *testing.T) { forgetting(t, e) })
	t.Run("a code that was not redeemed goes with its grant, an hour after its expiry", func(t *testing.T) {
		a := e.approved(t)
		swept(t, a.Code.ExpiresAt.Add(time.Hour-time.Millisecond))
		_, err := e.s.Grant(e.ctx, a.Grant.ID)
		check(t, err)
		swept(t, a.Code.ExpiresAt.Add(time.Hour))
		_, err = e.s.Grant(e.ctx, a.Grant.ID)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.RedeemCode(e.ctx, e.redemption(a))
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("a revoked grant is known as revoked for a day", func(t *testing.T) {
		a, refresh := e.granted(t)
		check(t, e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now))
		swept(t, e.now.Add(24*time.Hour-time.Millisecond))
		e.wantRefreshRefused(t, a, refresh)
		swept(t, e.now.Add(24*time.Hour))
		_, err := e.s.RotateRefresh(e.ctx, e.rotation(a, refresh))
		wantErr(t, err, storage.ErrNotFound)
	})
}

func forgetting(t *testing.T, e *env) {
	put := func(id string, source storage.ClientSource, created, used time.Duration) {
		c := storage.Client{ID: id, Source: source, CreatedAt: e.now.Add(created)}
		if used != 0 {
			c.LastUsedAt = e.now.Add(used)
		}
		check(t, e.s.PutClient(e.ctx, c))
	}
	const day = 24 * time.Hour
	put("dynamic, never used, new", storage.SourceDynamic, -6*day, 0)
	put("dynamic, never used, old", storage.SourceDynamic, -8*day, 0)
	put("dynamic, old but used", storage.SourceDynamic, -300*day, -89*day)
	put("dynamic, idle", storage.SourceDynamic, -300*day, -91*day)
	put("document, idle", storage.SourceCIMD, -300*day, -91*day)
	put("static, idle", storage.SourceStatic, -300*day, -91*day)
	put("static, never used", storage.SourceStatic, -300*day, 0)
	check(t, e.s.DeleteClient(e.ctx, "deleted", e.now.Add(-300*day)))
	// Security M7: a replaced registration counts from its replacement, and leaves a tombstone, so
	// that its id stays dead.
	for id, times := range map[string][2]time.Duration{
		"managed, never used, new": {-300 * day, -6 * day}, "managed, never used, old": {-300 * day, -8 * day},
		"managed, used": {-300 * day, -8 * day}, "managed, as old as can be": {-8 * day, -7 * day},
	} {
		c := storage.Client{
			ID: id, Name: "N", RedirectURIs: []string{"https://a.example/"}, Metadata: []byte("{}"),
			Source: storage.SourceManaged, CreatedAt: e.now.Add(times[0]),
		}
		if id == "managed, used" {
			c.LastUsedAt = e.now.Add(-200 * day)
		}
		check(t, e.s.ReplaceClient(e.ctx, c, e.now.Add(times[1])))
	}
	// A stored client keeps its source, and its id is sealed. Without its tombstone the id would
	// work again.
	put("dynamic, deleted", storage.SourceDynamic, -300*day, -91*day)
	put("document, deleted", storage.SourceCIMD, -300*day, 0)
	for _, id := range []string{"dynamic, deleted", "document, deleted"} {
		check(t, e.s.DeleteClient(e.ctx, id, e.now.Add(-200*day)))
	}
	a, _ := e.granted(t) // its client has a grant, so it stays even when idle

	r := storage.Retention{ClientUnused: e.now.Add(-7 * day), ClientIdle: e.now.Add(-90 * day)}
	n, err := e.s.Sweep(e.ctx, r, 100)
	check(t, err)
	if n != 5 {
		t.Errorf("ended %d clients, want 5", n)
	}
	for id, want := range map[string]error{
		"dynamic, never used, new": nil, "dynamic, never used, old": storage.ErrNotFound, "dynamic, old but used": nil,
		"dynamic, idle": storage.ErrNotFound, "document, idle": storage.ErrNotFound, "static, idle": nil,
		"static, never used": nil, "deleted": storage.ErrRevoked,
		"dynamic, deleted": storage.ErrRevoked, "document, deleted": storage.ErrRevoked,
		"managed, never used, new": nil, "managed, never used, old": storage.ErrRevoked, "managed, used": nil,
		"managed, as old as can be": storage.ErrRevoked,
	} {
		if _, err := e.s.Client(e.ctx, id); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", id, err, want)
		}
	}
	far := e.now.Add(50 * day)
	_, err = e.s.Sweep(e.ctx, storage.Retention{ClientUnused: far, ClientIdle: far}, 100)
	check(t, err)
	if _, err := e.s.Client(e.ctx, a.Grant.ClientID); err != nil {
		t.Errorf("a client with a grant: %v", err)
	}
	for _, id := range []string{"deleted", "dynamic, deleted", "document, deleted"} {
		if _, err := e.s.Client(e.ctx, id); !errors.Is(err, storage.ErrRevoked) {
			t.Errorf("AS-145 %s, long after: got %v, want %v", id, err, storage.ErrRevoked)
		}
	}
	e.wantLive(t, a, true)
}

func contexts(t *testing.T, e *env) {
	a, refresh := e.granted(t)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancelLate := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancelLate()

	for name, verb := range map[string]func(context.Context) error{
		"a read": func(ctx context.Context) error { _, err := e.s.Client(ctx, a.Grant.ClientID); return err },
		"a verb": func(ctx context.Context) error {
			_, err := e.s.RotateRefresh(ctx, e.rotation(a, refresh))
			return err
		},
		"a transaction": func(ctx context.Context) error { return e.s.DeleteUser(ctx, a.Grant.UserID, e.now) },
	} {
		t.Run(name+" under a cancelled context ends with its error", func(t *testing.T) {
			wantErr(t, verb(gone), context.Canceled)
			wantErr(t, verb(late), context.DeadlineExceeded)
		})
	}
	t.Run("and has changed nothing", func(t *testing.T) {
		e.wantLive(t, a, true)
		if r := e.rotate(t, e.rotation(a, refresh)); r.Replayed {
			t.Error("the token had been rotated")
		}
	})
}
