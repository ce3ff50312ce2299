package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

// homeSession selects the provider session that a session of the user $2 depends on: $6 if it is
// given. In an account that began at a provider, it must be a session there. Sign-in sessions are
// preferred to linked ones, which live until the next is linked.
const homeSession = `SELECT p.id FROM upstreams p WHERE p.user_id = $2 AND p.ended_at IS NULL AND ($6::text IS NULL OR p.id = $6)
	AND (EXISTS (` + column.HomeIdentity + `$2 AND h.connector = p.connector AND h.subject = p.subject)
		OR $6 IS NOT NULL AND NOT EXISTS (` + column.HomeIdentity + `$2))
	ORDER BY p.linked, p.created_at DESC, p.id DESC LIMIT 1`

// putSession locks the account against a change of its password or state, and the provider session
// against its end. The locks last until the new session is stored, so that such a change can end
// it.
const putSession = `WITH account AS (SELECT id FROM users
	WHERE id = $2 AND NOT disabled AND ($12::text = '' OR password_hash = $12)
		AND ($13::bigint IS NULL OR coalesce(stopped_at, 0) < $13) FOR SHARE),
home_session AS (` + homeSession + ` FOR KEY SHARE OF p)
INSERT INTO sessions (` + column.SessionInsert + `)
SELECT $1::bytea, id, $3::bigint, $4::bigint, $5::bigint, (SELECT id FROM home_session), $7::text, $8::bigint, $9::text, $10::text, $11::bigint
FROM account WHERE EXISTS (SELECT 1 FROM home_session) OR $6 IS NULL AND NOT EXISTS (` + column.HomeIdentity + "$2)"

// wouldRest selects the session that a session of the user $1 would depend on, and whether the
// account needs one.
const wouldRest = `SELECT (SELECT p.id FROM upstreams p WHERE p.user_id = $1 AND p.ended_at IS NULL
	AND EXISTS (` + column.HomeIdentity + `$1 AND h.connector = p.connector AND h.subject = p.subject)
	ORDER BY p.linked, p.created_at DESC, p.id DESC LIMIT 1), EXISTS (` + column.HomeIdentity + "$1)"

const withoutHome = column.HomeIdentity + "$1 AND NOT o.disabled AND ($2::text = '' OR o.password_hash = $2)" +
	" AND ($3::bigint IS NULL OR coalesce(o.stopped_at, 0) < $3)"

// PutSession implements storage.Sessions.
func (s *Store) PutSession(ctx context.Context, se storage.Session, by storage.SignInStart) error {
	if by.RecoveryCode == nil {
		return s.do(ctx, "PutSession", func(ctx context.Context, q querier) error { return begun(ctx, q, se, by) })
	}
	return s.tx(ctx, "PutSession", func(ctx context.Context, q querier) error {
		if err := begun(ctx, q, se, by); err != nil {
			return err
		}
		return portable.SpendCode(portableConn{ctx, q}, se.UserID, *by.RecoveryCode, se.CreatedAt)
	})
}

func begun(ctx context.Context, q querier, se storage.Session, by storage.SignInStart) error {
	n, err := exec(ctx, q, putSession, append(column.SessionValues(se), by.PasswordHash, column.OptMillis(by.At))...)
	if err != nil || n > 0 {
		return err
	}
	err = one(ctx, q, []any{new(int)}, withoutHome, se.UserID, by.PasswordHash, column.OptMillis(by.At))
	if err != nil || se.UpstreamID != "" {
		return cmp.Or(err, storage.ErrNotFound)
	}
	return storage.ErrHomeProvider
}

// HomeSession implements storage.Sessions.
func (s *Store) HomeSession(ctx context.Context, userID string) (id string, err error) {
	err = s.do(ctx, "HomeSession", func(ctx context.Context, q querier) error {
		var found *string
		var began bool
		err := one(ctx, q, []any{&found, &began}, wouldRest, userID)
		switch {
		case err != nil:
			return err
		case found != nil:
			id = *found
		case began:
			return storage.ErrHomeProvider
		}
		return nil
	})
	return id, err
}

const visit = `SELECT u.id, u.name, u.password_hash, u.admin, u.disabled, u.created_at, u.last_login_at, u.mail, u.locale, u.role,
	` + column.SessionColumns + `,
	consented.scopes, consented.known
FROM sessions s JOIN users u ON u.id = s.user_id,
LATERAL (SELECT array_agg(scope ORDER BY created_at, scope) FILTER (WHERE resource = $3) AS scopes, count(*) > 0 AS known FROM consents c
	WHERE user_id = u.id AND client_id = $2 AND (place = $5 AND material = $6 OR place = '' AND $7) AND NOT ` + column.IsForgotten + `) consented
WHERE s.hash = $1 AND s.expires_at > $4 AND NOT u.disabled AND NOT ` + column.IsSignedOut

// Visit implements storage.Sessions.
func (s *Store) Visit(ctx context.Context, k storage.VisitKey) (out storage.Visit, err error) {
	err = s.do(ctx, "Visit", func(ctx context.Context, q querier) error {
		var u column.UserRow
		var se column.SessionRow
		var scopes []string
		var known bool
		err := one(ctx, q, append(append(u.Dest(), se.Dest()...), &scopes, &known), visit,
			k.Session[:], k.ClientID, k.Resource, column.Millis(k.Now), k.Place, k.Material[:], k.Unplaced)
		if err != nil {
			return err
		}
		out = storage.Visit{User: u.User(), Known: known, Consented: column.Consented(scopes)}
		out.Session, err = se.Session()
		return err
	})
	return out, err
}

// EndSession implements storage.Sessions. A running approval locks its session. So once the session
// is deleted, every grant that it made is visible.
func (s *Store) EndSession(ctx context.Context, h storage.Hash, now time.Time) error {
	return s.tx(ctx, "EndSession", func(ctx context.Context, q querier) error { return endSession(ctx, q, h, now) })
}

func endSession(ctx context.Context, q querier, h storage.Hash, now time.Time) error {
	var upstream *string
	err := one(ctx, q, []any{&upstream}, "DELETE FROM sessions WHERE hash = $1 RETURNING upstream_id", h[:])
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return settle(ctx, q)
	case err == nil && upstream == nil:
		return nil
	case err != nil:
		return err
	}
	alone := "id = (SELECT id FROM upstreams u WHERE u.id = $2" + unused + ")"
	ended, err := endUpstreams(ctx, q, alone, []any{column.Millis(now), *upstream}, column.SignedOut, now)
	if err != nil {
		return err
	}
	return all(ctx, q, handOver(ended, now)...)
}
