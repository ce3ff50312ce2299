package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	spendAssertion = "INSERT INTO spent (purpose, id, expires_at) VALUES ('" + column.SpentAssertion +
		"', $1, $2) ON CONFLICT DO NOTHING"

	putTrustLink = "INSERT INTO trust_links AS l (" + column.TrustLinkColumns + `) VALUES ($1,$2,$3,$4,$5,$6,$7)
ON CONFLICT (issuer, tenant, kind, subject) DO UPDATE SET user_id = excluded.user_id, made_by = excluded.made_by, created_at = excluded.created_at
	WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = l.user_id)`

	// holdAsserted locks the account against deletion and disabling until the grant is stored, and
	// serializes the assertions about one user.
	holdAsserted = "SELECT " + column.UserColumns + ", coalesce(stopped_at, 0) FROM users WHERE id = $1 FOR NO KEY UPDATE"

	putAsserted = "INSERT INTO grants (" + column.GrantColumns + ", " + column.AssertionColumns + `)
SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::bigint, $7::bigint, $8::bigint, $9::bigint,
	$10::bytea, $11::text, $12::text, $13::bigint, $14::bigint, $15::bigint, $16::text, $17::text, $18::text
WHERE NOT EXISTS (SELECT 1 FROM clients c WHERE c.id = $2 AND c.deleted_at IS NOT NULL)
RETURNING ` + column.GrantRead

	ofTrustName = "WHERE issuer = $1 AND tenant = $2 AND kind = $3 AND subject = $4"
)

// prolong extends the grant of an earlier equal assertion until $8. It skips a grant that is being
// extended at the moment; the result is then a second grant.
var prolong = "UPDATE grants AS g SET auth_time = $7, expires_at = greatest(expires_at, $8::bigint), rotated_at = $9, used_from = coalesce($10, used_from)," +
	" sweep_at = CASE WHEN sweep_at < $8::bigint THEN $11::bigint ELSE sweep_at END WHERE id = (SELECT g.id FROM grants g WHERE " +
	column.SameAsserted(parameters(1)) + " AND " + userKey("$1") + " AND " + clientKey("$2") +
	" AND g.revoked_at IS NULL AND g.paused_at IS NULL AND g.expires_at > $9::bigint AND NOT " + isCut +
	" LIMIT 1 FOR NO KEY UPDATE OF g SKIP LOCKED) RETURNING " + column.GrantRead

// GrantAssertion implements storage.AssertionGrants.
func (s *Store) GrantAssertion(
	ctx context.Context, a storage.AssertionGrant,
) (out storage.AssertionOutcome, err error) {
	if err := column.CheckAssertion(a); err != nil {
		return storage.AssertionOutcome{}, err
	}
	err = s.Hooks.Run(ctx, "GrantAssertion", func(ctx context.Context) (err error) {
		out, err = s.lastingAsserted(ctx, a)
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		return s.txCommitted(ctx, "grant assertion", func(ctx context.Context, q querier) (err error) {
			out, err = grantAsserted(ctx, q, a)
			return err
		})
	})
	if err != nil {
		return storage.AssertionOutcome{}, err
	}
	return out, nil
}

func grantAsserted(
	ctx context.Context, q querier, a storage.AssertionGrant,
) (out storage.AssertionOutcome, err error) {
	if a.SpendID != "" {
		err := changed(storage.ErrSpent)(exec(ctx, q, spendAssertion, a.SpendID, column.Millis(a.SpentUntil)))
		if err != nil {
			return out, err
		}
	}
	g := a.Grant
	if a.Person != nil {
		if out.User, out.LinkedBy, err = assertedPerson(ctx, q, a); err != nil {
			return out, err
		}
		g.UserID = out.User.ID
		turn, err := turnOf(ctx, q, a.Client, g)
		if err != nil {
			return out, err
		}
		if err := turn.take(ctx, q, g); err != nil {
			return out, err
		}
	}
	if out.Grant, err = putAssertedGrant(ctx, q, a, g); err != nil {
		return out, err
	}
	return out, trustStands(ctx, q, a, g)
}

