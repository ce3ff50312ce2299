package sqlite

import (
	"context"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

// EndUpstreams implements storage.UpstreamEnds.
func (s *Store) EndUpstreams(
	ctx context.Context, k storage.UpstreamKey, reason string, now time.Time,
) (out []storage.Upstream, err error) {
	if len(column.KeyFields(k)) == 0 {
		return nil, nil
	}
	err = s.write(ctx, "EndUpstreams", func(c *conn) (err error) {
		out, err = endSelected(c, k, reason, now)
		return err
	})
	return out, err
}

// EndUpstreamsOnce implements storage.UpstreamEnds.
func (s *Store) EndUpstreamsOnce(
	ctx context.Context, keys []storage.UpstreamKey, reason string, use storage.Use, now time.Time,
) (out []storage.Upstream, err error) {
	err = s.write(ctx, "EndUpstreamsOnce", func(c *conn) (err error) {
		if err := portable.Spend(portableConn{c}, use); err != nil {
			return err
		}
		out = nil // if the transaction is repeated
		for _, k := range keys {
			ended, err := endSelected(c, k, reason, now)
			if err != nil {
				return err
			}
			out = append(out, ended...)
		}
		return nil
	})
	return out, err
}

// endSelected ends the live provider sessions that k selects.
func endSelected(c *conn, k storage.UpstreamKey, reason string, now time.Time) ([]storage.Upstream, error) {
	var where []string
	var args []any
	for _, f := range column.KeyFields(k) {
		where = append(where, f.Where("?"))
		args = append(args, f.Value)
	}
	if len(where) == 0 {
		return nil, nil
	}
	return endUpstreams(c, strings.Join(where, " AND "), args, reason, now)
}

// endUpstreams ends the live provider sessions that match where, and everything that depends on
// them. It stores the reason for each browser.
func endUpstreams(c *conn, where string, args []any, reason string, now time.Time) ([]storage.Upstream, error) {
	out, err := portable.SelectUpstreams(portableConn{c}, where+" AND ended_at IS NULL ORDER BY id", args...)
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

// eraseOfUser ends the provider sessions of a user whose browser sessions and grants end anyway. It
// keeps their tokens for revocation.
func eraseOfUser(c *conn, userID, reason string, now time.Time) func() error {
	return func() error {
		return all(
			handOver(c, "user_id = ?2", now, userID),
			run(c, `UPDATE upstreams SET sealed = NULL, claimed_until = NULL, ended_at = ?, end_reason = ?
				WHERE user_id = ? AND ended_at IS NULL`, column.Millis(now), reason, userID),
		)
	}
}
