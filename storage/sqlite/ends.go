package sqlite

import (
	"context"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

// EndUpstreams implements storage.UpstreamEnds.
func (s *Store) EndUpstreams(
	ctx context.Context, k storage.UpstreamKey, reason string, now time.Time,
) (out []storage.Upstream, err error) {
	fields := column.KeyFields(k)
	if len(fields) == 0 {
		return nil, nil
	}
	var where []string
	var args []any
	for _, f := range fields {
		where = append(where, f.Where("?"))
		args = append(args, f.Value)
	}
	err = s.write(ctx, "end upstreams", func(c *conn) (err error) {
		out, err = endUpstreams(c, strings.Join(where, " AND "), args, reason, now)
		return err
	})
	return out, err
}

// endUpstreams ends the live sessions at providers that match where, and what rests on
// them; it leaves a word for each browser.
func endUpstreams(c *conn, where string, args []any, reason string, now time.Time) ([]storage.Upstream, error) {
	out, err := selectUpstreams(c, where+" AND ended_at IS NULL ORDER BY id", args...)
	if err != nil {
		return nil, err
	}
	for _, u := range out {
		err := all(
			run(c, "UPDATE upstreams SET sealed = NULL, claimed_until = NULL, ended_at = ?, end_reason = ? WHERE id = ?",
				column.Millis(now), reason, u.ID),
			run(c, `INSERT INTO farewells (hash, connector, reason, expires_at)
				SELECT hash, ?, ?, expires_at FROM sessions WHERE upstream_id = ? ON CONFLICT DO NOTHING`, u.Connector, reason, u.ID),
			run(c, "DELETE FROM sessions WHERE upstream_id = ?", u.ID),
			revoke(c, storage.ByProvider, "upstream_id = ?4", now, u.ID),
		)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// eraseOfUser ends the sessions at providers of a user whose browser sessions and grants
// end anyway. Their tokens are kept to be given back.
func eraseOfUser(c *conn, userID, reason string, now time.Time) func() error {
	return func() error {
		return all(
			handOver(c, "user_id = ?2", now, userID),
			run(c, `UPDATE upstreams SET sealed = NULL, claimed_until = NULL, ended_at = ?, end_reason = ?
				WHERE user_id = ? AND ended_at IS NULL`, column.Millis(now), reason, userID),
		)
	}
}
