package sqlite

import (
	"errors"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/verdict"
)

// This file is for refresh tokens with one row each. Before step 12 of the schema, all tokens had
// one. It can be removed, with the table, a tokens.refresh_max_ttl after the last installation has
// applied that step.

const (
	// takeHashed is the compare-and-swap of rotation: one of N callers changes the row.
	takeHashed = `UPDATE refresh_tokens SET rotated_at = ?1, sealed = ?2, generation = 1
WHERE hash = ?3 AND rotated_at IS NULL AND expires_at > ?1 AND EXISTS (SELECT 1 FROM grants g
	WHERE g.id = grant_id AND g.client_id = ?4 AND (?5 = '' OR g.resource = ?5)
		AND g.revoked_at IS NULL AND g.expires_at > ?1 AND NOT ` + isCut + `)
RETURNING grant_id`

	// numberFirst makes the successor the grant's first numbered token.
	numberFirst = `UPDATE grants SET generation = 1, refresh_hash = ?2, rotated_at = ?3, refresh_expires_at = min(?4, expires_at), rotations = NULL
WHERE id = ?1 RETURNING ` + column.GrantRead + ", (SELECT last_used_at FROM clients c WHERE c.id = client_id)"

	readHashed = `SELECT g.id, g.client_id, g.user_id, g.resource, g.scopes, g.auth_time, g.created_at, g.expires_at, g.revoked_at, g.status_index, g.upstream_id, g.revoked_by, g.paused_at, g.narrowed_at, g.for_program, g.methods, g.trust_id, g.asserted,
	t.expires_at, t.rotated_at, t.sealed, t.generation, ` + isCut + `
FROM refresh_tokens t JOIN grants g ON g.id = t.grant_id WHERE t.hash = ?`
)

func rotateHashed(
	c *conn, t storage.HashedRefresh, r storage.RotateRefresh,
) (out storage.Rotation, refused, err error) {
	var grantID string
	now := column.Millis(r.Now)
	err = c.one([]any{&grantID}, takeHashed, now, column.Bytes(r.Sealed), t[:], r.ClientID, r.Resource)
	if errors.Is(err, storage.ErrNotFound) {
		return replayHashed(c, t, r)
	}
	if err != nil {
		return out, nil, err
	}
	var row column.GrantRow
	var used *int64
	err = c.one(append(row.Dest(), &used), numberFirst, grantID, r.Next.Secret[:], now, column.Millis(r.Next.ExpiresAt))
	if err != nil {
		return out, nil, err
	}
	out = storage.Rotation{RotatedAt: column.Time(now), Generation: 1, Sealed: r.Sealed}
	if out.Grant, err = row.Grant(); err != nil {
		return out, nil, err
	}
	return out, nil, touchClient(c, r.ClientID, used, r.Now)
}

// replayHashed repeats the reply of a rotation within its grace, and otherwise returns why it was
// refused. Reuse revokes the grant.
func replayHashed(
	c *conn, h storage.HashedRefresh, r storage.RotateRefresh,
) (out storage.Rotation, refused, err error) {
	t, err := loadHashed(c, h)
	if err != nil {
		return out, nil, err
	}
	replay, refused := t.Judge(r)
	switch {
	case replay:
		return t.Rotation(true), nil, nil
	case refused == nil:
		return out, nil, errUndecided
	}
	t.Grant, err = carryOut(c, refused, t.Grant, r.Now)
	return t.Rotation(false), refused, err
}

func loadHashed(c *conn, h storage.HashedRefresh) (t verdict.Hashed, err error) {
	var row column.GrantRow
	var expires int64
	var rotated *int64
	err = c.one(append(row.Dest(), &expires, &rotated, &t.Sealed, &t.Successor, &t.Cut), readHashed, h[:])
	if err != nil {
		return t, err
	}
	t.ExpiresAt, t.RotatedAt = column.Time(expires), column.OptTime(rotated)
	t.Grant, err = row.Grant()
	return t, err
}
