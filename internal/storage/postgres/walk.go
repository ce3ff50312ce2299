package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

// Two walks visit each grant once, in stored order. One removes grants whose code was not redeemed,
// the other ends grants that a newer one supersedes. So an approval need not read earlier grants. A
// redemption need not move its grant within the index of expiry times, which would write to each
// index.
const (
	// walkTo is the end of a walk: the first grant whose code is too young, or limit grants.
	walkTo = `SELECT coalesce(min(status_index) FILTER (WHERE code_expires_at > $2) - 1, max(status_index), $1)
FROM (SELECT status_index, code_expires_at FROM grants WHERE status_index > $1 ORDER BY status_index LIMIT $3) g`

	walked = "status_index > $1 AND status_index <= $2"

	dropUnredeemed = "DELETE FROM grants WHERE " + walked + " AND code_used_at IS NULL AND revoked_at IS NULL"

	// usedAt is when the grant g was last used.
	usedAt = `greatest(g.code_used_at, g.rotated_at, CASE WHEN g.generation = 0 THEN (SELECT max(t.created_at) FROM refresh_tokens t WHERE t.grant_id = g.id) END)`

	// supersede reads up to a thousand grants of a user to a client, in any order. A grant that so
	// many others were used after is not kept in any case. A grant that is used meanwhile is
	// checked again.
	supersede = `WITH due AS MATERIALIZED (SELECT DISTINCT user_id, client_id, resource FROM grants WHERE ` + walked + ` AND revoked_at IS NULL AND user_id <> ''),
ranked AS (SELECT g.id, row_number() OVER (PARTITION BY d.user_id, d.client_id, d.resource ORDER BY g.used DESC, g.id DESC) AS place
	FROM due d CROSS JOIN LATERAL (SELECT id, ` + usedAt + ` AS used FROM grants g
		WHERE hashtext(g.user_id) = hashtext(d.user_id) AND hashtext(g.client_id) = hashtext(d.client_id)
		AND g.user_id = d.user_id AND g.client_id = d.client_id AND g.resource = d.resource
		AND g.revoked_at IS NULL AND g.code_used_at IS NOT NULL LIMIT ` + column.SupersedeReads + `) g)
UPDATE grants AS g SET revoked_at = $3, sweep_at = least(g.sweep_at, $4), revoked_by = $5 FROM ranked r
WHERE g.id = r.id AND g.revoked_at IS NULL AND (r.place > $6 OR r.place > $7 AND ` + usedAt + ` <= $8)
RETURNING g.user_id, g.client_id, g.resource`
)

// walk advances both walks until they have ended or removed limit grants, and returns how many.
func walk(ctx context.Context, s *Store, now time.Time, limit int) (total int, err error) {
	for range column.WalkBatches {
		n, moved := 0, false
		err = s.tx(ctx, "walk the grants", func(ctx context.Context, q querier) (err error) {
			n, moved, err = walkBatch(ctx, q, column.Millis(now), min(limit, column.WalkStep))
			return err
		})
		if total += n; err != nil || total >= limit || !moved {
			break
		}
	}
	return total, err
}

func walkBatch(ctx context.Context, q querier, now int64, limit int) (n int, moved bool, err error) {
	var codes, newer, codesTo, newerTo int64
	err = one(ctx, q, []any{&codes, &newer}, "SELECT codes, newer FROM grant_walks FOR UPDATE SKIP LOCKED")
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil // another replica is walking
	}
	for _, w := range []struct {
		from  int64
		to    *int64
		young int64
	}{{codes, &codesTo, now - column.UnusedFor.Milliseconds()}, {newer, &newerTo, now}} {
		if err == nil {
			err = one(ctx, q, []any{w.to}, walkTo, w.from, w.young, limit)
		}
	}
	if err != nil || codesTo == codes && newerTo == newer {
		return 0, false, err
	}
	dropped, err := exec(ctx, q, dropUnredeemed, codes, codesTo)
	if err != nil {
		return 0, false, err
	}
	ended, err := each(ctx, q, pgx.RowToStructByPos[column.Superseded], supersede, newer, newerTo, now,
		now+column.RevokedFor.Milliseconds(),
		string(storage.ByNewer), column.KeptInUse, column.KeptAnyway, now-column.InUse.Milliseconds())
	if err != nil {
		return 0, false, err
	}
	for _, e := range column.SupersededEvents(ended, now) {
		e.ID = secrets.ID("evt_")
		if err := portable.PutEvent(portableConn{ctx, q}, e); err != nil {
			return 0, false, err
		}
	}
	return int(dropped) + len(ended), true,
		all(ctx, q, statement{"UPDATE grant_walks SET codes = $1, newer = $2", []any{codesTo, newerTo}})
}
