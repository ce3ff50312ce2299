package sqlite

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/verdict"
)

const (
	// takeCode uses up a code once: one of N callers changes the row (OAuth 2.1 §4.1.3, AS-90). Its
	// condition checks all values that the code is bound to (AS-49), a redirect URI only if one is
	// sent (§10.2, AS-92). So a wrong guess leaves the code unchanged. Only a digest of the code
	// remains.
	takeCode = `UPDATE grants AS g SET code_used_at = ?1, sweep_at = expires_at, code_hash = ?9, code_redirect = '', code_challenge = '', used_from = ?10,
	generation = CASE WHEN ?7 IS NULL THEN 0 ELSE 1 END, refresh_hash = ?7, rotated_at = ?1, refresh_expires_at = min(?8, expires_at)
WHERE code_hash = ?2 AND client_id = ?3 AND code_challenge = ?4 AND (?5 = '' OR code_redirect = ?5)
	AND (?6 = '' OR resource = ?6) AND code_used_at IS NULL AND code_expires_at > ?1 AND expires_at > ?1
	AND revoked_at IS NULL AND NOT ` + isCut
	takeCodeTail = `
RETURNING ` + column.GrantRead + ", (SELECT last_used_at FROM clients c WHERE c.id = client_id)"

	readCode = "SELECT " + column.GrantRead + `, code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, ` + isCut + `
FROM grants g WHERE `

	// isCut is the condition that the grant g, its user or its client was revoked.
	isCut = `(g.user_id <> '' AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = g.user_id AND NOT u.disabled)
	OR EXISTS (SELECT 1 FROM clients c WHERE c.id = g.client_id AND c.deleted_at IS NOT NULL) OR ` + column.IsCut + ")"
)

// RedeemCode implements storage.Redemptions.
func (s *Store) RedeemCode(ctx context.Context, r storage.RedeemCode) (out storage.Redemption, err error) {
	var refused error // set after a decision, even if the grant was revoked: the transaction commits
	err = s.write(ctx, "RedeemCode", func(c *conn) (err error) {
		var row column.GrantRow
		var used *int64
		var secret any // NULL: no refresh token
		var expires int64
		if r.Refresh != nil {
			secret, expires, out.Generation = r.Refresh.Secret[:], column.Millis(r.Refresh.ExpiresAt), 1
		}
		spent := verdict.Spent(r)
		args := []any{
			column.Millis(r.Now), r.Hash[:], r.ClientID, r.Challenge, r.RedirectURI, r.Resource, secret, expires,
			spent[:], column.Text(r.From),
		}
		sql := takeCode + takeCodeTail
		if r.GrantID != "" {
			sql, args = takeCode+" AND id = ?11"+takeCodeTail, append(args, r.GrantID)
		}
		err = c.one(append(row.Dest(), &used), sql, args...)
		if errors.Is(err, storage.ErrNotFound) {
			out.Generation = 0
			out.Grant, refused, err = refuseCode(c, r)
			return err
		}
		if err != nil {
			return err
		}
		if out.Grant, err = row.Grant(); err != nil {
			return err
		}
		return touchClient(c, r.ClientID, used, r.Now)
	})
	if err == nil {
		err = wrap("redeem code", refused)
	}
	return out, err
}

// refuseCode returns why a code was refused, and revokes the grant of a code used a second time.
func refuseCode(c *conn, r storage.RedeemCode) (g storage.Grant, refused, err error) {
	where, arg := "code_hash = ? AND code_used_at IS NULL", any(r.Hash[:])
	if r.GrantID != "" {
		where, arg = "id = ?", r.GrantID
	}
	code, err := storedCode(c, where, arg)
	if err != nil {
		return g, nil, err
	}
	refused = code.Judge(r)
	if refused == nil {
		return g, nil, errUndecided
	}
	g, err = carryOut(c, refused, code.Grant, r.Now)
	return g, refused, err
}

// storedCode reads a code with its grant.
func storedCode(c *conn, where string, arg any) (code verdict.Code, err error) {
	var row column.GrantRow
	var expires int64
	var used *int64
	var hash []byte
	dest := append(row.Dest(), &hash, &code.RedirectURI, &code.Challenge, &expires, &used, &code.Cut)
	if err = c.one(dest, readCode+where, arg); err != nil {
		return code, err
	}
	if code.Hash, err = column.Hash(hash); err != nil {
		return code, err
	}
	code.ExpiresAt, code.UsedAt = column.Time(expires), column.OptTime(used)
	code.Grant, err = row.Grant()
	return code, err
}

// errUndecided cannot happen, because no statement changes the row between two of one transaction.
// It means that the condition and the verdict disagree.
var errUndecided = errors.New("refused without a cause")

// named hides the grant from a caller who has not proved that it is theirs.
func named(g storage.Grant, refused error) storage.Grant {
	if errors.Is(refused, storage.ErrNotFound) || errors.Is(refused, storage.ErrMismatch) ||
		errors.Is(refused, storage.ErrResource) {
		return storage.Grant{}
	}
	return g
}
