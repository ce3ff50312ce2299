package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

var putAssertedEnd = "INSERT INTO asserted_ends AS e (" + column.AssertedEndColumns + ") VALUES ($1,$2,$3,$4)" +
	column.AssertedEndConflict("greatest")

const (
	// assertedPeopleOf selects the users that an issuer knows by one of the subjects.
	assertedPeopleOf = "SELECT user_id FROM trust_links WHERE issuer = $1 AND kind = 'subject' AND subject = ANY($2)"

	// holdAssertedPeople makes assertions about these users run either before, so that their grants
	// end, or after, so that assertedSince sees the end.
	holdAssertedPeople = "SELECT id FROM users WHERE id IN (" + assertedPeopleOf + ") ORDER BY id FOR NO KEY UPDATE"

	assertedSince = "SELECT EXISTS (SELECT 1 FROM asserted_ends WHERE issuer = $1 AND subject = $2 AND at >= $3)"
)

// EndAsserted implements storage.AssertedEnds.
func (s *Store) EndAsserted(
	ctx context.Context, e storage.AssertedEnd, use storage.Use, now time.Time,
) (ended int, err error) {
	err = s.txCommitted(ctx, "EndAsserted", func(ctx context.Context, q querier) error {
		ended = 0 // if the transaction is repeated
		if err := portable.Spend(portableConn{ctx, q}, use); err != nil {
			return err
		}
		for _, row := range column.AssertedEndValues(e) {
			if _, err := exec(ctx, q, putAssertedEnd, row...); err != nil {
				return err
			}
		}
		people, err := each(ctx, q, pgx.RowTo[string], holdAssertedPeople, e.Issuer, e.Subjects)
		if err != nil {
			return err
		}
		for _, userID := range people {
			end := revoke(storage.ByIssuer, "user_id = $4 AND "+userKey("$4")+" AND trust_id = ANY($5) AND created_at <= $6",
				now, userID, e.TrustIDs, column.Millis(e.Until))
			n, err := exec(ctx, q, end.sql, end.args...)
			if err != nil {
				return err
			}
			ended += int(n)
		}
		return nil
	})
	return ended, err
}

// endedSince returns ErrEnded if the issuer has ended its assertions about the user.
func endedSince(ctx context.Context, q querier, a storage.AssertionGrant) error {
	var ended bool
	err := one(ctx, q, []any{&ended}, assertedSince, a.Person.Issuer, a.Person.Subject, column.Millis(a.IssuedAt))
	if err == nil && ended {
		return storage.ErrEnded
	}
	return err
}
