package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/verdict"
)

const selectSessions = "SELECT " + column.SessionColumns + " FROM sessions s WHERE s.user_id = ? AND s.expires_at > ? AND NOT " +
	column.IsSignedOut + " ORDER BY s.created_at DESC, s.hash"

// Sessions implements storage.UserSessions.
func (s *Store) Sessions(
	ctx context.Context, userID string, now time.Time, limit int,
) (out []storage.Session, err error) {
	err = s.read(ctx, "Sessions", func(c *conn) error {
		out, err = each(c, column.ReadSession, selectSessions+" LIMIT ?", userID, column.Millis(now), max(limit, 0))
		return err
	})
	return out, err
}

// EndSignIn implements storage.UserSessions.
func (s *Store) EndSignIn(ctx context.Context, id string, e storage.SessionEnding) error {
	n, err := s.endSignIns(ctx, "EndSignIn", e, func(se storage.Session) bool { return se.ID() == id })
	if err == nil && n == 0 {
		return storage.ErrNotFound
	}
	return err
}

// EndOtherSignIns implements storage.UserSessions.
func (s *Store) EndOtherSignIns(ctx context.Context, keep storage.Hash, e storage.SessionEnding) (int, error) {
	return s.endSignIns(ctx, "EndOtherSignIns", e, func(se storage.Session) bool { return se.Hash != keep })
}

// endSignIns ends the sessions of a user that end selects.
func (s *Store) endSignIns(
	ctx context.Context, verb string, e storage.SessionEnding, end func(storage.Session) bool,
) (ended int, err error) {
	err = s.write(ctx, verb, func(c *conn) error {
		ended = 0
		all, err := each(c, column.ReadSession, selectSessions, e.UserID, column.Millis(e.Now))
		if err != nil {
			return err
		}
		for _, se := range all {
			if !end(se) {
				continue
			}
			if err := verdict.MayEnd(e, se); err != nil {
				return err
			}
			if err := endSession(c, se.Hash, e.Now); err != nil {
				return err
			}
			ended++
		}
		return nil
	})
	return ended, err
}

// SeeSession implements storage.UserSessions.
func (s *Store) SeeSession(ctx context.Context, h storage.Hash, at time.Time) error {
	return s.write(ctx, "SeeSession", func(c *conn) error {
		_, err := c.exec("UPDATE sessions SET seen_at = ?1 WHERE hash = ?2 AND coalesce(seen_at, created_at) <= ?1"+
			column.Before(storage.SeenEvery), column.Millis(at), h[:])
		return err
	})
}
