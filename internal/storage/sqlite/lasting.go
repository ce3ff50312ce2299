package sqlite

import (
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// findLasting finds the grant that an assertion extends, with the last use of its client.
var (
	findLasting         = "SELECT " + lastingColumns + lastingGrant(false)
	findLastingOfPerson = "SELECT " + lastingColumns + ", " + of("u", column.UserColumns) + lastingGrant(true)

	lastingColumns = of("g", column.GrantRead) +
		", EXISTS (SELECT 1 FROM clients c WHERE c.id = g.client_id), (SELECT last_used_at FROM clients c WHERE c.id = g.client_id)"
)

const prolongLasting = "UPDATE grants SET auth_time = ?1, expires_at = max(expires_at, ?2), rotated_at = ?3, used_from = coalesce(?4, used_from)," +
	" sweep_at = CASE WHEN sweep_at < ?2 THEN ?5 ELSE sweep_at END WHERE id = ?6"

func lastingGrant(person bool) string {
	return " FROM " + column.Lasting{
		Parameter: parameters(1), Person: person, Plain: "u.id NOT GLOB '*[^A-Za-z0-9_-]*'",
		UserKey:   userKey,
		ClientKey: clientKey, IsCut: isCut,
	}.From() + " LIMIT 1"
}

// of qualifies columns with the name of their table.
func of(table, columns string) string {
	return table + "." + strings.ReplaceAll(columns, ", ", ", "+table+".")
}

// lastingAsserted uses up an assertion and extends its grant. It returns ErrNotFound, and changes
// nothing, if there is no such grant or a condition fails.
func lastingAsserted(c *conn, a storage.AssertionGrant) (out storage.AssertionOutcome, err error) {
	var grant column.GrantRow
	var user column.UserRow
	var known bool
	var used *int64
	find, dest := findLasting, append(grant.Dest(), &known, &used)
	if a.Person != nil {
		find, dest = findLastingOfPerson, append(dest, user.Dest()...)
	}
	if err := c.one(dest, find, column.LastingValues(a)...); err != nil {
		return out, err
	}
	if !known && a.Client != nil {
		return out, storage.ErrNotFound
	}
	if out.Grant, err = grant.Grant(); err != nil {
		return out, err
	}
	if a.Person != nil {
		out.User = user.User()
	}
	if err := spendAsserted(c, a); err != nil {
		return out, err
	}
	if _, err := c.exec(prolongLasting, append(column.Prolongation(a), out.Grant.ID)...); err != nil {
		return out, err
	}
	out.Grant = column.Prolonged(out.Grant, a.Grant)
	if !known {
		return out, nil
	}
	return out, touchClient(c, a.Grant.ClientID, used, a.Grant.CreatedAt)
}

func spendAsserted(c *conn, a storage.AssertionGrant) error {
	if a.SpendID == "" {
		return nil
	}
	return changed(storage.ErrSpent)(c.exec(spendAssertion, a.SpendID, column.Millis(a.SpentUntil)))
}
