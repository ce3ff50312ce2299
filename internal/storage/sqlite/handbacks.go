package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// handOver keeps the tokens of the provider sessions that match where, before they are erased. ?1
// is when the tokens expire.
func handOver(c *conn, where string, now time.Time, args ...any) func() error {
	return run(c, `INSERT INTO handbacks (id, connector, subject, user_id, sealed, expires_at)
		SELECT id, connector, subject, user_id, sealed, ?1 FROM upstreams
		WHERE sealed IS NOT NULL AND ended_at IS NULL AND `+where+" ON CONFLICT DO NOTHING",
		append([]any{column.Millis(now.Add(column.HandedBackFor))}, args...)...)
}

// orphans removes provider sessions that no record depends on, and keeps their tokens.
func orphans(c *conn, before int64, limit int) (n int64, err error) {
	now := column.Time(before)
	err = all(
		handOver(c, "id IN (SELECT id FROM upstreams u WHERE created_at <= ?2"+
			column.Before(column.OrphanedFor)+unused("?2")+" LIMIT ?3)", now, before, limit),
		func() error {
			n, err = c.exec("DELETE FROM upstreams WHERE ended_at IS NULL AND id IN (SELECT id FROM handbacks)")
			return err
		},
	)
	return n, err
}

// unused returns the condition that no record depends on a provider session u.
func unused(now string) string {
	return ` AND ended_at IS NULL AND NOT linked AND NOT ` + column.IsNeeded + `
		AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.upstream_id = u.id AND s.expires_at > ` + now + `)
		AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.upstream_id = u.id AND g.revoked_at IS NULL AND g.expires_at > ` + now + ")"
}

// TakeHandbacks implements storage.Handbacks.
func (s *Store) TakeHandbacks(ctx context.Context, limit int) (out []storage.Upstream, err error) {
	const some = "SELECT EXISTS (SELECT 1 FROM handbacks)"
	err = s.writeIf(ctx, "TakeHandbacks", some, nil, func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (u storage.Upstream, err error) {
			err = row.Scan(&u.ID, &u.Connector, &u.Subject, &u.UserID, &u.Sealed)
			return u, err
		}, `DELETE FROM handbacks WHERE id IN (SELECT id FROM handbacks LIMIT ?) RETURNING id, connector, subject, user_id, sealed`,
			max(limit, 0))
		return err
	})
	return out, err
}
