package sqlite

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/storage/internal/verdict"
)

const (
	// takeRefresh is the compare-and-swap of rotation: of N callers one changes the row.
	takeRefresh = `UPDATE refresh_tokens SET rotated_at = ?1, sealed = ?2
WHERE hash = ?3 AND rotated_at IS NULL AND expires_at > ?1 AND EXISTS (SELECT 1 FROM grants g
	WHERE g.id = grant_id AND g.client_id = ?4 AND (?5 = '' OR g.resource = ?5)
		AND g.revoked_at IS NULL AND g.expires_at > ?1 AND NOT ` + isCut + `)
RETURNING grant_id`

	grantAndUse = "SELECT " + column.GrantRead + `, (SELECT last_used_at FROM clients c WHERE c.id = client_id)
FROM grants WHERE id = ?`

	readRefresh = `SELECT g.id, g.client_id, g.user_id, g.resource, g.scopes, g.auth_time, g.created_at, g.expires_at, g.revoked_at, g.status_index, g.upstream_id, g.revoked_by,
	t.expires_at, t.rotated_at, t.sealed, ` + isCut + `
FROM refresh_tokens t JOIN grants g ON g.id = t.grant_id WHERE t.hash = ?`
)

// RotateRefresh implements storage.Redemptions.
func (s *Store) RotateRefresh(ctx context.Context, r storage.RotateRefresh) (out storage.Rotation, err error) {
	var refused error // decided and, for reuse, carried out: the transaction stands
	err = s.write(ctx, "rotate refresh token", func(c *conn) (err error) {
		var grantID string
		now := column.Millis(r.Now)
		err = c.one([]any{&grantID}, takeRefresh, now, column.Bytes(r.Sealed), r.Hash[:], r.ClientID, r.Resource)
		if errors.Is(err, storage.ErrNotFound) {
			out, refused, err = replayOrRefuse(c, r)
			return err
		}
		if err != nil {
			return err
		}
		out = storage.Rotation{RotatedAt: column.Time(now), Sealed: r.Sealed}
		out.Grant, err = succeed(c, r, grantID, now)
		return err
	})
	if err == nil {
		err = wrap("rotate refresh token", refused)
	}
	return out, err
}

// succeed stores the successor.
func succeed(c *conn, r storage.RotateRefresh, grantID string, now int64) (g storage.Grant, err error) {
	var row column.GrantRow
	var used *int64
	if err := c.one(append(row.Dest(), &used), grantAndUse, grantID); err != nil {
		return g, err
	}
	if g, err = row.Grant(); err != nil {
		return g, err
	}
	if err := putRefresh(c, r.Next, g, now); err != nil {
		return g, err
	}
	return g, touchClient(c, r.ClientID, used, r.Now)
}

// replayOrRefuse repeats the reply of a rotation within its grace, and otherwise
// names the cause; reuse revokes the grant.
func replayOrRefuse(c *conn, r storage.RotateRefresh) (out storage.Rotation, refused, err error) {
	t, err := loadRefresh(c, r.Hash)
	if err != nil {
		return out, nil, err
	}
	replay, refused := t.Judge(r)
	switch {
	case replay:
		return t.Rotation(true), nil, nil
	case refused == nil:
		return out, nil, errUndecided
	case errors.Is(refused, storage.ErrSpent):
		t.Grant.RevokedAt, t.Grant.RevokedBy = column.Time(column.Millis(r.Now)), storage.ByReuse
		err = revoke(c, storage.ByReuse, "id = ?4", r.Now, t.Grant.ID)()
	}
	t.Grant = named(t.Grant, refused)
	return t.Rotation(false), refused, err
}

func loadRefresh(c *conn, h storage.Hash) (t verdict.Refresh, err error) {
	var row column.GrantRow
	var expires int64
	var rotated *int64
	err = c.one(append(row.Dest(), &expires, &rotated, &t.Sealed, &t.Cut), readRefresh, h[:])
	if err != nil {
		return t, err
	}
	t.Hash, t.ExpiresAt, t.RotatedAt = h, column.Time(expires), column.OptTime(rotated)
	t.Grant, err = row.Grant()
	return t, err
}
