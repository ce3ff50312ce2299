package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// oldRotate is the rotation before step 11, word for word.
const oldRotate = `WITH took AS (
	UPDATE refresh_tokens AS t SET rotated_at = $1, sealed = $2 FROM grants g
	WHERE t.hash = $3 AND g.id = t.grant_id AND t.rotated_at IS NULL AND t.expires_at > $1
		AND g.client_id = $4 AND ($5 = '' OR g.resource = $5)
		AND g.revoked_at IS NULL AND g.expires_at > $1 AND NOT (g.user_id <> '' AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = g.user_id AND NOT u.disabled)
	OR EXISTS (SELECT 1 FROM clients c WHERE c.id = g.client_id AND c.deleted_at IS NOT NULL))
	RETURNING g.id, g.client_id, g.user_id, g.resource, g.scopes, g.auth_time, g.created_at, g.expires_at, g.revoked_at, g.status_index, g.upstream_id, g.revoked_by),
next AS (INSERT INTO refresh_tokens (hash, grant_id, created_at, expires_at)
	SELECT $6::bytea, id, $1, least($7::bigint, expires_at) FROM took),
used AS (UPDATE clients SET last_used_at = $1
	WHERE id = $4 AND deleted_at IS NULL AND (last_used_at IS NULL OR last_used_at <= $8) AND EXISTS (SELECT 1 FROM took))
SELECT id FROM took`

// replica is one of two versions: it rotates a token, and returns its successor and whether that
// was a replay.
type replica func(ctx context.Context, token storage.PresentedRefresh) (storage.PresentedRefresh, bool, error)

// newReplica is this version. It seals both forms of the successor.
func newReplica(s *Store) replica {
	return func(ctx context.Context, token storage.PresentedRefresh) (storage.PresentedRefresh, bool, error) {
		now := time.Now()
		next := storage.Refresh{
			Hash: secrets.Hash(secrets.Token("")), Secret: secrets.Hash(secrets.Token("")),
			ExpiresAt: now.Add(time.Hour),
		}
		out, err := s.RotateRefresh(ctx,
			storage.RotateRefresh{
				Token: token, ClientID: "c", Grace: time.Minute, Now: now, Next: next, Sealed: sealedPair(next),
			})
		if err != nil {
			return nil, false, err
		}
		if token == nil {
			return nil, false, errors.New("no token")
		}
		if t, ok := token.(storage.NumberedRefresh); ok {
			next.Secret = t.Secret
		} else {
			next.Hash, next.Secret = storage.Hash(out.Sealed[:32]), storage.Hash(out.Sealed[32:])
		}
		if out.Generation == 0 {
			return storage.HashedRefresh(next.Hash), out.Replayed, nil
		}
		return storage.NumberedRefresh{
				GrantID: out.Grant.ID, Generation: out.Generation, IssuedAt: out.RotatedAt, Secret: next.Secret},
			out.Replayed, nil
	}
}

func sealedPair(r storage.Refresh) []byte {
	return append(append([]byte{}, r.Hash[:]...), r.Secret[:]...)
}

// oldReplica is the previous version, which only knows tokens with rows.
func oldReplica(s *Store) replica {
	return func(ctx context.Context, token storage.PresentedRefresh) (storage.PresentedRefresh, bool, error) {
		h, ok := token.(storage.HashedRefresh)
		if !ok {
			return nil, false, errors.New("unknown to a replica of the previous version")
		}
		now := time.Now()
		next := storage.Refresh{Hash: secrets.Hash(secrets.Token(""))}
		var sealed []byte
		// repeats after a deadlock, like that version
		err := s.do(ctx, "rotate", func(ctx context.Context, q querier) error {
			var id string
			sealed = nil
			err := one(ctx, q, []any{&id}, oldRotate, now.UnixMilli(), sealedPair(next), h[:], "c", "", next.Hash[:],
				now.Add(time.Hour).UnixMilli(), now.Add(-time.Minute).UnixMilli())
			if errors.Is(err, pgx.ErrNoRows) {
				err = one(ctx, q, []any{&sealed},
					"SELECT sealed FROM refresh_tokens WHERE hash = $1 AND rotated_at > $2", h[:],
					now.Add(-time.Minute).UnixMilli())
			}
			return err
		})
		if err != nil || sealed == nil {
			return storage.HashedRefresh(next.Hash), false, err
		}
		return storage.HashedRefresh(sealed[:32]), true, nil
	}
}

