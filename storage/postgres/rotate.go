package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/storage/internal/verdict"
)

const (
	grantOfG = "g.id, g.client_id, g.user_id, g.resource, g.scopes, g.auth_time, g.created_at, g.expires_at, g.revoked_at, g.status_index, g.upstream_id, g.revoked_by"

	// takeRefresh is the compare-and-swap of rotation, with the successor and the
	// grant in the same statement.
	takeRefresh = `WITH took AS (
	UPDATE refresh_tokens AS t SET rotated_at = $1, sealed = $2 FROM grants g
	WHERE t.hash = $3 AND g.id = t.grant_id AND t.rotated_at IS NULL AND t.expires_at > $1
		AND g.client_id = $4 AND ($5 = '' OR g.resource = $5)
		AND g.revoked_at IS NULL AND g.expires_at > $1 AND NOT ` + isCut + `
	RETURNING ` + grantOfG + `),
next AS (INSERT INTO refresh_tokens (hash, grant_id, created_at, expires_at)
	SELECT $6::bytea, id, $1, least($7::bigint, expires_at) FROM took),
used AS (UPDATE clients SET last_used_at = $1
	WHERE id = $4 AND deleted_at IS NULL AND (last_used_at IS NULL OR last_used_at <= $8) AND EXISTS (SELECT 1 FROM took))
SELECT ` + column.GrantRead + ` FROM took`

	readRefresh = "SELECT " + grantOfG + ", t.expires_at, t.rotated_at, t.sealed, " + isCut + `
FROM refresh_tokens t JOIN grants g ON g.id = t.grant_id WHERE t.hash = $1`
)

// RotateRefresh implements storage.Redemptions.
func (s *Store) RotateRefresh(ctx context.Context, r storage.RotateRefresh) (out storage.Rotation, err error) {
	err = s.do(ctx, "rotate refresh token", func(ctx context.Context, q querier) error {
		var row column.GrantRow
		now := column.Millis(r.Now)
		err := one(ctx, q, row.Dest(), takeRefresh, now, column.Bytes(r.Sealed), r.Hash[:], r.ClientID, r.Resource,
			r.Next.Hash[:], column.Millis(r.Next.ExpiresAt), column.Millis(r.Now.Add(-column.UsedEvery)))
		if errors.Is(err, pgx.ErrNoRows) {
			out, err = replayOrRefuse(ctx, q, r)
			return err
		}
		if err == nil {
			out = storage.Rotation{RotatedAt: column.Time(now), Sealed: r.Sealed}
			out.Grant, err = row.Grant()
		}
		return err
	})
	return out, err
}

// replayOrRefuse repeats the reply of a rotation within its grace, and otherwise
// names the cause; reuse revokes the grant.
func replayOrRefuse(ctx context.Context, q querier, r storage.RotateRefresh) (storage.Rotation, error) {
	t, err := loadRefresh(ctx, q, r.Hash)
	if err != nil {
		return storage.Rotation{}, err
	}
	replay, refused := t.Judge(r)
	if replay {
		return t.Rotation(true), hold(ctx, q, r.Hash)
	}
	t.Grant, err = carryOut(ctx, q, refused, t.Grant, column.Millis(r.Now))
	return t.Rotation(false), err
}

// hold locks a token for a moment: like settle, on a row that only those wait for who
// repeat the same token.
func hold(ctx context.Context, q querier, h storage.Hash) error {
	_, err := q.Exec(ctx, "SELECT 1 FROM refresh_tokens WHERE hash = $1 FOR NO KEY UPDATE", h[:])
	return err
}

func loadRefresh(ctx context.Context, q querier, h storage.Hash) (t verdict.Refresh, err error) {
	var row column.GrantRow
	var expires int64
	var rotated *int64
	err = one(ctx, q, append(row.Dest(), &expires, &rotated, &t.Sealed, &t.Cut), readRefresh, h[:])
	if err != nil {
		return t, err
	}
	t.Hash, t.ExpiresAt, t.RotatedAt = h, column.Time(expires), column.OptTime(rotated)
	t.Grant, err = row.Grant()
	return t, err
}
