package sqlite

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	spendAssertion = "INSERT INTO spent (purpose, id, expires_at) VALUES ('" + column.SpentAssertion +
		"', ?, ?) ON CONFLICT DO NOTHING"

	putTrustLink = "INSERT INTO trust_links (" + column.TrustLinkColumns + `) VALUES (?,?,?,?,?,?,?)
ON CONFLICT (issuer, tenant, kind, subject) DO UPDATE SET user_id = excluded.user_id, made_by = excluded.made_by, created_at = excluded.created_at
	WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = trust_links.user_id)`

	putAsserted = "INSERT INTO grants (" + column.GrantColumns + ", " + column.AssertionColumns + `, status_index)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ` + nextIndex + `
WHERE NOT EXISTS (SELECT 1 FROM clients c WHERE c.id = ?2 AND c.deleted_at IS NOT NULL)
RETURNING ` + column.GrantRead

	ofTrustName = "WHERE issuer = ? AND tenant = ? AND kind = ? AND subject = ?"
)

// endedTrust selects whether a trusted issuer entry is disabled or gone, or a cut came after the
// assertion.
var endedTrust = `SELECT EXISTS (SELECT 1 FROM trust_entries WHERE id = ?1 AND disabled_at IS NOT NULL)
	OR NOT (?2 OR EXISTS (SELECT 1 FROM trust_entries WHERE id = ?1)) OR ` + numbered(column.WasCut) + members("?3") + ")"

// prolong extends the grant of an earlier equal assertion until ?8.
var prolong = "UPDATE grants AS g SET auth_time = ?7, expires_at = max(expires_at, ?8), rotated_at = ?9, used_from = coalesce(?10, used_from)," +
	" sweep_at = CASE WHEN sweep_at < ?8 THEN ?11 ELSE sweep_at END WHERE id = (SELECT g.id FROM grants g WHERE " +
	column.SameAsserted(parameters(1)) + " AND " + userKey("?1") + " AND " + clientKey("?2") +
	" AND g.revoked_at IS NULL AND g.paused_at IS NULL AND g.expires_at > ?9 AND NOT " + isCut +
	" LIMIT 1) RETURNING " + column.GrantRead

// GrantAssertion implements storage.AssertionGrants.
func (s *Store) GrantAssertion(ctx context.Context, a storage.AssertionGrant) (storage.AssertionOutcome, error) {
	if err := column.CheckAssertion(a); err != nil {
		return storage.AssertionOutcome{}, err
	}
	var out storage.AssertionOutcome
	err := s.write(ctx, "GrantAssertion", func(c *conn) (err error) {
		if out, err = lastingAsserted(c, a); !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		out = storage.AssertionOutcome{}
		if err := spendAsserted(c, a); err != nil {
			return err
		}
		g := a.Grant
		if a.Person != nil {
			if out.User, out.LinkedBy, err = assertedPerson(c, a); err != nil {
				return err
			}
			g.UserID = out.User.ID
			if err := assertedUnpaused(c, a.Client, g); err != nil {
				return err
			}
		}
		var ended bool
		args := append([]any{g.TrustID, a.Configured}, column.CutsOf(g, a.IssuedAt)...)
		if err := c.one([]any{&ended}, endedTrust, args...); err != nil {
			return err
		}
		if ended {
			return storage.ErrRevoked
		}
		out.Grant, err = putAssertedGrant(c, a, g)
		return err
	})
	if err != nil {
		return storage.AssertionOutcome{}, err
	}
	return out, nil
}

// assertedUnpaused returns ErrPaused if the user has paused the application.
func assertedUnpaused(c *conn, client *storage.Client, g storage.Grant) error {
	id, err := pauseOf(c, client, g)
	if err != nil {
		return err
	}
	paused, err := isPaused(c, id, g)
	if err == nil && paused {
		err = storage.ErrPaused
	}
	return err
}

// assertedPerson finds or creates the user of an assertion, and links them to the issuer.
func assertedPerson(c *conn, a storage.AssertionGrant) (u storage.User, by storage.LinkBy, err error) {
	id, by, err := findPerson(c, *a.Person)
	if errors.Is(err, storage.ErrNotFound) && a.Person.NewUser != nil {
		id, by, err = a.Person.NewUser.ID, storage.LinkedByCreation, createArrival(c, *a.Person.NewUser)
	}
	if err != nil {
		return u, "", err
	}
	var row column.UserRow
	var stopped int64
	err = c.one(append(row.Dest(), &stopped),
		"SELECT "+column.UserColumns+", coalesce(stopped_at, 0) FROM users WHERE id = ?", id)
	if err != nil {
		return u, "", err
	}
	u = row.User()
	switch {
	case u.Disabled:
		return u, "", storage.ErrRevoked
	case stopped >= column.Millis(a.IssuedAt):
		return u, "", storage.ErrStopped
	}
	if err := endedSince(c, a); err != nil {
		return u, "", err
	}
	if by == "" {
		return u, "", nil
	}
	n, err := c.exec(putTrustLink, column.TrustLinkValues(column.Link(*a.Person, id, by, a.Grant.CreatedAt))...)
	if n == 0 { // the issuer's name for the user is already linked
		by = ""
	}
	return u, by, err
}

