package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

const (
	// holdPerson and holdSession lock the user and session that make a key. So the keys of one user
	// are counted one after the other, and a verb that ends a user's sessions and then revokes the
	// grants misses none.
	holdPerson  = "SELECT id FROM users WHERE id = $1 AND NOT disabled FOR UPDATE"
	holdSession = `SELECT s.user_id FROM sessions s WHERE s.hash = $1 AND s.user_id = $2 AND s.expires_at > $3
	AND NOT ` + column.IsSignedOut + " FOR KEY SHARE OF s"

	// makeKey stores the grant of a key if its user has room.
	makeKey = "INSERT INTO grants (" + column.GrantColumns + `,
	code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at, upstream_id, given_agent, given_from, for_program)
SELECT $2::text, $3::text, $4::text, $5::text, $6::text, $7::bigint, $8::bigint, $9::bigint, $10::bigint,
	$11::bytea, '', '', $8::bigint, $8::bigint, $9::bigint, s.upstream_id, s.agent, s.address, true
FROM sessions s WHERE s.hash = $1
	AND (SELECT count(*) FROM grants g WHERE g.user_id = $4 AND ` + column.LiveKey + ` AND g.expires_at > $8::bigint AND NOT ` + isCut + `) < $12::bigint`

	listKeys = selectConnections + " AND g.for_program ORDER BY g.created_at DESC, g.id DESC"

	// ofKey is the condition that the grant g belongs to the key of client $1.
	ofKey = "g.for_program AND g.client_id = $1 AND hashtext(g.client_id) = hashtext($1)"

	// useKey changes no indexed column, like a rotation.
	useKey = `WITH used AS (UPDATE grants AS g SET rotated_at = $2, used_from = coalesce($3, used_from)
	WHERE ` + ofKey + ` AND revoked_at IS NULL AND paused_at IS NULL AND expires_at > $2::bigint AND NOT ` + isCut + `
	RETURNING ` + column.GrantRead + `),
touched AS (UPDATE clients SET last_used_at = $2
	WHERE id = $1 AND deleted_at IS NULL AND (last_used_at IS NULL OR last_used_at <= $4) AND EXISTS (SELECT 1 FROM used))
SELECT ` + column.GrantRead + " FROM used"

	readKey = "SELECT " + column.GrantRead + ", " + isCut + " FROM grants g WHERE " + ofKey
)

// MakeProgramKey implements storage.ProgramKeys.
func (s *Store) MakeProgramKey(ctx context.Context, k storage.ProgramKey) error {
	if err := column.CheckProgramKey(k); err != nil {
		return err
	}
	return s.tx(ctx, "MakeProgramKey", func(ctx context.Context, q querier) error {
		var held string
		if err := one(ctx, q, []any{&held}, holdPerson, k.Grant.UserID); err != nil {
			return err
		}
		err := one(ctx, q, []any{&held}, holdSession, k.Session[:], k.Grant.UserID, column.Millis(k.Grant.CreatedAt))
		if err != nil {
			return err
		}
		err = changed(storage.ErrExists)(exec(ctx, q, column.InsertClient, column.ClientValues(k.Client)...))
		if err != nil {
			return err
		}
		args := append([]any{k.Session[:]}, column.GrantValues(k.Grant)...)
		return changed(storage.ErrFull)(exec(ctx, q, makeKey, append(args, column.NoCode(), storage.MaxProgramKeys)...))
	})
}

// ProgramKeys implements storage.ProgramKeys.
func (s *Store) ProgramKeys(
	ctx context.Context, userID string, now time.Time,
) (out []storage.Connection, err error) {
	err = s.do(ctx, "ProgramKeys", func(ctx context.Context, q querier) error {
		out, err = portable.Each(portableConn{ctx, q}, column.ReadConnection, listKeys, userID, column.Millis(now))
		return err
	})
	return out, err
}

// UseProgramKey implements storage.ProgramKeys.
func (s *Store) UseProgramKey(ctx context.Context, u storage.ProgramKeyUse) (g storage.Grant, err error) {
	err = s.do(ctx, "UseProgramKey", func(ctx context.Context, q querier) error {
		var row column.GrantRow
		err := one(ctx, q, row.Dest(), useKey, u.ClientID, column.Millis(u.Now), column.Text(u.From),
			column.Millis(u.Now.Add(-column.UsedEvery)))
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return refuseKey(ctx, q, u)
		case err != nil:
			return err
		}
		g, err = row.Grant()
		return err
	})
	return g, err
}

// refuseKey returns why a key is not usable.
func refuseKey(ctx context.Context, q querier, u storage.ProgramKeyUse) error {
	var row column.GrantRow
	var cut bool
	if err := one(ctx, q, append(row.Dest(), &cut), readKey, u.ClientID); err != nil {
		return err
	}
	g, err := row.Grant()
	if err != nil {
		return err
	}
	if err = column.UnusableKey(g, cut, u.Now); err == nil {
		err = errAgain // it was resumed concurrently
	}
	return err
}
