package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

const (
	liveSession = `SELECT u.id, s.upstream_id FROM sessions s JOIN users u ON u.id = s.user_id
WHERE s.hash = ? AND s.expires_at > ? AND u.id = ? AND NOT u.disabled AND NOT ` + column.IsSignedOut

	addConsents = `INSERT INTO consents (user_id, client_id, resource, scope, created_at, place, material)
SELECT ?1, ?2, ?3, value, ?4, ?6, ?7 FROM json_each(?5) WHERE true
ON CONFLICT (user_id, client_id, resource, place, scope) DO UPDATE SET material = excluded.material, created_at = excluded.created_at
	WHERE material <> excluded.material`

	forgottenConsent = `SELECT count(*) FROM json_each(?4) r WHERE NOT EXISTS (SELECT 1 FROM consents c
	WHERE user_id = ?1 AND client_id = ?2 AND resource = ?3 AND scope = r.value AND (place = ?5 AND material = ?6 OR place = '' AND ?7)
	AND NOT ` + column.IsForgotten + ")"

	// A grant is ahead of the walks and of every cut, also when those before it were swept away.
	insertGrant = "INSERT INTO grants (" + column.GrantColumns + `,
	code_hash, code_redirect, code_challenge, code_expires_at, sweep_at, upstream_id, status_index)
VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?, (SELECT 1 + max(coalesce((SELECT max(status_index) FROM grants), 0), codes, newer,
	(SELECT coalesce(max(upto), 0) FROM cuts)) FROM grant_walks))`
)

// Approve implements storage.Approvals.
func (s *Store) Approve(ctx context.Context, a storage.Approval) error {
	if a.Client != nil && a.Client.ID != a.Grant.ClientID {
		return fmt.Errorf("sqlite: approve: client %q with a grant for %q", a.Client.ID, a.Grant.ClientID)
	}
	return s.write(ctx, "approve", func(c *conn) error {
		var user string
		var upstream *string // what the session rests on, the grant rests on
		err := c.one([]any{&user, &upstream}, liveSession, a.Session[:], column.Millis(a.Now), a.Grant.UserID)
		if err != nil {
			return err
		}
		if err := approvedClient(c, a); err != nil {
			return err
		}
		return all(
			func() error { return stillRemembered(c, a) },
			run(c, addConsents, user, a.Grant.ClientID, a.Grant.Resource, column.Millis(a.Now), column.List(column.Consents(a)), a.Place, a.Material[:]),
			run(c, insertGrant, append(column.GrantValues(a.Grant), a.Code.Hash[:], a.Code.RedirectURI, a.Code.Challenge,
				column.Millis(a.Code.ExpiresAt), column.Millis(a.Grant.ExpiresAt), upstream)...),
		)
	})
}

// stillRemembered refuses an approval when what it rests on was forgotten meanwhile.
func stillRemembered(c *conn, a storage.Approval) error {
	var forgotten int
	err := c.one([]any{&forgotten}, forgottenConsent, a.Grant.UserID, a.Grant.ClientID, a.Grant.Resource,
		column.List(column.Remembered(a)), a.Place, a.Material[:], a.Unplaced)
	if err == nil && forgotten > 0 {
		return storage.ErrChanged
	}
	return err
}

// approvedClient refuses a client that was deleted, or is no longer the one that was shown,
// stores a new one and notes its use.
func approvedClient(c *conn, a storage.Approval) error {
	var r column.ClientRow
	var deleted *int64
	err := c.one(append(r.Dest(), &deleted), "SELECT "+column.ClientColumns+", deleted_at FROM clients WHERE id = ?", a.Grant.ClientID)
	switch {
	case err == nil && deleted != nil:
		return storage.ErrRevoked
	case err == nil:
		stored, err := r.Client()
		if err == nil && a.Client != nil && !a.Client.Fleeting() && stored.Material() != a.Client.Material() {
			err = storage.ErrChanged
		}
		if err != nil {
			return err
		}
		return touchClient(c, a.Grant.ClientID, column.OptMillis(stored.LastUsedAt), a.Now)
	case !errors.Is(err, storage.ErrNotFound) || a.Client == nil:
		return ignore(err, storage.ErrNotFound)
	}
	cl := *a.Client
	cl.LastUsedAt = a.Now
	_, err = c.exec(insertClient, column.ClientValues(cl)...)
	return err
}

// touchClient notes the use of a client whose last use is used, no more often than
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
