package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/verdict"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
)

// This file is for refresh tokens with one row each. Before step 12 of the schema, all tokens had
// one. Until that step is applied, this version also creates such tokens, because a replica of the
// previous version knows no others. The file can be removed, with the table, a
// tokens.refresh_max_ttl after the last installation has applied the step.

const (
	grantOfG = "g.id, g.client_id, g.user_id, g.resource, g.scopes, g.auth_time, g.created_at, g.expires_at, g.revoked_at, g.status_index, g.upstream_id, g.revoked_by, g.paused_at, g.narrowed_at, g.for_program, g.methods, g.trust_id, g.asserted"

	// firstHashed stores a first refresh token with a row, only if the code's row was changed.
	firstHashed = `,
next AS (INSERT INTO refresh_tokens (hash, grant_id, created_at, expires_at)
	SELECT $7::bytea, id, $1, least($8::bigint, expires_at) FROM took)`

	// takeHashed is the compare-and-swap of rotation, with the successor and the grant in the same
	// statement. The successor has a row, or is the first numbered token.
	takeHashed = hashedHead + `),
next AS (INSERT INTO refresh_tokens (hash, grant_id, created_at, expires_at)
	SELECT $7::bytea, id, $1, least($8::bigint, expires_at) FROM took)` + hashedTail
	takeLastHashed = hashedHead + `),
next AS (UPDATE grants AS n SET generation = 1, refresh_hash = $7, rotated_at = $1, refresh_expires_at = least($8::bigint, n.expires_at), rotations = NULL
	FROM took WHERE n.id = took.id)` + hashedTail

	hashedHead = `WITH took AS (
	UPDATE refresh_tokens AS t SET rotated_at = $1, sealed = $2, generation = $6 FROM grants g
	WHERE t.hash = $3 AND g.id = t.grant_id AND t.rotated_at IS NULL AND t.expires_at > $1
		AND g.client_id = $4 AND ($5 = '' OR g.resource = $5)
		AND g.revoked_at IS NULL AND g.paused_at IS NULL AND g.expires_at > $1 AND NOT ` + isCut + " AND " + inTime + `$10
	RETURNING ` + grantOfG
	hashedTail = `,
used AS (UPDATE clients SET last_used_at = $1
	WHERE id = $4 AND deleted_at IS NULL AND (last_used_at IS NULL OR last_used_at <= $9) AND EXISTS (SELECT 1 FROM took))
SELECT ` + column.GrantRead + ` FROM took`

	readHashed = "SELECT " + grantOfG + ", t.expires_at, t.rotated_at, t.sealed, t.generation, " + isCut + `
FROM refresh_tokens t JOIN grants g ON g.id = t.grant_id WHERE t.hash = $1`
)

// learn checks whether refresh tokens are numbered from now on, which is so once any replica has
// applied step 12. A replica that learns this late issues tokens with rows for a little longer. The
// others still accept them.
func (s *Store) learn(ctx context.Context) error {
	got, err := s.applied(ctx)
	if err != nil {
		return err
	}
	s.numbered.Store(got.Has(migration.NumberedRefresh))
	due, err := migration.Due(s.steps, got, migration.AtOnce())
	s.complete.Store(err == nil && len(due) == 0)
	return nil
}

func (s *Store) rotateHashed(
	ctx context.Context, q querier, t storage.HashedRefresh, r storage.RotateRefresh, deadline int64,
) (out storage.Rotation, err error) {
	take, next := takeHashed, r.Next.Hash
	var successor *int64
	if s.numbered.Load() {
		take, next, out.Generation = takeLastHashed, r.Next.Secret, 1
		successor = &out.Generation
	}
	var row column.GrantRow
	now := column.Millis(r.Now)
	err = one(ctx, q, row.Dest(), take, now, column.Bytes(r.Sealed), t[:], r.ClientID, r.Resource, successor,
		next[:], column.Millis(r.Next.ExpiresAt), column.Millis(r.Now.Add(-column.UsedEvery)), deadline)
	if errors.Is(err, pgx.ErrNoRows) {
		return replayHashed(ctx, q, t, r)
	}
	if err != nil {
		return storage.Rotation{}, err
	}
	out.RotatedAt, out.Sealed = column.Time(now), r.Sealed
	out.Grant, err = row.Grant()
	return out, err
}

// replayHashed repeats the reply of a rotation within its grace, and otherwise returns why it was
// refused. Reuse revokes the grant.
func replayHashed(
	ctx context.Context, q querier, h storage.HashedRefresh, r storage.RotateRefresh,
) (storage.Rotation, error) {
	t, err := loadHashed(ctx, q, h)
	if err != nil {
		return storage.Rotation{}, err
	}
	replay, refused := t.Judge(r)
	if replay {
		return t.Rotation(true), hold(ctx, q, "SELECT 1 FROM refresh_tokens WHERE hash = $1", h[:])
	}
	t.Grant, err = carryOut(ctx, q, refused, t.Grant, column.Millis(r.Now))
	return t.Rotation(false), err
}

func loadHashed(ctx context.Context, q querier, h storage.HashedRefresh) (t verdict.Hashed, err error) {
	var row column.GrantRow
	var expires int64
	var rotated *int64
	err = one(ctx, q, append(row.Dest(), &expires, &rotated, &t.Sealed, &t.Successor, &t.Cut), readHashed, h[:])
	if err != nil {
		return t, err
	}
	t.ExpiresAt, t.RotatedAt = column.Time(expires), column.OptTime(rotated)
	t.Grant, err = row.Grant()
	return t, err
}
