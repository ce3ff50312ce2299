package sqlite

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/storage/internal/verdict"
)

const (
	// takeCode is the single use of a code: of N callers one changes the row. All
	// that the code is bound to stands in the condition, so a wrong guess leaves it
	// as it is. A digest is all that stays of the code.
	takeCode = `UPDATE grants AS g SET code_used_at = ?1, sweep_at = expires_at, code_hash = ?7, code_redirect = '', code_challenge = ''
WHERE code_hash = ?2 AND client_id = ?3 AND code_challenge = ?4 AND (?5 = '' OR code_redirect = ?5)
	AND (?6 = '' OR resource = ?6) AND code_used_at IS NULL AND code_expires_at > ?1 AND expires_at > ?1
	AND revoked_at IS NULL AND NOT ` + isCut
	takeCodeTail = `
RETURNING ` + column.GrantRead + ", (SELECT last_used_at FROM clients c WHERE c.id = client_id)"

	readCode = "SELECT " + column.GrantRead + `, code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, ` + isCut + `
FROM grants g WHERE `

	// isCut tells whether the grant g, its user or its client has been cut off.
	isCut = `(g.user_id <> '' AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = g.user_id AND NOT u.disabled)
	OR EXISTS (SELECT 1 FROM clients c WHERE c.id = g.client_id AND c.deleted_at IS NOT NULL) OR ` + column.IsCut + ")"

	insertRefresh = "INSERT INTO refresh_tokens (hash, grant_id, created_at, expires_at) VALUES (?, ?, ?, min(?, ?))"
)

// RedeemCode implements storage.Redemptions.
func (s *Store) RedeemCode(ctx context.Context, r storage.RedeemCode) (out storage.Grant, err error) {
	var refused error // decided and, for a second use, carried out: the transaction stands
	err = s.write(ctx, "redeem code", func(c *conn) (err error) {
		var row column.GrantRow
		var used *int64
		now := column.Millis(r.Now)
		spent := verdict.Spent(r)
		args := []any{now, r.Hash[:], r.ClientID, r.Challenge, r.RedirectURI, r.Resource, spent[:]}
		sql := takeCode + takeCodeTail
		if r.GrantID != "" {
			sql, args = takeCode+" AND id = ?8"+takeCodeTail, append(args, r.GrantID)
		}
		err = c.one(append(row.Dest(), &used), sql, args...)
		if errors.Is(err, storage.ErrNotFound) {
			out, refused, err = refuseCode(c, r)
			return err
		}
		if err != nil {
			return err
		}
		if out, err = row.Grant(); err != nil {
			return err
		}
		if r.Refresh != nil {
			if err := putRefresh(c, *r.Refresh, out, now); err != nil {
				return err
			}
		}
		return touchClient(c, r.ClientID, used, r.Now)
	})
	if err == nil {
		err = wrap("redeem code", refused)
	}
	return out, err
}

// refuseCode names the cause, and revokes the grant of a code used a second time.
func refuseCode(c *conn, r storage.RedeemCode) (g storage.Grant, refused, err error) {
	var row column.GrantRow
	var code verdict.Code
	var expires int64
	var used *int64
	var hash []byte
	dest := append(row.Dest(), &hash, &code.RedirectURI, &code.Challenge, &expires, &used, &code.Cut)
	spent := verdict.Spent(r)
	where, args := "code_hash = ? OR code_hash = ?", []any{r.Hash[:], spent[:]}
	if r.GrantID != "" {
		where, args = "id = ?", []any{r.GrantID}
	}
	if err = c.one(dest, readCode+where, args...); err != nil {
		return g, nil, err
	}
	if code.Hash, err = column.Hash(hash); err != nil {
		return g, nil, err
	}
	if code.Grant, err = row.Grant(); err != nil {
		return g, nil, err
	}
	code.ExpiresAt, code.UsedAt = column.Time(expires), column.OptTime(used)
	refused = code.Judge(r)
	if refused == nil {
		return g, nil, errUndecided
	}
	if errors.Is(refused, storage.ErrSpent) {
		code.Grant.RevokedAt, code.Grant.RevokedBy = column.Time(column.Millis(r.Now)), storage.ByReuse
		err = revoke(c, storage.ByReuse, "id = ?4", r.Now, code.Grant.ID)()
	}
	return named(code.Grant, refused), refused, err
}

// errUndecided cannot happen: nobody changes the row between two statements of one
// transaction. It stands for a condition and a verdict that disagree.
var errUndecided = errors.New("refused without a cause")

// named hides the grant from a caller who has not shown that it is theirs.
func named(g storage.Grant, refused error) storage.Grant {
	if errors.Is(refused, storage.ErrNotFound) || errors.Is(refused, storage.ErrMismatch) || errors.Is(refused, storage.ErrResource) {
		return storage.Grant{}
	}
	return g
}

// putRefresh stores a refresh token, which never outlives its grant.
func putRefresh(c *conn, t storage.Refresh, g storage.Grant, now int64) error {
	_, err := c.exec(insertRefresh, t.Hash[:], g.ID, now, column.Millis(t.ExpiresAt), column.Millis(g.ExpiresAt))
	return err
}
