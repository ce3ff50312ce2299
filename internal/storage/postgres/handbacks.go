package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	handback = "INSERT INTO handbacks (id, connector, subject, user_id, sealed, expires_at) "

	// sweepOrphans removes provider sessions that no record depends on, and keeps their tokens.
	sweepOrphans = `WITH gone AS (DELETE FROM upstreams WHERE id IN (SELECT id FROM upstreams u WHERE created_at <= $1::bigint - $3::bigint` + unused + `
	LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id, connector, subject, user_id, sealed)
` + handback + "SELECT id, connector, subject, user_id, sealed, $1::bigint + $4::bigint FROM gone WHERE sealed IS NOT NULL ON CONFLICT DO NOTHING"

	// unused is the condition that no record depends on a provider session u; $1 is now.
	unused = ` AND ended_at IS NULL AND NOT linked AND NOT ` + column.IsNeeded + `
	AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.upstream_id = u.id AND s.expires_at > $1::bigint)
	AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.upstream_id = u.id AND g.revoked_at IS NULL AND g.expires_at > $1::bigint)`
)

// handOver keeps the tokens of provider sessions that have just ended.
func handOver(ended []storage.Upstream, now time.Time) (out []statement) {
	until := column.Millis(now.Add(column.HandedBackFor))
	for _, u := range ended {
		if len(u.Sealed) > 0 {
			out = append(out, statement{handback + "VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
				[]any{u.ID, u.Connector, u.Subject, u.UserID, u.Sealed, until}})
		}
	}
	return out
}

// TakeHandbacks implements storage.Handbacks. It skips rows that another replica is taking.
func (s *Store) TakeHandbacks(ctx context.Context, limit int) (out []storage.Upstream, err error) {
	err = s.do(ctx, "TakeHandbacks", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (u storage.Upstream, err error) {
			err = row.Scan(&u.ID, &u.Connector, &u.Subject, &u.UserID, &u.Sealed)
			return u, err
		}, `DELETE FROM handbacks WHERE id IN (SELECT id FROM handbacks LIMIT $1 FOR UPDATE SKIP LOCKED)
			RETURNING id, connector, subject, user_id, sealed`, max(limit, 0))
		return err
	})
	return out, err
}
