package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

const (
	idle   = 24 * time.Hour   // a session is forgotten after this time without use
	live   = 30 * time.Minute // mcpresource.SessionBinder
	coarse = time.Minute      // resolution of the last use: within it, a request only reads
)

// Sessions returns a binder for all replicas, for sessions that any replica can continue. Those are
// sessions of the Go SDK without GetSessionID, or with a router that finds their replica.
func (s *Shared) Sessions() mcpresource.SessionBinder { return &sessions{s} }

type sessions struct{ *Shared }

// person returns the key of a user of this server.
func (s *sessions) person(name string) []byte { return append(s.server[:], name...) }

// Open implements mcpresource.SessionBinder.
func (s *sessions) Open(ctx context.Context, sessionID string, b mcpresource.Binding) error {
	s.sweep(ctx)
	_, err := s.db.ExecContext(ctx, `INSERT INTO mcpresource_sessions (id, person, client, pending, shows_links, used_at)
		VALUES ($1, $2, $3, $4, $5, `+now+`)
		ON CONFLICT (id) DO UPDATE SET person = excluded.person, client = excluded.client,
			pending = excluded.pending, shows_links = excluded.shows_links, used_at = excluded.used_at`,
		s.key([]byte(sessionID)), s.person(b.Person), []byte(b.Client), b.Pending, b.ShowsLinks)
	return failed("opening a session", err)
}

// claim takes an expired session, or one whose binding differs only in pending.
const claim = `INSERT INTO mcpresource_sessions AS s (id, person, client, pending, shows_links, used_at)
VALUES ($1, $2, $3, $4, $6, ` + now + `)
ON CONFLICT (id) DO UPDATE SET
	person = CASE WHEN s.used_at < excluded.used_at - $5::bigint THEN excluded.person ELSE s.person END,
	client = CASE WHEN s.used_at < excluded.used_at - $5::bigint THEN excluded.client ELSE s.client END,
	shows_links = CASE WHEN s.used_at < excluded.used_at - $5::bigint THEN excluded.shows_links ELSE s.shows_links END,
	pending = CASE WHEN s.used_at < excluded.used_at - $5::bigint
		OR s.pending AND s.person = excluded.person AND s.client = excluded.client
			AND s.shows_links = excluded.shows_links
		THEN excluded.pending ELSE s.pending END,
	used_at = CASE WHEN s.used_at < excluded.used_at - $5::bigint
		OR s.pending AND s.person = excluded.person AND s.client = excluded.client
			AND s.shows_links = excluded.shows_links
		THEN excluded.used_at ELSE s.used_at END
RETURNING person, client, pending, shows_links`

// Claim implements mcpresource.SessionBinder.
func (s *sessions) Claim(
	ctx context.Context, sessionID string, b mcpresource.Binding,
) (mcpresource.Binding, error) {
	s.sweep(ctx)
	holds, err := scan(s.db.QueryRowContext(ctx, claim,
		s.key([]byte(sessionID)), s.person(b.Person), []byte(b.Client), b.Pending, idle.Microseconds(), b.ShowsLinks))
	return holds, failed("claiming a session", err)
}

// Owner implements mcpresource.SessionBinder.
func (s *sessions) Owner(ctx context.Context, sessionID string) (mcpresource.Binding, bool, error) {
	key := s.key([]byte(sessionID))
	var rested int64
	b, err := scan(s.db.QueryRowContext(ctx, `SELECT person, client, pending, shows_links, `+now+` - used_at
		FROM mcpresource_sessions WHERE id = $1`, key), &rested)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && rested > idle.Microseconds():
		return mcpresource.Binding{}, false, nil
	case err == nil && rested > coarse.Microseconds():
		_, err = s.db.ExecContext(ctx, `UPDATE mcpresource_sessions SET used_at = `+now+`
			WHERE id = $1 AND used_at < `+now+` - $2::bigint`, key, coarse.Microseconds())
	}
	return b, err == nil, failed("looking for a session", err)
}

// Live implements mcpresource.SessionBinder.
func (s *sessions) Live(ctx context.Context, person string) (n int, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT count(*) FROM mcpresource_sessions
		WHERE person = $1 AND used_at >= `+now+` - $2::bigint`, s.person(person), live.Microseconds()).Scan(&n)
	return n, failed("counting sessions", err)
}

// Release implements mcpresource.SessionBinder.
func (s *sessions) Release(ctx context.Context, sessionID string, b mcpresource.Binding) error {
	_, err := s.db.ExecContext(ctx, `DELETE FROM mcpresource_sessions
		WHERE id = $1 AND person = $2 AND client = $3 AND pending = $4 AND shows_links = $5`,
		s.key([]byte(sessionID)), s.person(b.Person), []byte(b.Client), b.Pending, b.ShowsLinks)
	return failed("forgetting a session", err)
}

func scan(row *sql.Row, more ...any) (b mcpresource.Binding, err error) {
	var person, client []byte
	if err = row.Scan(append([]any{&person, &client, &b.Pending, &b.ShowsLinks}, more...)...); err != nil {
		return mcpresource.Binding{}, err
	}
	b.Person, b.Client = string(person[sha256.Size:]), string(client)
	return b, nil
}

func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mcpresource/postgres: %s: %w", doing, err)
}
