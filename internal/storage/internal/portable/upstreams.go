package portable

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	selectUpstream = "SELECT " + column.UpstreamColumns + " FROM upstreams WHERE "
	latest         = `id IN (SELECT id FROM (
	SELECT id, row_number() OVER (PARTITION BY subject ORDER BY created_at DESC, id DESC) AS place FROM upstreams
	WHERE user_id = $1 AND connector = $2 AND ended_at IS NULL
) newest WHERE place = 1) ORDER BY subject`
)

// upstreams implements storage.Upstreams and storage.UpstreamCustody.
type upstreams struct{ db Engine }

// Upstream implements storage.Upstreams.
func (s upstreams) Upstream(ctx context.Context, id string) (storage.Upstream, error) {
	return s.upstream(ctx, "Upstream", "id = $1", id)
}

// UpstreamFor implements storage.Upstreams.
func (s upstreams) UpstreamFor(ctx context.Context, userID, connector, prefer string) (storage.Upstream, error) {
	return s.upstream(ctx, "UpstreamFor", `user_id = $1 AND connector = $2 AND ended_at IS NULL
		ORDER BY id = $3 DESC, linked DESC, created_at DESC, id DESC LIMIT 1`, userID, connector, prefer)
}

// LatestUpstreams implements storage.Upstreams.
func (s upstreams) LatestUpstreams(ctx context.Context, userID, connector string) ([]storage.Upstream, error) {
	return s.upstreams(ctx, "LatestUpstreams", latest, userID, connector)
}

func (s upstreams) upstream(
	ctx context.Context, verb, where string, args ...any,
) (out storage.Upstream, err error) {
	err = s.db.Read(ctx, verb, func(c Conn) (err error) {
		var r column.UpstreamRow
		if err := c.One(r.Dest(), selectUpstream+where, args...); err != nil {
			return err
		}
		out, err = r.Upstream()
		return err
	})
	return out, err
}

// ClaimUpstream implements storage.Upstreams: one of N callers changes the row.
func (s upstreams) ClaimUpstream(ctx context.Context, id string, version int64, now, until time.Time) error {
	return s.db.Write(ctx, "ClaimUpstream", func(c Conn) error {
		n, err := c.Exec(`UPDATE upstreams SET claimed_until = $4
			WHERE id = $1 AND version = $2 AND ended_at IS NULL AND (claimed_until IS NULL OR claimed_until <= $3)`,
			id, version, column.Millis(now), column.Millis(until))
		if err == nil && n == 0 {
			err = notHeld(c, id)
		}
		return err
	})
}

// SaveUpstream implements storage.Upstreams.
func (s upstreams) SaveUpstream(ctx context.Context, u storage.Upstream) error {
	return s.db.Write(ctx, "SaveUpstream", func(c Conn) error {
		n, err := c.Exec(`UPDATE upstreams SET sealed = $3, scopes = $4, session_id = $5, checked_at = $6, due_at = $7,
			version = version + 1, claimed_until = NULL
			WHERE id = $1 AND version = $2 AND ended_at IS NULL`,
			u.ID, u.Version, column.Bytes(u.Sealed), column.List(u.Scopes), column.Text(u.SessionID),
			column.OptMillis(u.CheckedAt), column.OptMillis(u.DueAt))
		if err == nil && n == 0 {
			err = notHeld(c, u.ID)
		}
		return err
	})
}

// notHeld returns why a session did not change: ErrSpent unless it has ended or is gone.
func notHeld(c Conn, id string) error {
	var ended bool
	err := c.One([]any{&ended}, "SELECT ended_at IS NOT NULL FROM upstreams WHERE id = $1", id)
	switch {
	case err != nil:
		return err
	case ended:
		return storage.ErrRevoked
	}
	return storage.ErrSpent
}

// DueUpstreams implements storage.Upstreams.
func (s upstreams) DueUpstreams(ctx context.Context, now time.Time, limit int) ([]storage.Upstream, error) {
	return s.upstreams(ctx, "DueUpstreams", `ended_at IS NULL AND due_at <= $1 AND (claimed_until IS NULL OR claimed_until <= $1)
		ORDER BY due_at, id LIMIT $2`, column.Millis(now), max(limit, 0))
}

// ListUpstreams implements storage.UpstreamCustody.
func (s upstreams) ListUpstreams(ctx context.Context, after string, limit int) ([]storage.Upstream, error) {
	return s.upstreams(ctx, "ListUpstreams", "ended_at IS NULL AND id > $1 ORDER BY id LIMIT $2", after, max(limit, 0))
}

func (s upstreams) upstreams(
	ctx context.Context, verb, where string, args ...any,
) (out []storage.Upstream, err error) {
	err = s.db.Read(ctx, verb, func(c Conn) (err error) {
		out, err = SelectUpstreams(c, where, args...)
		return err
	})
	return out, err
}

// SelectUpstreams returns the provider sessions that match where.
func SelectUpstreams(c Conn, where string, args ...any) ([]storage.Upstream, error) {
	return Each(c, func(row Row) (storage.Upstream, error) {
		var r column.UpstreamRow
		if err := row.Scan(r.Dest()...); err != nil {
			return storage.Upstream{}, err
		}
		return r.Upstream()
	}, selectUpstream+where, args...)
}

// ResealUpstream implements storage.UpstreamCustody.
func (s upstreams) ResealUpstream(ctx context.Context, id string, old, sealed []byte) error {
	return s.db.Write(ctx, "ResealUpstream", func(c Conn) error {
		return changed(storage.ErrSpent)(
			c.Exec("UPDATE upstreams SET sealed = $1 WHERE id = $2 AND sealed = $3 AND ended_at IS NULL",
				sealed, id, old),
		)
	})
}
