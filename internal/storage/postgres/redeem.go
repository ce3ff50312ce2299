package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/verdict"
)

const (
	// takeCode uses up a code once: the UPDATE changes the row for one of N callers (OAuth 2.1
	// §4.1.3, AS-90). The others wait for its lock and then find the condition false. Its condition
	// checks all values that the code is bound to (AS-49), a redirect URI only if one is sent
	// (§10.2, AS-92). So a wrong guess leaves the code unchanged. The same change activates the
	// first refresh token. Only a digest of the code remains.
	takeCode = `WITH took AS (
	UPDATE grants AS g SET code_used_at = $1, sweep_at = expires_at, code_hash = $10, code_redirect = '', code_challenge = '', used_from = $12`
	takeFirst = `,
		generation = CASE WHEN $7::bytea IS NULL THEN 0 ELSE 1 END, refresh_hash = $7, rotated_at = $1, refresh_expires_at = least($8::bigint, expires_at)`
	whereCode = `
	WHERE code_hash = $2 AND client_id = $3 AND code_challenge = $4 AND ($5 = '' OR code_redirect = $5)
		AND ($6 = '' OR resource = $6) AND code_used_at IS NULL AND code_expires_at > $1 AND expires_at > $1
		AND revoked_at IS NULL AND NOT ` + isCut + ` AND ` + inTime + `$11`
	returnCode = `
	RETURNING ` + column.GrantRead + ")"
	takeCodeTail = `,
used AS (UPDATE clients SET last_used_at = $1
	WHERE id = $3 AND deleted_at IS NULL AND (last_used_at IS NULL OR last_used_at <= $9) AND EXISTS (SELECT 1 FROM took))
SELECT ` + column.GrantRead + ` FROM took`

	readCode = "SELECT " + column.GrantRead + `, code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, ` + isCut + `
FROM grants g WHERE `

	// isCut is the condition that the grant g, its user or its client was revoked.
	isCut = `(g.user_id <> '' AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = g.user_id AND NOT u.disabled)
	OR EXISTS (SELECT 1 FROM clients c WHERE c.id = g.client_id AND c.deleted_at IS NOT NULL) OR ` + column.IsCut + ")"
)

// RedeemCode implements storage.Redemptions.
func (s *Store) RedeemCode(ctx context.Context, r storage.RedeemCode) (out storage.Redemption, err error) {
	deadline := s.deadline(0)
	err = s.do(ctx, "RedeemCode", func(ctx context.Context, q querier) error {
		var row column.GrantRow
		first, next, hash, expires := takeFirst, "", []byte(nil), int64(0) // NULL: no refresh token
		if r.Refresh != nil {
			hash, expires, out.Generation = r.Refresh.Secret[:], column.Millis(r.Refresh.ExpiresAt), 1
		}
		if r.Refresh != nil && !s.numbered.Load() {
			first, next, hash, out.Generation = "", firstHashed, r.Refresh.Hash[:], 0
		}
		spent := verdict.Spent(r)
		args := []any{column.Millis(r.Now), r.Hash[:], r.ClientID, r.Challenge,
			r.RedirectURI, r.Resource, hash, expires, column.Millis(r.Now.Add(-column.UsedEvery)), spent[:], deadline,
			column.Text(r.From)}
		where := whereCode + " AND NOT " + leanGrants
		if r.GrantID != "" {
			where, args = whereCode+" AND id = $13", append(args, r.GrantID)
		}
		err := one(ctx, q, row.Dest(), takeCode+first+where+returnCode+next+takeCodeTail, args...)
		if errors.Is(err, pgx.ErrNoRows) {
			out.Generation = 0
			out.Grant, err = refuseCode(ctx, q, r)
			return err
		}
		if err == nil {
			out.Grant, err = row.Grant()
		}
		return err
	})
	return out, err
}

// refuseCode returns why a code was refused, and revokes the grant of a code used a second time.
func refuseCode(ctx context.Context, q querier, r storage.RedeemCode) (storage.Grant, error) {
	where, arg := "code_hash = $1 AND code_used_at IS NULL AND NOT "+leanGrants, any(r.Hash[:])
	if r.GrantID != "" {
		where, arg = "id = $1", r.GrantID
	}
	code, err := storedCode(ctx, q, where, arg)
	if err != nil {
		return storage.Grant{}, err
	}
	return carryOut(ctx, q, code.Judge(r), code.Grant, column.Millis(r.Now))
}

// storedCode reads a code with its grant.
func storedCode(ctx context.Context, q querier, where string, arg any) (code verdict.Code, err error) {
	var row column.GrantRow
	var expires int64
	var used *int64
	var hash []byte
	dest := append(row.Dest(), &hash, &code.RedirectURI, &code.Challenge, &expires, &used, &code.Cut)
	if err = one(ctx, q, dest, readCode+where, arg); err != nil {
		return code, err
	}
	if code.Hash, err = column.Hash(hash); err != nil {
		return code, err
	}
	code.ExpiresAt, code.UsedAt = column.Time(expires), column.OptTime(used)
	code.Grant, err = row.Grant()
	return code, err
}

// carryOut revokes the grant of a reused code or token. It returns the grant only to a caller who
// owns the code or token.
func carryOut(ctx context.Context, q querier, refused error, g storage.Grant, now int64) (storage.Grant, error) {
	switch {
	case refused == nil:
		return storage.Grant{}, errAgain
	case errors.Is(refused, storage.ErrNotFound), errors.Is(refused, storage.ErrMismatch),
		errors.Is(refused, storage.ErrResource):
		return storage.Grant{}, refused
	case errors.Is(refused, storage.ErrSpent):
		g.RevokedAt, g.RevokedBy = column.Time(now), storage.ByReuse
		if err := all(ctx, q, revoke(storage.ByReuse, "id = $4", g.RevokedAt, g.ID)); err != nil {
			return storage.Grant{}, err
		}
	}
	return g, refused
}
