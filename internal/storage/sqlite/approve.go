package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	// nextIndex is the status index of a new grant: ahead of the walks and of every cut.
	nextIndex = `(SELECT 1 + max(coalesce((SELECT max(status_index) FROM grants), 0), codes, newer, (SELECT coalesce(max(upto), 0) FROM cuts), (SELECT coalesce(max(upto), 0) FROM application_cuts)) FROM grant_walks)`

	// approve stores a grant if the session is live and the client was not deleted. The grant
	// depends on the same upstream session as the browser session. Its index is ahead of the walks
	// and of every cut, even if the earlier grants were swept. It returns the last use of the
	// client, 0 if it was never used, NULL if the client has no row.
	approve = "INSERT INTO grants (" + column.GrantColumns + `,
	code_hash, code_redirect, code_challenge, code_expires_at, sweep_at, upstream_id, given_agent, given_from, methods, status_index)
SELECT ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?10, s.upstream_id, s.agent, s.address, s.methods,
	` + nextIndex + `
FROM sessions s JOIN users u ON u.id = s.user_id
WHERE s.hash = ?1 AND s.expires_at > ?2 AND u.id = ?5 AND NOT u.disabled AND NOT ` + column.IsSignedOut + `
	AND NOT EXISTS (SELECT 1 FROM clients c WHERE c.id = ?4 AND c.deleted_at IS NOT NULL)`
	approveTail = `
RETURNING (SELECT coalesce(last_used_at, 0) FROM clients c WHERE c.id = client_id)`

	// notReplaced is the condition that the client has not changed since it was shown.
	notReplaced = `
	AND NOT EXISTS (SELECT 1 FROM clients c WHERE c.id = ?4
		AND (c.name, c.redirect_uris, c.grant_types, c.auth_method, c.jwks, c.jwks_uri, c.metadata) IS NOT (?,?,?,?,?,?,?))`
	// notForgotten is the condition that the consent that the approval relies on is remembered.
	notForgotten = `
	AND NOT EXISTS (SELECT 1 FROM json_each(?) r WHERE NOT EXISTS (SELECT 1 FROM consents c
		WHERE user_id = ?5 AND client_id = ?4 AND resource = ?6 AND scope = r.value AND (place = ? AND material = ? OR place = '' AND ?)
		AND NOT ` + column.IsForgotten + "))"

	addConsents = `INSERT INTO consents (user_id, client_id, resource, scope, created_at, place, material)
SELECT ?1, ?2, ?3, value, ?4, ?6, ?7 FROM json_each(?5) WHERE true
ON CONFLICT (user_id, client_id, resource, place, scope) DO UPDATE SET material = excluded.material, created_at = excluded.created_at
	WHERE material <> excluded.material`

	// takeBack forgets consents that the user was asked for again and did not grant.
	takeBack = `DELETE FROM consents WHERE user_id = ? AND client_id = ? AND resource = ? AND (place = ? OR place = '')
	AND scope IN (SELECT value FROM json_each(?))`

	unapproved = `SELECT EXISTS (SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
	WHERE s.hash = ?1 AND s.expires_at > ?2 AND u.id = ?3 AND NOT u.disabled AND NOT ` + column.IsSignedOut + `),
	EXISTS (SELECT 1 FROM clients WHERE id = ?4 AND deleted_at IS NOT NULL)`
)

// Approve implements storage.Approvals.
func (s *Store) Approve(ctx context.Context, a storage.Approval) error {
	return s.write(ctx, "Approve", func(c *conn) error {
		if err := storeApproval(c, a); err != nil {
			return err
		}
		return rebind(c, a)
	})
}

// Approved implements storage.Approvals.
func (s *Store) Approved(ctx context.Context, a storage.Approval) (waits bool, err error) {
	err = s.read(ctx, "Approved", func(c *conn) error {
		code, err := storedCode(c, "id = ?", a.Grant.ID)
		waits = err == nil && code.Waits(a)
		return ignore(err, storage.ErrNotFound)
	})
	return waits, err
}

// Deny implements storage.Approvals.
func (s *Store) Deny(ctx context.Context, grantID string, until time.Time) error {
	return s.write(ctx, "Deny", func(c *conn) error {
		var approved bool
		err := c.one([]any{&approved}, "SELECT EXISTS (SELECT 1 FROM grants WHERE id = ?)", grantID)
		switch {
		case err != nil:
			return err
		case approved:
			return storage.ErrExists
		}
		_, err = c.exec(spendPage, storage.SpentPage, grantID, column.Millis(until))
		return err
	})
}

