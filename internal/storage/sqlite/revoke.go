package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/verdict"
)

// RevokeGrant implements storage.Revocations.
func (s *Store) RevokeGrant(ctx context.Context, grantID string, by storage.RevokedBy, now time.Time) error {
	return s.write(ctx, "RevokeGrant", func(c *conn) error {
		return revoke(c, by, "id = ?4", now, grantID)()
	})
}

// WithdrawGrant implements storage.Revocations.
func (s *Store) WithdrawGrant(ctx context.Context, grantID string, by storage.RevokedBy, now time.Time) error {
	return s.write(ctx, "WithdrawGrant", func(c *conn) error {
		var userID, clientID, resource string
		err := c.one([]any{&userID, &clientID, &resource},
			"SELECT user_id, client_id, resource FROM grants WHERE id = ?", grantID)
		switch {
		case err != nil:
			return ignore(err, storage.ErrNotFound)
		case userID == "":
			return revoke(c, by, "id = ?4", now, grantID)()
		}
		app, err := application(c, userID, resource, clientID)
		if err != nil {
			return err
		}
		return all(
			endPause(c, userID, resource, app),
			forgetApplication(c, userID, resource, app),
			revoke(c, by, ofApplication, now, userID, resource, column.List(app.Clients)),
		)
	})
}

// revokedGrants also checks the grant of each node in the range, because one row ends a grant and
// all its nodes. Nodes have their own lists, with as many as were added within a token's lifetime.
var revokedGrants = `SELECT status_index FROM grants WHERE revoked_at IS NOT NULL AND status_index >= ?1 AND status_index < ?2
UNION SELECT status_index FROM grants WHERE paused_at IS NOT NULL AND status_index >= ?1 AND status_index < ?2
UNION SELECT n.seq + ?3 FROM nodes n WHERE n.seq >= ?1 - ?3 AND n.seq < ?2 - ?3 AND (` + nodeIsCut + `
	OR NOT EXISTS (SELECT 1 FROM grants g WHERE g.id = n.grant_id AND g.revoked_at IS NULL AND g.paused_at IS NULL AND NOT ` + isCut +
	" AND NOT " + column.IsHeld("g.client_id") + `))
UNION SELECT g.status_index FROM grants g WHERE EXISTS (SELECT 1 FROM application_holds) AND g.status_index >= ?1 AND g.status_index < ?2
	AND ` + column.IsHeld("g.client_id") + `
UNION ` + column.Unmarked("g.status_index >= ?1 AND g.status_index < ?2") + `
ORDER BY status_index`

// RevokedGrants implements storage.Lookups.
func (s *Store) RevokedGrants(ctx context.Context, from, to int64) (out []int64, err error) {
	err = s.read(ctx, "RevokedGrants", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (i int64, err error) {
			err = row.Scan(&i)
			return i, err
		}, revokedGrants, from, to, storage.FirstNodeIndex)
		return err
	})
	return out, err
}

// RevokeRefresh implements storage.Revocations.
func (s *Store) RevokeRefresh(
	ctx context.Context, token storage.PresentedRefresh, clientID string, now time.Time,
) (g storage.Grant, err error) {
	err = s.write(ctx, "RevokeRefresh", func(c *conn) error {
		t, err := presented(c, token)
		if err != nil {
			return err
		}
		grant, err := t.Of()
		if err != nil {
			return err
		}
		if grant.ClientID != clientID {
			return storage.ErrMismatch
		}
		g = grant
		return revoke(c, storage.ByClient, "id = ?4", now, g.ID)()
	})
	return g, err
}

// presented returns a refresh token with its grant.
func presented(c *conn, token storage.PresentedRefresh) (verdict.Token, error) {
	switch t := token.(type) {
	case storage.NumberedRefresh:
		n, _, err := loadNumbered(c, t.GrantID)
		return verdict.Presented{NumberedRefresh: t, Numbered: n}, err
	case storage.HashedRefresh:
		return loadHashed(c, t)
	}
	return nil, storage.ErrNotFound
}

// DenyToken implements storage.Revocations.
func (s *Store) DenyToken(ctx context.Context, tokenID string, expires time.Time) error {
	return s.write(ctx, "DenyToken", func(c *conn) error {
		_, err := c.exec(`INSERT INTO denied_tokens (id, expires_at) VALUES (?, ?)
			ON CONFLICT (id) DO UPDATE SET expires_at = max(expires_at, excluded.expires_at)`, tokenID, column.Millis(expires))
		return err
	})
}

var tokenActive = `SELECT NOT EXISTS (SELECT 1 FROM denied_tokens WHERE id = ?1 AND expires_at > ?4)
	AND NOT EXISTS (SELECT 1 FROM clients WHERE id = ?3 AND deleted_at IS NOT NULL) AND NOT ` + column.IsHeld("?3") + `
	AND (?2 = '' OR EXISTS (SELECT 1 FROM grants g WHERE g.id = ?2 AND g.revoked_at IS NULL AND g.paused_at IS NULL AND g.expires_at > ?4 AND NOT ` + isCut + `)
		OR ?6 AND NOT EXISTS (SELECT 1 FROM grants WHERE id = ?2) AND EXISTS (SELECT 1 FROM users WHERE id = ?7 AND NOT disabled))
	AND (?5 = '' OR EXISTS (SELECT 1 FROM nodes n WHERE n.id = ?5 AND n.grant_id = ?2 AND n.expires_at > ?4 AND NOT ` + nodeIsCut + `)
		OR ?6 AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = ?5)),
	(SELECT upstream_id FROM grants WHERE id = ?2), (SELECT scopes FROM grants WHERE id = ?2)`

// TokenActive implements storage.Lookups.
func (s *Store) TokenActive(ctx context.Context, t storage.TokenKey) (out storage.TokenState, err error) {
	err = s.read(ctx, "TokenActive", func(c *conn) error {
		var row column.TokenRow
		err := c.one(row.Dest(), tokenActive, t.TokenID, t.GrantID, t.ClientID, column.Millis(t.Now), t.NodeID,
			t.Expired, t.UserID)
		if err == nil {
			out, err = row.State()
		}
		return err
	})
	return out, err
}

// RefreshToken implements storage.Lookups.
func (s *Store) RefreshToken(
	ctx context.Context, token storage.PresentedRefresh, now time.Time,
) (g storage.Grant, expires time.Time, err error) {
	err = s.read(ctx, "RefreshToken", func(c *conn) error {
		t, err := presented(c, token)
		if err != nil {
			return err
		}
		if expires, err = t.Live(now); err == nil {
			g, err = t.Of()
		}
		if err != nil {
			return err
		}
		var held bool
		err = c.one([]any{&held}, "SELECT "+column.IsHeld("?1"), g.ClientID)
		if err == nil && held {
			err = storage.ErrNotFound
		}
		return err
	})
	return g, expires, err
}
