package thirdparty

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/session"
)

const (
	defaultCheckEvery = 5 * time.Minute
	defaultOutage     = time.Hour
)

// connector is a Connector made ready: defaults filled in, rules compiled, its provider
// at hand.
type connector struct {
	Connector
	provider

	base                  *upstream // the part of the provider that both protocols have in common
	preset                *preset
	ownIssuer             string        // ours
	authorizationEndpoint func() string // of the provider; "" until the metadata have been read
	allow                 *rules
	scopeRules            []scopeRule
}

// surroundings are what connectors share.
type surroundings struct {
	issuer      string // ours
	productName string
	now         func() time.Time
	log         *slog.Logger // default: discard
	// transport carries the requests in place of connections of our own, for tests. What
	// it answers is bounded all the same.
	transport http.RoundTripper
}

// newConnector checks a configuration and makes it ready. It talks to nobody. Errors
// wrap ErrConfig and name the field.
func newConnector(c Connector, s surroundings) (*connector, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.productName == "" {
		s.productName = "mcp-authd"
	}
	p := presetOf(c.Type)
	out := &connector{Connector: c, preset: p, ownIssuer: s.issuer}
	// Validate has compiled them once already
	out.allow, _ = newRules("allow", c.Allow, p)
	out.scopeRules, _ = newScopeRules(c.ScopeRules, p)
	out.speak(s)
	return out, nil
}

// speak gives the connector its provider.
func (c *connector) speak(s surroundings) {
	u := upstream{
		Connector: &c.Connector, preset: c.preset, client: newTransport(c.Connector, s).client(), now: s.now, log: s.log, scopes: c.Scopes, enrich: c.enriches(),
	}
	if !c.preset.openID {
		u.fixed = c.overridden(c.preset.places(&c.Connector))
		u.fixed.issuer = c.Issuer
		u.locate = u.places
		c.provider, c.base, c.authorizationEndpoint = &u, &u, func() string { return u.fixed.authorize }
		return
	}
	p := &openID{upstream: u}
	p.directory = &discovery{at: c.Issuer, client: u.client, now: s.now}
	if c.preset.issuerIs != nil {
		p.directory.issuer = c.preset.issuerIs(&c.Connector)
	}
	p.locate = p.places
	c.provider, c.base, c.authorizationEndpoint = p, &p.upstream, func() string {
		if found, _ := p.directory.cached(); found != nil && c.AuthorizationURL == "" {
			return found.authorize
		}
		return c.AuthorizationURL
	}
}

// overridden returns endpoints with those of the configuration in their place.
func (c *Connector) overridden(e endpoints) endpoints {
	for _, o := range []struct {
		configured string
		to         *string
	}{
		{c.AuthorizationURL, &e.authorize}, {c.TokenURL, &e.token}, {c.UserInfoURL, &e.userInfo}, {c.RevocationURL, &e.revoke}, {c.IntrospectionURL, &e.introspect},
	} {
		if o.configured != "" {
			*o.to = o.configured
		}
	}
	return e
}

// source is where the tokens of the connector come from. Those of one provider must not be
// sent to another one that the connector is pointed at.
func (c *connector) source() string {
	if at := cmp.Or(c.Issuer, c.BaseURL); at != "" {
		return at
	}
	at, err := url.Parse(c.TokenURL)
	if err != nil {
		return c.TokenURL
	}
	return at.Scheme + "://" + at.Host
}

// redirectURI is what has to be registered at the provider.
func (c *connector) redirectURI() string { return c.ownIssuer + "/callback/" + c.ID }

// public is the connector as people see it. The host is the issuer's until the metadata
// have been read.
func (c *connector) public() session.Provider {
	p := session.Provider{ID: c.ID, Name: c.Name, Icon: c.Icon}
	for _, at := range []string{c.authorizationEndpoint(), c.Issuer, c.BaseURL} {
		if u, err := url.Parse(at); err == nil && u.Host != "" {
			p.Host = u.Host
			break
		}
	}
	return p
}

// routes reports whether people of a domain belong to the connector.
func (c *connector) routes(domain string) bool {
	return slices.ContainsFunc(c.Domains, func(d string) bool { return strings.EqualFold(d, domain) })
}

// admit checks the rules for who may sign in. errNotAllowed: they do not hold for p.
func (c *connector) admit(p profile) error {
	if kind := c.allow.check(p.Claims); kind != "" {
		return fmt.Errorf("%w: %s", errNotAllowed, kind)
	}
	return nil
}

// permit returns which of the scopes of a resource the person may have.
func (c *connector) permit(p profile, resource string, scopes oauth.Scopes) oauth.Scopes {
	return permitted(c.scopeRules, p.Claims, resource, scopes)
}

// probe asks the provider to redeem an invalid code: it tells whether it can be
// reached, is who it should be and accepts our credentials.
func (c *connector) probe(ctx context.Context) error {
	_, _, err := c.exchange(ctx, "mcp-authd-doctor", strings.Repeat("doctor", 8), "doctor", c.redirectURI())
	if errors.Is(err, errDenied) {
		return nil
	}
	return err
}
