package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

// Two walks visit each grant once, in stored order. One removes grants whose code was not redeemed,
// the other ends grants that a newer one supersedes. So an approval need not read earlier grants,
// and a redemption need not move its grant within the index of expiry times.
const (
	// walkTo is the end of a walk: the first grant whose code is too young, or limit grants.
	walkTo = `SELECT coalesce(min(status_index) FILTER (WHERE code_expires_at > ?2) - 1, max(status_index), ?1)
FROM (SELECT status_index, code_expires_at FROM grants WHERE status_index > ?1 ORDER BY status_index LIMIT ?3)`

	walked = "status_index > ?1 AND status_index <= ?2"

	dropUnredeemed = "DELETE FROM grants WHERE " + walked + " AND code_used_at IS NULL AND revoked_at IS NULL"

	// supersede reads up to a thousand grants of a user to a client, in any order. A grant that so
	// many others were used after is not kept in any case.
	supersede = `WITH due AS MATERIALIZED (SELECT DISTINCT user_id, client_id, resource FROM grants WHERE ` + walked + ` AND revoked_at IS NULL AND user_id <> ''),
used AS (SELECT g.id, g.user_id, g.client_id, g.resource, max(g.code_used_at, coalesce(g.rotated_at, 0),
		CASE WHEN g.generation = 0 THEN coalesce((SELECT max(t.created_at) FROM refresh_tokens t WHERE t.grant_id = g.id), 0) ELSE 0 END) AS at
	FROM due d CROSS JOIN grants g WHERE g.id IN (SELECT id FROM grants l WHERE substr(l.user_id, -8) = substr(d.user_id, -8)
		AND substr(l.client_id, 9, 4) || substr(l.client_id, -8) = substr(d.client_id, 9, 4) || substr(d.client_id, -8)
		AND l.user_id = d.user_id AND l.client_id = d.client_id AND l.resource = d.resource
		AND l.revoked_at IS NULL AND l.code_used_at IS NOT NULL LIMIT ` + column.SupersedeReads + `)),
ranked AS (SELECT id, at, row_number() OVER (PARTITION BY user_id, client_id, resource ORDER BY at DESC, id DESC) AS place FROM used)
UPDATE grants SET revoked_at = ?3, sweep_at = min(sweep_at, ?4), revoked_by = ?5
WHERE id IN (SELECT id FROM ranked WHERE place > ?6 OR place > ?7 AND at <= ?8)
RETURNING user_id, client_id, resource`
)

// walk advances both walks until they have ended or removed limit grants, and returns how many.
// Each batch has its own transaction, because there may be a thousand.
func walk(ctx context.Context, s *Store, now time.Time, limit int) (total int, err error) {
	for range column.WalkBatches {
		var n int64
		var moved bool
		err = s.write(ctx, "walk the grants", func(c *conn) (err error) {
			n, moved, err = walkBatch(c, column.Millis(now), min(limit, column.WalkStep))
			return err
		})
		if total += int(n); err != nil || total >= limit || !moved {
			break
		}
	}
	return total, err
}

func walkBatch(c *conn, now int64, limit int) (n int64, moved bool, err error) {
	var codes, newer, codesTo, newerTo int64
	err = c.one([]any{&codes, &newer}, "SELECT codes, newer FROM grant_walks")
	for _, w := range []struct {
		from  int64
		to    *int64
		young int64
	}{{codes, &codesTo, now - column.UnusedFor.Milliseconds()}, {newer, &newerTo, now}} {
		if err == nil {
			err = c.one([]any{w.to}, walkTo, w.from, w.young, limit)
		}
	}
	if err != nil || codesTo == codes && newerTo == newer {
		return 0, false, err
	}
	dropped, err := c.exec(dropUnredeemed, codes, codesTo)
	if err != nil {
		return 0, false, err
	}
	ended, err := each(c, func(row scanner) (s column.Superseded, err error) {
		err = row.Scan(&s.UserID, &s.ClientID, &s.Resource)
		return s, err
	}, supersede, newer, newerTo, now, now+column.RevokedFor.Milliseconds(),
		string(storage.ByNewer), column.KeptInUse, column.KeptAnyway, now-column.InUse.Milliseconds())
	for _, e := range column.SupersededEvents(ended, now) {
		e.ID = secrets.ID("evt_")
		if err == nil {
			err = portable.PutEvent(portableConn{c}, e)
		}
	}
	if err == nil {
		_, err = c.exec("UPDATE grant_walks SET codes = ?, newer = ?", codesTo, newerTo)
	}
	return dropped + int64(len(ended)), true, err
}