// assertedPerson finds or creates the user of an assertion, and links them to the issuer.
func assertedPerson(
	ctx context.Context, q querier, a storage.AssertionGrant,
) (u storage.User, by storage.LinkBy, err error) {
	id, by, err := findPerson(ctx, q, *a.Person)
	if errors.Is(err, storage.ErrNotFound) && a.Person.NewUser != nil {
		id, by, err = a.Person.NewUser.ID, storage.LinkedByCreation, createAsserted(ctx, q, *a.Person)
	}
	if err != nil {
		return u, "", err
	}
	var row column.UserRow
	var stopped int64
	err = one(ctx, q, append(row.Dest(), &stopped), holdAsserted, id)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errAgain // deleted concurrently
	}
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
	if err := endedSince(ctx, q, a); err != nil {
		return u, "", err
	}
	switch {
	case by == "":
		return u, "", nil
	case by == storage.LinkedByMail:
		err = stillUnlinked(ctx, q, id, *a.Person)
	}
	if err != nil {
		return u, "", err
	}
	n, err := exec(ctx, q, putTrustLink,
		column.TrustLinkValues(column.Link(*a.Person, id, by, a.Grant.CreatedAt))...)
	if n == 0 { // the issuer's name for the user is already linked
		by = ""
	}
	return u, by, err
}

// stillUnlinked returns errAgain if the user with a mail address was linked before their row was
// locked.
func stillUnlinked(ctx context.Context, q querier, userID string, p storage.AssertedPerson) error {
	var unlinked int
	err := one(ctx, q, []any{&unlinked}, column.StillUnlinked(members), userID, column.List(p.Connectors))
	if err == nil && unlinked == 0 {
		return errAgain
	}
	return err
}

func findPerson(
	ctx context.Context, q querier, p storage.AssertedPerson,
) (id string, by storage.LinkBy, err error) {
	for _, f := range column.PersonFinders(p, members) {
		ids, err := each(ctx, q, pgx.RowTo[string], f.SQL, f.Args...)
		switch {
		case err != nil:
			return "", "", err
		case len(ids) == 1:
			return ids[0], f.By, nil
		}
	}
	return "", "", storage.ErrNotFound
}

func members(parameter string) string {
	return "(SELECT jsonb_array_elements_text(" + parameter + "::jsonb))"
}

// createAsserted creates the new user, under another name if theirs is taken.
func createAsserted(ctx context.Context, q querier, p storage.AssertedPerson) error {
	u := *p.NewUser
	for _, name := range []string{u.Name, column.OtherName(u)} {
		u.Name = name
		if n, err := putUser(ctx, q, u); err != nil || n > 0 {
			return err
		}
	}
	var known bool
	err := one(ctx, q, []any{&known},
		"SELECT EXISTS (SELECT 1 FROM trust_links WHERE user_id = $1 AND issuer = $2 AND tenant = $3 AND subject = $4)",
		u.ID, p.Issuer, p.Tenant, p.Subject)
	switch {
	case err != nil:
		return err
	case known:
		return errAgain // created by a concurrent assertion
	}
	return storage.ErrExists
}

// putAssertedGrant stores a grant, or extends an equal one.
func putAssertedGrant(
	ctx context.Context, q querier, a storage.AssertionGrant, g storage.Grant,
) (storage.Grant, error) {
	var row column.GrantRow
	now := column.Millis(g.CreatedAt)
	err := one(ctx, q, row.Dest(), prolong, append(column.GrantKey(g), column.Millis(g.AuthTime),
		column.Millis(g.ExpiresAt), now, column.Text(a.From), column.Millis(g.ExpiresAt.Add(column.SweptAfter)))...)
	if errors.Is(err, pgx.ErrNoRows) {
		row = column.GrantRow{}
		err = one(ctx, q, row.Dest(), putAsserted,
			append(column.GrantValues(g), column.AssertionValues(g, a.From)...)...)
		if errors.Is(err, pgx.ErrNoRows) {
			return g, storage.ErrRevoked // the client
		}
	}
	if err != nil {
		return g, err
	}
	if g, err = row.Grant(); err != nil {
		return g, err
	}
	return g, assertedClient(ctx, q, a)
}