func findPerson(c *conn, p storage.AssertedPerson) (id string, by storage.LinkBy, err error) {
	for _, f := range column.PersonFinders(p, members) {
		ids, err := each(c, func(row scanner) (id string, err error) {
			err = row.Scan(&id)
			return id, err
		}, numbered(f.SQL), f.Args...)
		switch {
		case err != nil:
			return "", "", err
		case len(ids) == 1:
			return ids[0], f.By, nil
		}
	}
	return "", "", storage.ErrNotFound
}

// numbered changes parameters to the numbered form of SQLite.
func numbered(sql string) string { return strings.ReplaceAll(sql, "$", "?") }

func members(parameter string) string { return "(SELECT value FROM json_each(" + parameter + "))" }

// putAssertedGrant stores a grant, or extends an equal one.
func putAssertedGrant(c *conn, a storage.AssertionGrant, g storage.Grant) (storage.Grant, error) {
	var row column.GrantRow
	now := column.Millis(g.CreatedAt)
	err := c.one(row.Dest(), prolong, append(column.GrantKey(g), column.Millis(g.AuthTime),
		column.Millis(g.ExpiresAt), now, column.Text(a.From), column.Millis(g.ExpiresAt.Add(column.SweptAfter)))...)
	if errors.Is(err, storage.ErrNotFound) {
		row = column.GrantRow{}
		err = c.one(row.Dest(), putAsserted, append(column.GrantValues(g), column.AssertionValues(g, a.From)...)...)
		if errors.Is(err, storage.ErrNotFound) {
			return g, storage.ErrRevoked // the client
		}
	}
	if err != nil {
		return g, err
	}
	if g, err = row.Grant(); err != nil {
		return g, err
	}
	return g, assertedClient(c, a)
}

// assertedClient records the use of a client, and stores the client with its first grant.
func assertedClient(c *conn, a storage.AssertionGrant) error {
	var used *int64
	err := c.one([]any{&used}, "SELECT last_used_at FROM clients WHERE id = ?", a.Grant.ClientID)
	switch {
	case err == nil:
		return touchClient(c, a.Grant.ClientID, used, a.Grant.CreatedAt)
	case !errors.Is(err, storage.ErrNotFound) || a.Client == nil:
		return ignore(err, storage.ErrNotFound)
	}
	cl := *a.Client
	cl.LastUsedAt = a.Grant.CreatedAt
	_, err = c.exec(column.InsertClient, column.ClientValues(cl)...)
	return err
}

// LinkTrust implements storage.TrustLinks.
func (s *Store) LinkTrust(ctx context.Context, l storage.TrustLink) error {
	return s.write(ctx, "LinkTrust", func(c *conn) error {
		if err := c.one([]any{new(int)}, "SELECT 1 FROM users WHERE id = ?", l.UserID); err != nil {
			return err
		}
		if n, err := c.exec(putTrustLink, column.TrustLinkValues(l)...); err != nil || n > 0 {
			return err
		}
		err := c.one([]any{new(int)}, "SELECT 1 FROM trust_links "+ofTrustName+" AND user_id = ?",
			l.Issuer, l.Tenant, string(l.Kind), l.Subject, l.UserID)
		if errors.Is(err, storage.ErrNotFound) {
			return storage.ErrExists
		}
		return err
	})
}

// UnlinkTrust implements storage.TrustLinks.
func (s *Store) UnlinkTrust(
	ctx context.Context, n storage.TrustName, now time.Time,
) (out storage.TrustLink, err error) {
	err = s.write(ctx, "UnlinkTrust", func(c *conn) error {
		var row column.TrustLinkRow
		err := c.one(row.Dest(), "DELETE FROM trust_links "+ofTrustName+" RETURNING "+column.TrustLinkColumns,
			n.Issuer, n.Tenant, string(n.Kind), n.Subject)
		if err != nil {
			return err
		}
		out = row.Link()
		return revoke(c, storage.ByUnlinked, "user_id = ?4 AND "+userKey("?4")+" AND trust_id IS NOT NULL", now,
			out.UserID)()
	})
	return out, err
}
