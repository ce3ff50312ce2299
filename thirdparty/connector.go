package thirdparty

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

const (
	defaultCheckEvery = 5 * time.Minute
	defaultOutage     = time.Hour
)

// connector is a Connector made ready: defaults filled in, rules compiled, its provider
// at hand.
type connector struct {
	Connector
	provider.Provider

	traits    provider.Traits
	ownIssuer string // ours
	rules     compiled
}

// newConnector checks a configuration and makes it ready. It makes no request. Errors
// wrap ErrConfig and name the field.
func newConnector(c Connector, issuer string, o provider.Options) (out *connector, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	out = &connector{Connector: c.withDefaults(), ownIssuer: issuer}
	out.traits, _ = provider.TraitsOf(c.Type) // Validate knows the type
	if out.rules, err = out.compile(); err != nil {
		return nil, out.misconfigured(err)
	}
	if out.Provider, err = provider.New(c.settings(), o); err != nil {
		return nil, out.misconfigured(err)
	}
	return out, nil
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
func (c *connector) public() delegation.Provider {
	p := delegation.Provider{ID: c.ID, Name: c.Name, Icon: c.Icon}
	for _, at := range []string{c.AuthorizationEndpoint(), c.Issuer, c.BaseURL} {
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
