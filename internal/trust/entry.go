package trust

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	// DefaultMaxTTL is the default limit on the lifetime of an assertion.
	DefaultMaxTTL = time.Hour
	// MaxTTLWithoutID is the limit on the lifetime of an assertion that needs no jti (AS-234).
	MaxTTLWithoutID = 10 * time.Minute
	minMaxTTL       = 10 * time.Second
	maxMaxTTL       = storage.MaxTrustTTL
	maxList         = 100 // items of a list
)

// entry is a validated and compiled trust entry.
type entry struct {
	storage.TrustEntry
	matchers []matcher
	name     template
	keys     source
	idClaim  string // claim with the ID of an assertion
}

var entryID = regexp.MustCompile(`\A[a-z0-9][a-z0-9._-]{0,63}\z`)

// Check validates an entry and returns it with the defaults of its preset. The error names the
// field.
func Check(e storage.TrustEntry) (storage.TrustEntry, error) {
	c, err := compile(e)
	if err != nil {
		return e, err
	}
	return c.TrustEntry, nil
}

// compile validates and compiles an entry.
func compile(e storage.TrustEntry) (*entry, error) {
	if e.Unreadable {
		return nil, errors.New("was written by a newer version, with rules that are not known here")
	}
	if !entryID.MatchString(e.ID) {
		return nil, fmt.Errorf("id: %q is not up to 64 of a-z, 0-9, dot, hyphen and underscore", e.ID)
	}
	out := &entry{TrustEntry: e, idClaim: "jti"}
	if err := out.apply(); err != nil {
		return nil, err
	}
	if out.Kind != Enterprise && out.Kind != Workload {
		return nil, fmt.Errorf("kind: %q is not one of enterprise, workload", out.Kind)
	}
	for _, check := range []func() error{
		out.origin, out.lists, out.ofKind, out.lifetime, out.matches, out.naming,
		out.hearing,
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// origin checks the issuer and the location of its keys.
func (e *entry) origin() error {
	switch {
	case e.Issuer == "":
		return errors.New("issuer: is missing")
	case len(e.Issuer) > MaxText || !printable(e.Issuer):
		return fmt.Errorf("issuer: is longer than %d bytes, or not printable", MaxText)
	}
	given := 0
	for _, s := range []string{e.JWKSURL, e.JWKSFile, e.JWKS} {
		if s != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return errors.New("jwks_url: give one of jwks_url, jwks_file and keys, or none")
	case e.JWKSURL != "":
		if err := secureURL(e.JWKSURL); err != nil {
			return fmt.Errorf("jwks_url: %q %w", e.JWKSURL, err)
		}
	case given == 0:
		if err := secureURL(e.Issuer); err != nil {
			return fmt.Errorf("issuer: %q %w; without an https issuer, give jwks_url or jwks_file", e.Issuer, err)
		}
	}
	if e.JWKS != "" {
		if _, err := parseKeySet([]byte(e.JWKS)); err != nil {
			return fmt.Errorf("jwks: %w", err)
		}
	}
	for i, n := range e.Networks {
		if _, err := netip.ParsePrefix(n); err != nil {
			return fmt.Errorf("networks[%d]: %q is not a network such as 10.0.0.0/8", i, n)
		}
	}
	e.keys = source{
		issuer: e.Issuer, url: e.JWKSURL, file: e.JWKSFile, inline: e.JWKS, networks: strings.Join(e.Networks, " "),
		ca: e.CAFile, token: e.TokenFile,
	}
	if (e.CAFile != "" || e.TokenFile != "") && e.JWKSURL == "" {
		return errors.New("jwks_url: is missing; ca_file and token_file are for it")
	}
	return nil
}

func (e *entry) lists() error {
	for _, l := range []struct {
		name   string
		values []string
	}{
		{"audience_aliases", e.AudienceAliases}, {"resources", e.Resources}, {"scopes", e.Scopes},
		{"email_domains", e.EmailDomains}, {"saml_issuers", e.SAMLIssuers}, {"networks", e.Networks},
		{"event_audience", e.EventAudience},
	} {
		if len(l.values) > maxList {
			return fmt.Errorf("%s: has more than %d values", l.name, maxList)
		}
		for i, v := range l.values {
			if v == "" || v != strings.TrimSpace(v) || len(v) > MaxText {
				return fmt.Errorf("%s[%d]: is empty, too long, or has blanks around it", l.name, i)
			}
		}
	}
	e.Resources = slices.Clone(e.Resources)
	for i, r := range e.Resources {
		uri, err := oauth.CanonicalResource(r)
		if err != nil {
			return fmt.Errorf("resources[%d]: %q: %w", i, r, err)
		}
		e.Resources[i] = uri
	}
	for i, s := range e.Scopes {
		if !oauth.ValidScope(s) {
			return fmt.Errorf("scopes[%d]: %q is not a scope", i, s)
		}
	}
	for i, d := range e.EmailDomains {
		if strings.ContainsAny(d, "@*/ ") || !strings.Contains(d, ".") {
			return fmt.Errorf("email_domains[%d]: %q is not a domain such as example.com", i, d)
		}
	}
	return nil
}

// ofKind refuses settings that do not apply to the kind of the entry.
func (e *entry) ofKind() error {
	people := []struct {
		name string
		set  bool
	}{
		{"create_people", e.CreatePeople}, {"email_domains", len(e.EmailDomains) > 0},
		{"saml_issuers", len(e.SAMLIssuers) > 0}, {"allow_public", e.AllowPublic},
	}
	if e.Kind == Workload {
		for _, p := range people {
			if p.set {
				return fmt.Errorf("%s: means nothing for workloads", p.name)
			}
		}
	} else if e.Subject != "" && !e.CreatePeople {
		return errors.New("subject: means nothing for people without create_people: their accounts have names")
	}
	return nil
}

func (e *entry) lifetime() error {
	needsID := e.RequireJTI == nil || *e.RequireJTI
	e.RequireJTI = &needsID
	switch {
	case e.Kind == Enterprise && !needsID: // AS-183
		return errors.New("require_jti: an ID-JAG always has one")
	case e.MaxTTL == 0 && !needsID:
		e.MaxTTL = MaxTTLWithoutID
	case e.MaxTTL == 0:
		e.MaxTTL = DefaultMaxTTL
	case e.MaxTTL < minMaxTTL || e.MaxTTL > maxMaxTTL:
		return fmt.Errorf("max_ttl: %s is not between %s and %s", e.MaxTTL, minMaxTTL, maxMaxTTL)
	case !needsID && e.MaxTTL > MaxTTLWithoutID:
		return fmt.Errorf("max_ttl: %s; without require_jti it must be at most %s", e.MaxTTL, MaxTTLWithoutID)
	}
	return nil
}

func (e *entry) matches() error {
	switch {
	case len(e.Match) > maxMatches:
		return fmt.Errorf("match: has more than %d rules", maxMatches)
	case e.Kind == Workload && len(e.Match) == 0: // AS-204
		return errors.New("match: is missing: every program that the issuer speaks for would get a token; " +
			"name claims of those that may, or use a preset")
	}
	for i, m := range e.Match {
		c, err := compileMatch(m)
		if err != nil {
			return fmt.Errorf("match[%d]: %w", i, err)
		}
		e.matchers = append(e.matchers, c)
	}
	return nil
}

func (e *entry) naming() (err error) {
	switch {
	case e.Subject != "":
	case e.Kind == Workload:
		e.Subject = e.ID + ":{{.sub}}"
	default:
		return nil
	}
	if e.name, err = compileTemplate(e.Subject); err != nil {
		return fmt.Errorf("subject: %w", err)
	}
	return nil
}
