package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

var putAssertedEnd = "INSERT INTO asserted_ends AS e (" + column.AssertedEndColumns + ") VALUES (?,?,?,?)" +
	column.AssertedEndConflict("max")

var endAsserted = "UPDATE grants AS g SET revoked_at = ?1, sweep_at = min(sweep_at, ?2), revoked_by = ?3" +
	" WHERE revoked_at IS NULL AND NOT " + column.IsCut + " AND user_id = ?4 AND " + userKey("?4") +
	" AND trust_id IN (SELECT value FROM json_each(?5)) AND created_at <= ?6"

const (
	assertedPeopleOf = `SELECT DISTINCT user_id FROM trust_links
WHERE issuer = ? AND kind = 'subject' AND subject IN (SELECT value FROM json_each(?))`

	assertedSince = "SELECT EXISTS (SELECT 1 FROM asserted_ends WHERE issuer = ? AND subject = ? AND at >= ?)"
)

// EndAsserted implements storage.AssertedEnds.
func (s *Store) EndAsserted(
	ctx context.Context, e storage.AssertedEnd, use storage.Use, now time.Time,
) (ended int, err error) {
	err = s.write(ctx, "EndAsserted", func(c *conn) error {
		ended = 0 // if the transaction is repeated
		if err := portable.Spend(portableConn{c}, use); err != nil {
			return err
		}
		for _, row := range column.AssertedEndValues(e) {
			if _, err := c.exec(putAssertedEnd, row...); err != nil {
				return err
			}
		}
		people, err := each(c, func(row scanner) (id string, err error) {
			err = row.Scan(&id)
			return id, err
		}, assertedPeopleOf, e.Issuer, column.List(e.Subjects))
		if err != nil {
			return err
		}
		for _, userID := range people {
			n, err := c.exec(endAsserted, column.Millis(now), column.Millis(now.Add(column.RevokedFor)),
				string(storage.ByIssuer), userID, column.List(e.TrustIDs), column.Millis(e.Until))
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
func endedSince(c *conn, a storage.AssertionGrant) error {
	var ended bool
	err := c.one([]any{&ended}, assertedSince, a.Person.Issuer, a.Person.Subject, column.Millis(a.IssuedAt))
	if err == nil && ended {
		return storage.ErrEnded
	}
	return err
}
