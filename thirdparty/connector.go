package thirdparty

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

const (
	defaultCheckEvery = 5 * time.Minute
	defaultOutage     = time.Hour
)

// connector is a Connector with its defaults, compiled rules and provider.
type connector struct {
	Connector
	provider.Provider

	traits    provider.Traits
	ownIssuer string // issuer of this server
	rules     compiled
	// grouped: groups here have members by the groups of the provider.
	grouped atomic.Bool
}

// newConnector checks a configuration and builds its connector without any request. Errors wrap
// ErrConfig and name the field.
func newConnector(c Connector, issuer string, o provider.Options) (out *connector, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	out = &connector{Connector: c.withDefaults(), ownIssuer: issuer}
	out.traits, _ = provider.TraitsOf(c.Type) // Validate rejects unknown types
	if out.rules, err = out.compile(); err != nil {
		return nil, out.misconfigured(err)
	}
	s := c.settings()
	s.Judged = func() bool { return out.judges() || out.grouped.Load() }
	if out.Provider, err = provider.New(s, o); err != nil {
		return nil, out.misconfigured(err)
	}
	return out, nil
}

// source identifies the provider that the connector's tokens come from. They must not be sent to
// another provider if the configuration changes.
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

// redirectURI returns the URI to register at the provider.
func (c *connector) redirectURI() string { return c.ownIssuer + "/callback/" + c.ID }

// public returns the public description of the connector. Its host is the issuer's until the
// metadata are read.
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

// routes reports whether the connector serves users of a domain.
func (c *connector) routes(domain string) bool {
	return slices.ContainsFunc(c.Domains, func(d string) bool { return strings.EqualFold(d, domain) })
}
