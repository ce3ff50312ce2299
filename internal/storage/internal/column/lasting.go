package column

import (
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// A lasting grant is a live grant that matches an assertion. It is the common case, which a backend
// handles in few statements. Other statements handle all other cases and find the reason.

// Lasting builds the conditions for a lasting grant g. Its arguments are LastingValues.
type Lasting struct {
	Parameter func(i int) string
	Person    bool   // the assertion is about a user, u
	Plain     string // true if the id of u needs no escapes within JSON text
	UserKey   func(expression string) string
	ClientKey func(expression string) string
	IsCut     string
}

// commonLasting is the number of LastingValues that are not about a user.
const commonLasting = 13

// From returns the SQL after SELECT ... FROM.
func (l Lasting) From() string {
	p := func(i int) string { return l.Parameter(commonLasting + i) }
	user, from, where, ofUser := "''", "grants g WHERE ", "", ""
	if l.Person {
		user = "u.id"
		from = "users u CROSS JOIN grants g WHERE u.id = (SELECT l.user_id FROM trust_links l WHERE l.issuer = " + p(0) +
			" AND l.tenant = " + p(1) + " AND l.kind = 'subject' AND l.subject = " + p(2) + ") AND "
		where = " AND (" + p(3) + " = '' OR u.id = " + p(3) + " OR u.name_key = " + p(4) + ") AND NOT u.disabled" +
			" AND coalesce(u.stopped_at, 0) < " + p(5) + " AND " + l.Plain +
			" AND NOT EXISTS (SELECT 1 FROM asserted_ends WHERE issuer = " + p(0) + " AND subject = " + p(2) +
			" AND at >= " + p(5) + ")"
		for i := range 4 {
			ofUser += `, '["' || u.id || ` + p(6+i)
		}
	}
	same := SameAsserted(func(i int) string {
		if i == 0 {
			return user
		}
		return l.Parameter(i - 1)
	})
	trust, cuts := l.Parameter(3), make([]string, 5)
	for i := range cuts {
		cuts[i] = l.Parameter(8 + i)
	}
	return from + same + " AND " + l.UserKey(user) + " AND " + l.ClientKey(l.Parameter(0)) +
		" AND g.revoked_at IS NULL AND g.paused_at IS NULL AND g.expires_at > " + l.Parameter(5) + " AND NOT " + l.IsCut +
		" AND NOT EXISTS (SELECT 1 FROM trust_entries WHERE id = " + trust + " AND disabled_at IS NOT NULL)" +
		" AND (" + l.Parameter(6) + " OR EXISTS (SELECT 1 FROM trust_entries WHERE id = " + trust + "))" +
		" AND NOT EXISTS (SELECT 1 FROM spent WHERE purpose = '" + cutAssertions + "' AND expires_at >= " + l.Parameter(7) +
		" AND id IN (" + strings.Join(cuts, ", ") + ofUser + "))" + where
}

// LastingValues returns the values of a Lasting for an assertion.
func LastingValues(a storage.AssertionGrant) []any {
	g := a.Grant
	cut := func(client, resource string) string {
		return cutKey(storage.Selection{ClientID: client, Resource: resource})
	}
	all, ofClient := cut("", ""), cut(g.ClientID, "")
	ofResource, ofBoth := cut("", g.Resource), cut(g.ClientID, g.Resource)
	out := []any{
		g.ClientID, g.Resource, List(g.Scopes), g.TrustID, OptText(AssertedValue(g.Asserted)), Millis(g.CreatedAt),
		a.Configured, Millis(a.IssuedAt.Add(cutAssertionsFor)),
		cutKey(storage.Selection{Trust: g.TrustID}), all, ofClient, ofResource, ofBoth,
	}
	if p := a.Person; p != nil {
		out = append(out, p.Issuer, p.Tenant, p.Subject, p.AudienceSubject, NameKeyOf(p.AudienceSubject),
			Millis(a.IssuedAt), behindUser(all), behindUser(ofClient), behindUser(ofResource), behindUser(ofBoth))
	}
	return out
}

// behindUser returns the part of a cut's key that follows the id of its user.
func behindUser(key string) string { return strings.TrimPrefix(key, `["`) }

// Prolonged returns the grant that was found, with its expiry extended.
func Prolonged(found, asserted storage.Grant) storage.Grant {
	found.AuthTime = Time(Millis(asserted.AuthTime))
	if end := Time(Millis(asserted.ExpiresAt)); end.After(found.ExpiresAt) {
		found.ExpiresAt = end
	}
	return found
}

// Prolongation returns the values that extend a grant: auth_time, expires_at, rotated_at, used_from
// and sweep_at.
func Prolongation(a storage.AssertionGrant) []any {
	g := a.Grant
	return []any{
		Millis(g.AuthTime), Millis(g.ExpiresAt), Millis(g.CreatedAt), Text(a.From), Millis(g.ExpiresAt.Add(SweptAfter)),
	}
}

// UsedBefore returns the time that a client's last use must precede for another use to be recorded.
func UsedBefore(now time.Time) int64 { return Millis(now.Add(-UsedEvery)) }
