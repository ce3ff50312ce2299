package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/verdict"
)

const (
	readNumbered = "SELECT " + column.GrantRead + ", " + column.NumberedColumns + ", " + isCut + `,
	(SELECT last_used_at FROM clients c WHERE c.id = client_id) FROM grants g WHERE id = ?`

	// takeNumbered is the compare-and-swap of rotation: one of N callers finds the expected
	// generation, and every use makes a new one (OAuth 2.1 §4.3.1, AS-94). It changes no indexed
	// column.
	takeNumbered = `UPDATE grants SET generation = ?2, rotated_at = ?3, refresh_expires_at = min(?4, expires_at), rotations = ?5, used_from = coalesce(?7, used_from)
WHERE id = ?1 AND generation = ?6`
)

// RotateRefresh implements storage.Redemptions.
func (s *Store) RotateRefresh(ctx context.Context, r storage.RotateRefresh) (out storage.Rotation, err error) {
	var refused error // set after a decision, even if the grant was revoked: the transaction commits
	err = s.write(ctx, "RotateRefresh", func(c *conn) (err error) {
		switch t := r.Token.(type) {
		case storage.NumberedRefresh:
			out, refused, err = rotateNumbered(c, t, r)
		case storage.HashedRefresh:
			out, refused, err = rotateHashed(c, t, r)
		}
		return err
	})
	if err == nil {
		err = wrap("rotate refresh token", refused)
	}
	return out, err
}

// rotateNumbered rotates a token, repeats the reply of a rotation within its grace, or returns why
// it was refused. Reuse revokes the grant.
func rotateNumbered(
	c *conn, t storage.NumberedRefresh, r storage.RotateRefresh,
) (out storage.Rotation, refused, err error) {
	n, used, err := loadNumbered(c, t.GrantID)
	if err != nil {
		return out, nil, err
	}
	passage, refused := n.Judge(t, r)
	switch {
	case refused != nil:
		n.Grant, err = carryOut(c, refused, n.Grant, r.Now)
		return n.Rotation(t, passage), refused, err
	case passage == verdict.Replays:
		return n.Rotation(t, passage), nil, nil
	}
	now, kept := column.Millis(r.Now), n.Remember(t, passage, r.Now)
	taken, err := c.exec(takeNumbered, t.GrantID, t.Generation+1, now, column.Millis(r.Next.ExpiresAt),
		column.Bytes(kept), n.Generation, column.Text(r.From))
	if err == nil && taken != 1 {
		err = errUndecided
	}
	if err != nil {
		return out, nil, err
	}
	out = storage.Rotation{
		Grant: n.Grant, RotatedAt: column.Time(now), Generation: t.Generation + 1,
		Recovered: passage == verdict.Recovers,
	}
	return out, nil, touchClient(c, r.ClientID, used, r.Now)
}

// carryOut revokes the grant of a reused code or token. It returns the grant only to a caller who
// owns the token.
func carryOut(c *conn, refused error, g storage.Grant, now time.Time) (storage.Grant, error) {
	if errors.Is(refused, storage.ErrSpent) {
		g.RevokedAt, g.RevokedBy = column.Time(column.Millis(now)), storage.ByReuse
		if err := revoke(c, storage.ByReuse, "id = ?4", now, g.ID)(); err != nil {
			return storage.Grant{}, err
		}
	}
	return named(g, refused), nil
}

func loadNumbered(c *conn, grantID string) (n verdict.Numbered, used *int64, err error) {
	var row column.GrantRow
	var state column.NumberedRow
	if err := c.one(append(append(row.Dest(), state.Dest()...), &n.Cut, &used), readNumbered, grantID); err != nil {
		return n, nil, err
	}
	n.Secret, n.Generation, n.RotatedAt, n.ExpiresAt, n.Rotations = state.Values()
	n.Grant, err = row.Grant()
	return n, used, err
}