const spendPage = "INSERT INTO spent (purpose, id, expires_at) VALUES (?,?,?) ON CONFLICT DO NOTHING"

func storeApproval(c *conn, a storage.Approval) error {
	if a.Client != nil && a.Client.ID != a.Grant.ClientID {
		return fmt.Errorf("client %q with a grant for %q", a.Client.ID, a.Grant.ClientID)
	}
	pauseID, err := pauseOf(c, a.Client, a.Grant)
	if err != nil {
		return err
	}
	sql, args := approval(a, pauseID)
	var used *int64
	err = c.one([]any{&used}, sql, args...)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return refuseApproval(c, a, pauseID)
	case err != nil:
		return err
	case a.Remembered == nil:
		err = asked(c, a)
	}
	if err != nil {
		return err
	}
	return approvedClient(c, a, used)
}

// asked records the answer to a page. A denied page returns an error.
func asked(c *conn, a storage.Approval) error {
	if !a.PageUntil.IsZero() {
		err := changed(storage.ErrExists)(
			c.exec(spendPage, storage.SpentPage, a.Grant.ID, column.Millis(a.PageUntil)))
		if err != nil {
			return err
		}
	}
	return consent(c, a)
}

// consent remembers the scopes that the user has just granted, and of the requested ones no others.
func consent(c *conn, a storage.Approval) error {
	of := []any{a.Grant.UserID, a.Grant.ClientID, a.Grant.Resource}
	if len(a.Declined) > 0 {
		if _, err := c.exec(takeBack, append(of, a.Place, column.List(a.Declined))...); err != nil {
			return err
		}
	}
	_, err := c.exec(addConsents, append(of, column.Millis(a.Now), column.List(column.Consents(a)), a.Place,
		a.Material[:])...)
	return err
}

// approval returns the statement for an approval, with its arguments.
func approval(a storage.Approval, pauseID string) (sql string, args []any) {
	sql = approve
	args = append(append(make([]any, 0, 29), a.Session[:], column.Millis(a.Now)), column.GrantValues(a.Grant)...)
	args = append(args, a.Code.Hash[:], a.Code.RedirectURI, a.Code.Challenge, column.Millis(a.Code.ExpiresAt))
	if a.Client != nil && !a.Client.Fleeting() {
		sql, args = sql+notReplaced,
			append(args, a.Client.Name, column.List(a.Client.RedirectURIs), column.List(a.Client.GrantTypes),
				a.Client.AuthMethod, column.Bytes(a.Client.JWKS), a.Client.JWKSURI, column.Bytes(a.Client.Metadata))
	}
	if a.Remembered != nil {
		sql, args = sql+notForgotten,
			append(args, column.List(column.Remembered(a)), a.Place, a.Material[:], a.Unplaced)
	}
	return sql + notPaused + approveTail, append(args, heldBack(pauseID, a.Grant)...)
}

// refuseApproval returns why no grant was stored.
func refuseApproval(c *conn, a storage.Approval, pauseID string) error {
	var live, gone bool
	err := c.one([]any{&live, &gone}, unapproved, a.Session[:], column.Millis(a.Now), a.Grant.UserID, a.Grant.ClientID)
	switch {
	case err != nil:
		return err
	case !live:
		return storage.ErrNotFound
	case gone:
		return storage.ErrRevoked
	}
	paused, err := isPaused(c, pauseID, a.Grant)
	switch {
	case err != nil:
		return err
	case paused:
		return storage.ErrPaused
	}
	return storage.ErrChanged
}

// approvedClient stores a client with its first grant, and records its use.
func approvedClient(c *conn, a storage.Approval, used *int64) error {
	switch {
	case used != nil:
		return touchClient(c, a.Grant.ClientID, used, a.Now)
	case a.Client == nil:
		return nil
	}
	cl := *a.Client
	cl.LastUsedAt = a.Now
	_, err := c.exec(column.InsertClient, column.ClientValues(cl)...)
	return err
}

// touchClient records the use of a client whose last use is used, at most once per
// column.UsedEvery.
func touchClient(c *conn, id string, used *int64, now time.Time) error {
	if used != nil && *used > column.Millis(now.Add(-column.UsedEvery)) {
		return nil
	}
	_, err := c.exec("UPDATE clients SET last_used_at = ? WHERE id = ? AND deleted_at IS NULL", column.Millis(now), id)
	return err
}

func ignore(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}
