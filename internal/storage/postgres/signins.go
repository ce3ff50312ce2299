package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/verdict"
)

const selectSessions = "SELECT " + column.SessionColumns + " FROM sessions s WHERE s.user_id = $1 AND s.expires_at > $2 AND NOT " +
	column.IsSignedOut

// Sessions implements storage.UserSessions.
func (s *Store) Sessions(
	ctx context.Context, userID string, now time.Time, limit int,
) (out []storage.Session, err error) {
	err = s.do(ctx, "Sessions", func(ctx context.Context, q querier) error {
		out, err = portable.Each(portableConn{ctx, q}, column.ReadSession,
			selectSessions+" ORDER BY s.created_at DESC, s.hash LIMIT $3", userID, column.Millis(now), max(limit, 0))
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

// endSignIns ends the sessions of a user that end selects. It locks them in order, so that two
// concurrent calls cannot deadlock.
func (s *Store) endSignIns(
	ctx context.Context, verb string, e storage.SessionEnding, end func(storage.Session) bool,
) (ended int, err error) {
	err = s.tx(ctx, verb, func(ctx context.Context, q querier) error {
		all, err := portable.Each(portableConn{ctx, q}, column.ReadSession, selectSessions+" ORDER BY s.hash",
			e.UserID, column.Millis(e.Now))
		if err != nil {
			return err
		}
		chosen := slices.DeleteFunc(all, func(se storage.Session) bool { return !end(se) })
		for _, se := range chosen {
			if err := verdict.MayEnd(e, se); err != nil {
				return err
			}
			if err := endSession(ctx, q, se.Hash, e.Now); err != nil {
				return err
			}
		}
		ended = len(chosen)
		if ended == 0 {
			return settle(ctx, q)
		}
		return nil
	})
	return ended, err
}

// SeeSession implements storage.UserSessions.
func (s *Store) SeeSession(ctx context.Context, h storage.Hash, at time.Time) error {
	return s.do(ctx, "SeeSession", func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, "UPDATE sessions SET seen_at = $1 WHERE hash = $2 AND coalesce(seen_at, created_at) <= $1::bigint"+
			column.Before(storage.SeenEvery), column.Millis(at), h[:])
		return err
	})
}
