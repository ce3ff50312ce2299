package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	// makeKey stores the grant of a key if its user has room, and under the conditions of an
	// approval. It counts and stores in one statement.
	makeKey = "INSERT INTO grants (" + column.GrantColumns + `,
	code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at, upstream_id, given_agent, given_from, for_program, status_index)
SELECT ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, '', '', ?9, ?9, ?10, s.upstream_id, s.agent, s.address, 1, ` + nextIndex + `
FROM sessions s JOIN users u ON u.id = s.user_id
WHERE s.hash = ?1 AND s.expires_at > ?2 AND u.id = ?5 AND NOT u.disabled AND NOT ` + column.IsSignedOut + `
	AND (SELECT count(*) FROM grants g WHERE g.user_id = ?5 AND ` + column.LiveKey + ` AND g.expires_at > ?2 AND NOT ` + isCut + `) < ?13`

	mayMakeKey = `SELECT EXISTS (SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
	WHERE s.hash = ?1 AND s.expires_at > ?2 AND u.id = ?3 AND NOT u.disabled AND NOT ` + column.IsSignedOut + ")"

	listKeys = selectConnections + " AND g.for_program ORDER BY g.created_at DESC, g.id DESC"

	// ofKey is the condition that the grant g belongs to the key of client ?1.
	ofKey  = "for_program AND client_id = ?1 AND "
	useKey = "UPDATE grants AS g SET rotated_at = ?2, used_from = coalesce(?3, used_from) WHERE " + ofKey
)

// MakeProgramKey implements storage.ProgramKeys.
func (s *Store) MakeProgramKey(ctx context.Context, k storage.ProgramKey) error {
	if err := column.CheckProgramKey(k); err != nil {
		return err
	}
	now := column.Millis(k.Grant.CreatedAt)
	return s.write(ctx, "MakeProgramKey", func(c *conn) error {
		err := changed(storage.ErrExists)(c.exec(column.InsertClient, column.ClientValues(k.Client)...))
		if err != nil {
			return err
		}
		args := append([]any{k.Session[:], now}, column.GrantValues(k.Grant)...)
		n, err := c.exec(makeKey, append(args, column.NoCode(), storage.MaxProgramKeys)...)
		if err != nil || n > 0 {
			return err
		}
		var may bool
		switch err := c.one([]any{&may}, mayMakeKey, k.Session[:], now, k.Grant.UserID); {
		case err != nil:
			return err
		case !may:
			return storage.ErrNotFound
		}
		return storage.ErrFull
	})
}

// ProgramKeys implements storage.ProgramKeys.
func (s *Store) ProgramKeys(
	ctx context.Context, userID string, now time.Time,
) (out []storage.Connection, err error) {
	err = s.read(ctx, "ProgramKeys", func(c *conn) error {
		out, err = each(c, column.ReadConnection, listKeys, userID, column.Millis(now))
		return err
	})
	return out, err
}

// UseProgramKey implements storage.ProgramKeys.
func (s *Store) UseProgramKey(ctx context.Context, u storage.ProgramKeyUse) (g storage.Grant, err error) {
	err = s.write(ctx, "UseProgramKey", func(c *conn) error {
		var row column.GrantRow
		var used *int64
		err := c.one(append(row.Dest(), &used), useKey+clientKey("?1")+` AND revoked_at IS NULL AND paused_at IS NULL
			AND expires_at > ?2 AND NOT `+isCut+" RETURNING "+column.GrantRead+
			", (SELECT last_used_at FROM clients c WHERE c.id = client_id)",
			u.ClientID, column.Millis(u.Now), column.Text(u.From))
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return refuseKey(c, u)
		case err != nil:
			return err
		}
		if g, err = row.Grant(); err != nil {
			return err
		}
		return touchClient(c, u.ClientID, used, u.Now)
	})
	return g, err
}

// refuseKey returns why a key is not usable.
func refuseKey(c *conn, u storage.ProgramKeyUse) error {
	var row column.GrantRow
	var cut bool
	err := c.one(append(row.Dest(), &cut), "SELECT "+column.GrantRead+", "+isCut+" FROM grants g WHERE "+ofKey+
		clientKey("?1"), u.ClientID)
	if err != nil {
		return err
	}
	g, err := row.Grant()
	if err != nil {
		return err
	}
	if err = column.UnusableKey(g, cut, u.Now); err == nil {
		err = errUndecided
	}
	return err
}