// TestUpgradeSideBySide (issue 12, 1.2): clients refresh twice at once with replicas of two
// versions while the schema changes. Each token has one successor, no client is refused, and in the
// end all tokens are numbered.
func TestUpgradeSideBySide(t *testing.T) {
	lane.Long(t, "TestAStepIsPutOffWhileOlderReplicasMayRun tests when a step is applied")
	ctx, url := t.Context(), pgtest.Start(t).Database(t)
	old := older(t, url)
	defer old.Close()
	if err := old.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	tokens := liveGrants(t, old, 12)
	var mu sync.RWMutex // guards replicas; held for reading while clients use them
	replicas := []replica{oldReplica(old)}
	serve := func(change func()) { mu.Lock(); defer mu.Unlock(); change() } // while no replica is in use
	pick := func() replica { return replicas[rand.IntN(len(replicas))] }
	var turns atomic.Int64
	var clients sync.WaitGroup
	load, stop := context.WithCancel(ctx)
	for i := range tokens {
		clients.Go(func() {
			for load.Err() == nil && !t.Failed() {
				mu.RLock()
				tokens[i] = refreshTwice(t, ctx, tokens[i], pick(), pick())
				mu.RUnlock()
				turns.Add(1)
			}
		})
	}
	defer clients.Wait()
	defer stop()
	goOn := func() {
		until := turns.Load() + int64(5*len(tokens))
		wait.Until(t, "every client has had some turns", func() bool { return turns.Load() >= until || t.Failed() })
	}
	goOn()
	one := open(t, url, Options{}) // migrates
	two := open(t, url, Options{})
	defer one.Close()
	defer two.Close()
	serve(func() { replicas = append(replicas, newReplica(one), newReplica(two)) })
	goOn()
	if err := errors.Join(old.Ready(ctx), one.Ready(ctx)); err != nil {
		t.Errorf("both versions serve: %v", err)
	}
	serve(func() { replicas = replicas[1:] }) // the hour is over
	if err := one.MigrateNow(ctx); err != nil {
		t.Fatal(err)
	}
	goOn()
	if err := one.Tend(ctx); err != nil {
		t.Fatal(err)
	}
	goOn() // one server makes numbered tokens and the other accepts them
	if err := two.Tend(ctx); err != nil {
		t.Fatal(err)
	}
	goOn()
	stop()
	clients.Wait()
	for i, token := range tokens {
		if _, ok := token.(storage.NumberedRefresh); !ok {
			t.Errorf("client %d still has %T", i, token)
		}
	}
}

// refreshTwice presents a token at two replicas at once.
func refreshTwice(
	t *testing.T, ctx context.Context, token storage.PresentedRefresh, by ...replica,
) storage.PresentedRefresh {
	t.Helper()
	next, replays := make([]storage.PresentedRefresh, len(by)), atomic.Int64{}
	var both sync.WaitGroup
	for i, rotate := range by {
		both.Go(func() {
			got, replayed, err := rotate(ctx, token)
			if err != nil {
				t.Errorf("%T: %v", token, err)
			}
			if next[i] = got; replayed {
				replays.Add(1)
			}
		})
	}
	both.Wait()
	if next[0] != next[1] || replays.Load() != 1 {
		t.Errorf("%T: %d replays, and the successors %v and %v", token, replays.Load(), next[0], next[1])
	}
	return next[0]
}

// liveGrants stores grants like the previous version, with a refresh token each.
func liveGrants(t *testing.T, s *Store, n int) (out []storage.PresentedRefresh) {
	t.Helper()
	at, far := time.Now().UnixMilli(), time.Now().Add(24*time.Hour).UnixMilli()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := s.pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("INSERT INTO clients (id, created_at) VALUES ('c', $1)", at)
	exec("INSERT INTO users (id, name, name_key, password_hash, admin, disabled, created_at) VALUES ('u', 'u', 'u', '', false, false, $1)",
		at)
	for i := range n {
		id, token := fmt.Sprint("g", i), storage.HashedRefresh(secrets.Hash(secrets.Token("")))
		exec(`INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at,
			code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at)
			VALUES ($1, 'c', 'u', '', '[]', $2, $2, $3, $4, '', '', $2, $2, $3)`, id, at, far, []byte(id))
		exec("INSERT INTO refresh_tokens (hash, grant_id, created_at, expires_at) VALUES ($1, $2, $3, $4)", token[:],
			id, at, far)
		out = append(out, token)
	}
	return out
}
