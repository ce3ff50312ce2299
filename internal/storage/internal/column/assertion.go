package column

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// SpentAssertion is the purpose, in Once, of assertions that created a grant (AS-188).
const SpentAssertion = "assertion grant"

// SweptAfter is how long a grant made by an assertion is kept after its expiry. So a grant that
// another assertion extends rarely moves within the index of expiry times.
const SweptAfter = time.Hour

// The columns of grants by assertions, and of links to issuers.
const (
	AssertionColumns = "code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at, trust_id, asserted, used_from"
	TrustLinkColumns = "issuer, tenant, kind, subject, user_id, made_by, created_at"
)

// SameAsserted is the condition that the grant g equals the grant of another assertion. Its values
// are those returned by GrantKey.
func SameAsserted(parameter func(i int) string) string {
	return "g.user_id = " + parameter(0) + " AND g.client_id = " + parameter(1) + " AND g.resource = " + parameter(2) +
		" AND g.scopes = " + parameter(3) + " AND g.trust_id = " + parameter(4) +
		" AND coalesce(g.asserted, '') = " + parameter(5)
}

// GrantKey returns the values of SameAsserted.
func GrantKey(g storage.Grant) []any {
	return []any{g.UserID, g.ClientID, g.Resource, List(g.Scopes), g.TrustID, OptText(AssertedValue(g.Asserted))}
}

// AssertionValues returns the values of AssertionColumns for a grant that is stored now.
func AssertionValues(g storage.Grant, from string) []any {
	now := Millis(g.CreatedAt)
	return []any{
		NoCode(), "", "", now, now, Millis(g.ExpiresAt.Add(SweptAfter)), g.TrustID, AssertedValue(g.Asserted),
		Text(from),
	}
}

// AssertedValue returns the column value of an assertion's statements, NULL for nil.
func AssertedValue(a *storage.Asserted) *string {
	if a == nil {
		return nil
	}
	b, err := json.Marshal(a)
	if err != nil {
		panic("column: " + err.Error()) // CheckAssertion has checked it
	}
	return Text(string(b))
}

func parseAsserted(text string) (*storage.Asserted, error) {
	var a storage.Asserted
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return nil, fmt.Errorf("the stored assertion must be JSON: %w", err)
	}
	return &a, nil
}

// CheckAssertion refuses a grant without an entry, without an end, or with values that cannot be
// stored.
func CheckAssertion(a storage.AssertionGrant) error {
	g := a.Grant
	if g.TrustID == "" || g.UserID != "" || !g.ExpiresAt.After(g.CreatedAt) {
		return fmt.Errorf("grant %q must be of an assertion", g.ID)
	}
	if a.Client != nil && a.Client.ID != g.ClientID {
		return fmt.Errorf("client %q with a grant for %q", a.Client.ID, g.ClientID)
	}
	if p := a.Person; p != nil && (p.Issuer == "" || p.Subject == "") {
		return fmt.Errorf("the person of grant %q has no issuer or no subject", g.ID)
	}
	if s := g.Asserted; s != nil && len(s.Act) > 0 && !json.Valid(s.Act) {
		return fmt.Errorf("the act of grant %q is not JSON", g.ID)
	}
	return nil
}

// PersonFinder finds the user of an assertion by one of the names in the assertion.
type PersonFinder struct {
	By  storage.LinkBy // how the user is linked if this finder finds them; "": already linked
	SQL string         // selects ids of users; more than one row counts as no match
	// Args are its arguments, for $1 and so on.
	Args []any
}

// notTied is the condition that the user u is linked to no issuer and to no other provider. It ends
// with the parameter of the providers that are the same issuer, a JSON list.
const notTied = `NOT EXISTS (SELECT 1 FROM trust_links l WHERE l.user_id = u.id)
	AND NOT EXISTS (SELECT 1 FROM identities i WHERE i.user_id = u.id AND i.connector NOT IN `

// PersonFinders returns the finders in order (AS-192). in returns SQL for the members of a JSON
// list parameter.
func PersonFinders(p storage.AssertedPerson, in func(parameter string) string) (out []PersonFinder) {
	if p.AudienceSubject != "" {
		out = append(out, PersonFinder{storage.LinkedByAccount, `SELECT DISTINCT u.id FROM trust_links l JOIN users u ON u.id = l.user_id
	WHERE l.issuer = $1 AND l.tenant = $2 AND (u.id = $3 OR u.name_key = $4)`,
			[]any{p.Issuer, p.Tenant, p.AudienceSubject, NameKeyOf(p.AudienceSubject)}})
	}
	out = append(out, PersonFinder{"", `SELECT u.id FROM trust_links l JOIN users u ON u.id = l.user_id
	WHERE l.issuer = $1 AND l.tenant = $2 AND l.kind = 'subject' AND l.subject = $3`,
		[]any{p.Issuer, p.Tenant, p.Subject}})
	if len(p.Connectors) > 0 && p.Tenant == "" {
		out = append(out, PersonFinder{storage.LinkedByProvider, `SELECT DISTINCT u.id FROM identities i JOIN users u ON u.id = i.user_id
	WHERE i.subject = $1 AND i.connector IN ` + in("$2"), []any{p.Subject, List(p.Connectors)}})
	}
	if p.SAMLName != "" {
		out = append(out, PersonFinder{storage.LinkedBySAML, `SELECT u.id FROM trust_links l JOIN users u ON u.id = l.user_id
	WHERE l.issuer = $1 AND l.tenant = '' AND l.kind = 'saml' AND l.subject = $2`,
			[]any{p.SAMLIssuer, p.SAMLName}})
	}
	if p.Mail != "" { // non-ASCII letters that fold to ASCII are longer, so no address matches another one
		out = append(out, PersonFinder{storage.LinkedByMail, `SELECT u.id FROM users u
	WHERE lower(u.mail) = $1 AND octet_length(u.mail) = octet_length($1) AND NOT ` + HasRole + ` AND ` + notTied + in("$2") + `) LIMIT 2`,
			[]any{lowerASCII(p.Mail), List(p.Connectors)}})
	}
	return out
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// StillUnlinked counts the users with an id that mail may link, after the user's row is locked.
func StillUnlinked(in func(parameter string) string) string {
	return "SELECT count(*) FROM users u WHERE u.id = $1 AND " + notTied + in("$2") + ")"
}

// Link returns the link that an assertion creates for a user who was found or created.
func Link(p storage.AssertedPerson, userID string, by storage.LinkBy, now time.Time) storage.TrustLink {
	return storage.TrustLink{
		TrustName: storage.TrustName{
			Issuer: p.Issuer, Tenant: p.Tenant, Kind: storage.TrustSubject, Subject: p.Subject,
		},
		UserID: userID, By: by, CreatedAt: now,
	}
}

// TrustLinkValues returns the values of TrustLinkColumns.
func TrustLinkValues(l storage.TrustLink) []any {
	return []any{l.Issuer, l.Tenant, string(l.Kind), l.Subject, l.UserID, string(l.By), Millis(l.CreatedAt)}
}

// TrustLinkRow reads TrustLinkColumns.
type TrustLinkRow struct {
	l        storage.TrustLink
	kind, by string
	created  int64
}

func (r *TrustLinkRow) Dest() []any {
	return []any{&r.l.Issuer, &r.l.Tenant, &r.kind, &r.l.Subject, &r.l.UserID, &r.by, &r.created}
}

func (r *TrustLinkRow) Link() storage.TrustLink {
	l := r.l
	l.Kind, l.By, l.CreatedAt = storage.TrustNameKind(r.kind), storage.LinkBy(r.by), Time(r.created)
	return l
}
