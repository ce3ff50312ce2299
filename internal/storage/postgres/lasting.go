package postgres

import (
	"context"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// prolongLasting uses up an assertion and extends its grant, in one statement and so atomically. It
// only locks the grant, which already exists. A concurrent end has either marked the grant, which
// the condition sees on the current row, or is a row that cuts it. An assertion cannot be stored
// twice: then the whole statement fails.
var (
	prolongLasting         = lasting(false)
	prolongLastingOfPerson = lasting(true)
)

const lastingValues = 9 // precede the values of column.Lasting

func lasting(person bool) string {
	user, where, lock := "", "", " LIMIT 1 FOR NO KEY UPDATE OF g"
	if person {
		user, where = ", "+of("u", column.UserColumns), " JOIN users u ON u.id = p.user_id"
	} else {
		lock += " SKIP LOCKED" // runs of one workload do not wait for each other
	}
	return `WITH prolonged AS (
	UPDATE grants AS g SET auth_time = $1, expires_at = greatest(expires_at, $2::bigint), rotated_at = $3, used_from = coalesce($4, used_from),
		sweep_at = CASE WHEN sweep_at < $2::bigint THEN $5::bigint ELSE sweep_at END
	WHERE id = (SELECT g.id FROM ` + column.Lasting{
		Parameter: parameters(1 + lastingValues), Person: person, Plain: "u.id !~ '[^A-Za-z0-9_-]'",
		UserKey: userKey, ClientKey: clientKey, IsCut: isCut,
	}.From() + " AND ($9::boolean OR EXISTS (SELECT 1 FROM clients c WHERE c.id = g.client_id)) AND NOT EXISTS (" +
		"SELECT 1 FROM spent WHERE purpose = '" + column.SpentAssertion + "' AND id = $6::text)" + lock + `)
	RETURNING ` + column.GrantRead + `),
spend AS (INSERT INTO spent (purpose, id, expires_at)
	SELECT '` + column.SpentAssertion + `', $6::text, $7::bigint FROM prolonged WHERE $6::text <> ''),
used AS (UPDATE clients AS c SET last_used_at = $3 FROM prolonged p
	WHERE c.id = p.client_id AND c.deleted_at IS NULL AND (c.last_used_at IS NULL OR c.last_used_at <= $8))
SELECT p.*` + user + " FROM prolonged p" + where
}

// of qualifies columns with the name of their table.
func of(table, columns string) string {
	return table + "." + strings.ReplaceAll(columns, ", ", ", "+table+".")
}

// lastingAsserted uses up an assertion and extends its grant. It returns ErrNotFound, and changes
// nothing, if there is no such grant or a condition fails.
func (s *Store) lastingAsserted(
	ctx context.Context, a storage.AssertionGrant,
) (out storage.AssertionOutcome, err error) {
	values := append(column.Prolongation(a), a.SpendID, column.Millis(a.SpentUntil),
		column.UsedBefore(a.Grant.CreatedAt), a.Client == nil)
	values = append(values, column.LastingValues(a)...)
	err = s.do(ctx, "grant assertion", func(ctx context.Context, q querier) error {
		var grant column.GrantRow
		var user column.UserRow
		prolong, dest := prolongLasting, grant.Dest()
		if a.Person != nil {
			prolong, dest = prolongLastingOfPerson, append(dest, user.Dest()...)
		}
		err := one(ctx, q, dest, prolong, values...)
		switch {
		case state(err) == uniqueViolation: // by a concurrent call
			return storage.ErrSpent
		case err != nil:
			return err
		}
		if a.Person != nil {
			out.User = user.User()
		}
		out.Grant, err = grant.Grant()
		return err
	})
	return out, err
}
