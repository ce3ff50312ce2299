package portable

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// oneTimeLinks implements verbs of storage.OneTimeLinks and storage.LinkStops.
type oneTimeLinks struct{ db Engine }

// Link implements storage.OneTimeLinks.
func (s oneTimeLinks) Link(ctx context.Context, h storage.Hash, now time.Time) (out storage.OneTimeLink, err error) {
	err = s.db.Read(ctx, "Link", func(c Conn) (err error) {
		out, err = OneLink(c, column.ReadLink+"hash = $1 OR stop_hash = $1", h[:])
		if err == nil && !now.Before(out.ExpiresAt) {
			err = storage.ErrExpired
		}
		return err
	})
	return out, err
}

// StopLink implements storage.LinkStops.
func (s oneTimeLinks) StopLink(
	ctx context.Context, stop storage.Hash, now time.Time,
) (out storage.OneTimeLink, err error) {
	err = s.db.Write(ctx, "StopLink", func(c Conn) (err error) {
		out, err = OneLink(c, "DELETE FROM one_time_links WHERE stop_hash = $1 AND expires_at > $2 RETURNING "+
			column.LinkColumns, stop[:], column.Millis(now))
		return err
	})
	return out, err
}

// StopLinks implements storage.LinkStops.
func (s oneTimeLinks) StopLinks(ctx context.Context, userID string, now time.Time) (n int, err error) {
	err = s.db.Write(ctx, "StopLinks", func(c Conn) error {
		stopped, err := c.Exec(
			"DELETE FROM one_time_links WHERE user_id = $1 AND user_id <> '' AND expires_at > $2",
			userID, column.Millis(now))
		n = int(stopped)
		return err
	})
	return n, err
}

// RecoveryLink implements storage.LinkStops.
func (s oneTimeLinks) RecoveryLink(
	ctx context.Context, userID string, now time.Time,
) (out storage.OneTimeLink, err error) {
	err = s.db.Read(ctx, "RecoveryLink", func(c Conn) (err error) {
		out, err = OneLink(c,
			column.ReadLink+"user_id = $1 AND kind = $2 AND expires_at > $3 ORDER BY created_at DESC LIMIT 1",
			userID, string(storage.LinkRecover), column.Millis(now))
		return err
	})
	return out, err
}

// StopInvitation implements storage.LinkStops.
func (s oneTimeLinks) StopInvitation(ctx context.Context, name string, now time.Time) error {
	return s.db.Write(ctx, "StopInvitation", func(c Conn) error {
		return changed(storage.ErrNotFound)(c.Exec(
			"DELETE FROM one_time_links WHERE user_id = $1 AND name_key = $2 AND kind = $3 AND expires_at > $4",
			"", column.NameKey(name), string(storage.LinkInvite), column.Millis(now)))
	})
}

// OpenLinks implements storage.LinkStops.
func (s oneTimeLinks) OpenLinks(
	ctx context.Context, after storage.Hash, limit int, now time.Time,
) (out []storage.OneTimeLink, err error) {
	err = s.db.Read(ctx, "OpenLinks", func(c Conn) (err error) {
		out, err = Each(c, func(row Row) (storage.OneTimeLink, error) {
			var r column.LinkRow
			if err := row.Scan(r.Dest()...); err != nil {
				return storage.OneTimeLink{}, err
			}
			return r.Link()
		}, column.ReadLink+"expires_at > $1 AND hash > $2 ORDER BY hash LIMIT $3", column.Millis(now), after[:], max(limit, 0))
		return err
	})
	return out, err
}

// OneLink returns the link that a query finds.
func OneLink(c Conn, query string, args ...any) (storage.OneTimeLink, error) {
	var r column.LinkRow
	if err := c.One(r.Dest(), query, args...); err != nil {
		return storage.OneTimeLink{}, err
	}
	return r.Link()
}
