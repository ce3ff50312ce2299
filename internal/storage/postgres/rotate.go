package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/verdict"
)

// The compare-and-swap of rotation: one of N callers finds the expected generation. It changes no
// indexed column, so PostgreSQL need not update an index (HOT).
const (
	// takeNumbered rotates the newest token of a grant. Every use makes a new one (OAuth 2.1
	// §4.3.1, AS-94).
	takeNumbered = rotateHead + "substring($7::bytea || coalesce(rotations, ''::bytea) FROM 1 FOR $9::int)" +
		rotateWhere + "generation = $3 AND refresh_expires_at > $1" + rotateTail
	// takeLost rotates a token that is newer than the grant knows. Only the last earlier rotation
	// is known: it happened by the time this token was issued.
	takeLost = rotateHead + "substring($7::bytea FROM 1 FOR $9::int)" + rotateWhere + "generation < $3" + rotateTail

	rotateHead = `WITH took AS (
	UPDATE grants AS g SET generation = $3 + 1, rotated_at = $1, refresh_expires_at = least($8::bigint, expires_at),
		used_from = coalesce($12, used_from), rotations = `
	rotateWhere = `
	WHERE id = $2 AND refresh_hash = $4 AND client_id = $5 AND ($6 = '' OR resource = $6)
		AND revoked_at IS NULL AND paused_at IS NULL AND expires_at > $1 AND NOT ` + isCut + " AND " + inTime + "$11 AND "
	rotateTail = `
	RETURNING ` + column.GrantRead + `),
used AS (UPDATE clients SET last_used_at = $1
	WHERE id = $5 AND deleted_at IS NULL AND (last_used_at IS NULL OR last_used_at <= $10) AND EXISTS (SELECT 1 FROM took))
SELECT ` + column.GrantRead + ` FROM took`

	readNumbered = "SELECT " + column.GrantRead + ", " + column.NumberedColumns + ", " + isCut +
		" FROM grants g WHERE id = $1"
)

// RotateRefresh implements storage.Redemptions.
func (s *Store) RotateRefresh(ctx context.Context, r storage.RotateRefresh) (out storage.Rotation, err error) {
	deadline := s.deadline(r.Grace)
	err = s.do(ctx, "RotateRefresh", func(ctx context.Context, q querier) (err error) {
		switch t := r.Token.(type) {
		case storage.NumberedRefresh:
			out, err = rotateNumbered(ctx, q, takeNumbered, t, r, deadline)
			if errors.Is(err, pgx.ErrNoRows) {
				out, err = replayNumbered(ctx, q, t, r, deadline)
			}
		case storage.HashedRefresh:
			out, err = s.rotateHashed(ctx, q, t, r, deadline)
		}
		return err
	})
	return out, err
}

func rotateNumbered(
	ctx context.Context, q querier, take string, t storage.NumberedRefresh, r storage.RotateRefresh, deadline int64,
) (out storage.Rotation, err error) {
	var row column.GrantRow
	now := column.Millis(r.Now)
	err = one(ctx, q, row.Dest(), take, now, t.GrantID, t.Generation, t.Secret[:], r.ClientID, r.Resource,
		verdict.Remembered(t, r.Now), column.Millis(r.Next.ExpiresAt), verdict.RotationsSize,
		column.Millis(r.Now.Add(-column.UsedEvery)), deadline, column.Text(r.From))
	if err != nil {
		return out, err
	}
	out = storage.Rotation{RotatedAt: column.Time(now), Generation: t.Generation + 1}
	out.Grant, err = row.Grant()
	return out, err
}

// replayNumbered repeats the reply of a rotation within its grace, rotates a token that the
// database has lost, or returns why it was refused. Reuse revokes the grant.
func replayNumbered(
	ctx context.Context, q querier, t storage.NumberedRefresh, r storage.RotateRefresh, deadline int64,
) (storage.Rotation, error) {
	n, err := loadNumbered(ctx, q, t.GrantID)
	if err != nil {
		return storage.Rotation{}, err
	}
	passage, refused := n.Judge(t, r)
	switch {
	case refused != nil:
		n.Grant, err = carryOut(ctx, q, refused, n.Grant, column.Millis(r.Now))
		return n.Rotation(t, passage), err
	case passage == verdict.Replays:
		return n.Rotation(t, passage), hold(ctx, q, "SELECT 1 FROM grants WHERE id = $1", t.GrantID)
	case passage == verdict.Recovers:
		out, err := rotateNumbered(ctx, q, takeLost, t, r, deadline)
		if errors.Is(err, pgx.ErrNoRows) {
			err = errAgain
		}
		out.Recovered = err == nil
		return out, err
	}
	return storage.Rotation{}, errAgain
}

// hold briefly locks the row of a token. It works like settle, on a row that only transactions with
// the same token wait for.
func hold(ctx context.Context, q querier, row string, key any) error {
	_, err := q.Exec(ctx, row+" FOR NO KEY UPDATE", key)
	return err
}

func loadNumbered(ctx context.Context, q querier, grantID string) (n verdict.Numbered, err error) {
	var row column.GrantRow
	var state column.NumberedRow
	if err := one(ctx, q, append(append(row.Dest(), state.Dest()...), &n.Cut), readNumbered, grantID); err != nil {
		return n, err
	}
	n.Secret, n.Generation, n.RotatedAt, n.ExpiresAt, n.Rotations = state.Values()
	n.Grant, err = row.Grant()
	return n, err
}
