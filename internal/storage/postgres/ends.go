package postgres

import (
	"context"
	"errors"
	"strconv"
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
	err = s.tx(ctx, "EndUpstreams", func(ctx context.Context, q querier) (err error) {
		out, err = endSelected(ctx, q, k, reason, now)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		err = nil // the provider sent a value that no record can contain
	}
	return out, err
}

// EndUpstreamsOnce implements storage.UpstreamEnds.
func (s *Store) EndUpstreamsOnce(
	ctx context.Context, keys []storage.UpstreamKey, reason string, use storage.Use, now time.Time,
) (out []storage.Upstream, err error) {
	err = s.tx(ctx, "EndUpstreamsOnce", func(ctx context.Context, q querier) (err error) {
		if err := portable.Spend(portableConn{ctx, q}, use); err != nil {
			return err
		}
		out = nil // if the transaction is repeated
		for _, k := range keys {
			ended, err := endSelected(ctx, q, k, reason, now)
			if err != nil {
				return err
			}
			out = append(out, ended...)
		}
		return nil
	})
	if errors.Is(err, storage.ErrNotFound) {
		err = nil // the provider sent a value that no record can contain
	}
	return out, err
}

// endSelected ends the live provider sessions that k selects.
func endSelected(
	ctx context.Context, q querier, k storage.UpstreamKey, reason string, now time.Time,
) ([]storage.Upstream, error) {
	var where []string
	var args []any
	for _, f := range column.KeyFields(k) {
		args = append(args, f.Value)
		where = append(where, f.Where("$"+strconv.Itoa(len(args))))
	}
	if len(where) == 0 {
		return nil, nil
	}
	return endUpstreams(ctx, q, strings.Join(where, " AND "), args, reason, now)
}

const (
	eraseUpstreams = `UPDATE upstreams SET sealed = NULL, claimed_until = NULL, ended_at = $1, end_reason = $2 WHERE id = ANY($3)`

	// endSessions stores the reason for each browser.
	endSessions = `WITH gone AS (DELETE FROM sessions WHERE upstream_id IS NOT NULL AND upstream_id = ANY($1) RETURNING hash, upstream_id, expires_at)
INSERT INTO farewells (hash, connector, reason, expires_at)
SELECT g.hash, u.connector, $2, g.expires_at FROM gone g JOIN upstreams u ON u.id = g.upstream_id
ON CONFLICT DO NOTHING`
)

// endUpstreams ends the live provider sessions that match where, and everything that depends on
// them. It locks them in order, so that two concurrent calls cannot deadlock. Browser sessions go
// before grants, for the reason given at cutOff.
func endUpstreams(
	ctx context.Context, q querier, where string, args []any, reason string, now time.Time,
) ([]storage.Upstream, error) {
	out, err := portable.SelectUpstreams(portableConn{ctx, q}, where+" AND ended_at IS NULL ORDER BY id FOR UPDATE",
		args...)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	ids := make([]string, len(out))
	for i, u := range out {
		ids[i] = u.ID
	}
	return out, all(ctx, q,
		statement{eraseUpstreams, []any{column.Millis(now), reason, ids}},
		statement{endSessions, []any{ids, reason}},
		revoke(storage.ByProvider, "upstream_id IS NOT NULL AND upstream_id = ANY($4)", now, ids),
	)
}

// eraseOfUser ends the provider sessions of a user whose browser sessions and grants end anyway. It
// locks them in the order of endUpstreams, and keeps their tokens for revocation.
func eraseOfUser(userID, reason string, now time.Time) statement {
	return statement{`WITH live AS (SELECT id, connector, subject, user_id, sealed FROM upstreams WHERE user_id = $3 AND ended_at IS NULL ORDER BY id FOR UPDATE),
kept AS (` + handback + `SELECT id, connector, subject, user_id, sealed, $4::bigint FROM live WHERE sealed IS NOT NULL ON CONFLICT DO NOTHING)
UPDATE upstreams AS u SET sealed = NULL, claimed_until = NULL, ended_at = $1, end_reason = $2 FROM live WHERE u.id = live.id`,
		[]any{column.Millis(now), reason, userID, column.Millis(now.Add(column.HandedBackFor))}}
}