var endedTrust = `SELECT EXISTS (SELECT 1 FROM trust_entries WHERE id = $1 AND disabled_at IS NOT NULL)
	OR NOT ($2::boolean OR EXISTS (SELECT 1 FROM trust_entries WHERE id = $1)) OR ` + column.WasCut + members("$3") + ")"

// trustStands returns ErrRevoked if the trusted issuer entry is disabled or gone, or a cut came
// after the assertion. It runs once the grant has its number. An end that it does not see is stored
// later, and its cut after that, so the grant is cut.
func trustStands(ctx context.Context, q querier, a storage.AssertionGrant, g storage.Grant) error {
	var ended bool
	args := append([]any{g.TrustID, a.Configured}, column.CutsOf(g, a.IssuedAt)...)
	if err := one(ctx, q, []any{&ended}, endedTrust, args...); err != nil {
		return err
	}
	if ended {
		return storage.ErrRevoked
	}
	return nil
}

// touchAsserted records the use of a client, at most once per column.UsedEvery.
const touchAsserted = `UPDATE clients SET last_used_at = $2
WHERE id = $1 AND deleted_at IS NULL AND (last_used_at IS NULL OR last_used_at <= $3)`

// assertedClient records the use of a client, and stores the client with its first grant.
func assertedClient(ctx context.Context, q querier, a storage.AssertionGrant) error {
	now := a.Grant.CreatedAt
	if a.Client != nil {
		cl := *a.Client
		cl.LastUsedAt = now
		n, err := exec(ctx, q, column.InsertClient, column.ClientValues(cl)...)
		if err != nil || n > 0 {
			return err
		}
	}
	_, err := exec(ctx, q, touchAsserted, a.Grant.ClientID, column.Millis(now),
		column.Millis(now.Add(-column.UsedEvery)))
	return err
}

// LinkTrust implements storage.TrustLinks.
func (s *Store) LinkTrust(ctx context.Context, l storage.TrustLink) error {
	return s.held(ctx, "LinkTrust", holdUser, l.UserID, func(ctx context.Context, q querier) error {
		if n, err := exec(ctx, q, putTrustLink, column.TrustLinkValues(l)...); err != nil || n > 0 {
			return err
		}
		err := one(ctx, q, []any{new(int)}, "SELECT 1 FROM trust_links "+ofTrustName+" AND user_id = $5",
			l.Issuer, l.Tenant, string(l.Kind), l.Subject, l.UserID)
		if errors.Is(err, pgx.ErrNoRows) {
			return storage.ErrExists
		}
		return err
	})
}

// UnlinkTrust implements storage.TrustLinks. It locks the account, so that an assertion about the
// user comes either before it, so that its grant ends, or after it.
func (s *Store) UnlinkTrust(
	ctx context.Context, n storage.TrustName, now time.Time,
) (out storage.TrustLink, err error) {
	name := []any{n.Issuer, n.Tenant, string(n.Kind), n.Subject}
	err = s.txCommitted(ctx, "UnlinkTrust", func(ctx context.Context, q querier) error {
		_, err := exec(ctx, q, "SELECT 1 FROM users WHERE id IN (SELECT user_id FROM trust_links "+ofTrustName+
			") FOR NO KEY UPDATE", name...)
		if err != nil {
			return err
		}
		var row column.TrustLinkRow
		err = one(ctx, q, row.Dest(),
			"DELETE FROM trust_links "+ofTrustName+" RETURNING "+column.TrustLinkColumns, name...)
		if err != nil {
			return err
		}
		out = row.Link()
		return all(ctx, q,
			revoke(storage.ByUnlinked, "user_id = $4 AND "+userKey("$4")+" AND trust_id IS NOT NULL", now, out.UserID))
	})
	return out, err
}
