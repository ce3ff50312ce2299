package thirdparty

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

var connectorID = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$`)

// withDefaults fills in the defaults of the type. An unknown type is left unchanged.
func (c Connector) withDefaults() Connector {
	traits, ok := provider.TraitsOf(c.Type)
	if !ok {
		return c
	}
	s := c.settings().WithDefaults()
	c.BaseURL, c.ClientAuth, c.Tenant, c.Issuer, c.Scopes = s.BaseURL, s.ClientAuth, s.Tenant, s.Issuer, s.Scopes
	for field, value := range map[*string]string{&c.Name: traits.Name, &c.Icon: traits.Icon} {
		if *field == "" {
			*field = value
		}
	}
	if c.CheckEvery == 0 {
		c.CheckEvery = max(traits.CheckEvery, defaultCheckEvery)
	}
	if c.Outage == 0 {
		c.Outage = max(defaultOutage, 2*c.CheckEvery)
	}
	return c
}

// settings returns the settings for package provider.
func (c *Connector) settings() provider.Settings {
	return provider.Settings{
		Type: c.Type, ClientID: c.ClientID, ClientSecret: c.ClientSecret, ClientAuth: c.ClientAuth, Key: c.Key,
		KeyID: c.KeyID, TeamID: c.TeamID,
		Issuer: c.Issuer, BaseURL: c.BaseURL, Tenant: c.Tenant,
		AuthorizationURL: c.AuthorizationURL, TokenURL: c.TokenURL, UserInfoURL: c.UserInfoURL,
		RevocationURL: c.RevocationURL, IntrospectionURL: c.IntrospectionURL, EventKeysURL: c.Events.KeysURL,
		Claims: c.Claims, Scopes: c.Scopes, Parameters: c.Parameters, Networks: c.Networks, Detached: c.Detached,
		Memberships: c.judgesMemberships(), Domains: c.Allow.Domains, Organizations: c.Allow.Organizations,
	}
}

// judges reports whether any rule depends on the provider's claims.
func (c *Connector) judges() bool {
	r := c.Allow
	return len(r.Domains)+len(r.Emails)+len(r.Groups)+len(r.Organizations)+len(r.Teams)+len(r.Tenants)+len(
		c.ScopeRules) > 0 || r.Expression != ""
}

// judgesMemberships reports whether a rule uses organisations, teams or groups.
func (c *Connector) judgesMemberships() bool {
	about := func(expression string) bool {
		return strings.Contains(expression, "organizations") || strings.Contains(expression, "teams") ||
			strings.Contains(expression, "groups")
	}
	a := c.Allow
	return len(a.Organizations)+len(a.Teams)+len(a.Groups) > 0 || about(a.Expression) ||
		slices.ContainsFunc(c.ScopeRules, func(s ScopeRule) bool { return len(s.Groups) > 0 || about(s.Expression) })
}

// Validate reports errors in a connector's configuration, as New would, and sends no request. Its
// error wraps ErrConfig and names the field as the configuration file does.
func (c Connector) Validate() error {
	full := c.withDefaults()
	for _, check := range []func() error{
		c.checkID, c.settings().Validate, full.checkDomains, full.checkTimes, full.checkRules,
		full.checkEvents} {
		if err := check(); err != nil {
			return c.misconfigured(err)
		}
	}
	return nil
}

func (c *Connector) misconfigured(err error) error {
	return fmt.Errorf("%w: thirdparty %q: %w", ErrConfig, c.ID, err)
}

func (c *Connector) checkID() error {
	if !connectorID.MatchString(c.ID) {
		return errors.New("id: must be lower case letters, digits and hyphens, at most 40")
	}
	return nil
}

func (c *Connector) checkDomains() error {
	for i, d := range c.Domains {
		if strings.ContainsAny(d, "@*/ ") || !strings.Contains(d, ".") {
			return fmt.Errorf("domains[%d]: %q is not a domain such as example.com", i, d)
		}
	}
	return nil
}

func (c *Connector) checkEvents() error {
	e := c.Events
	traits, _ := provider.TraitsOf(c.Type) // Validate rejects unknown types
	switch {
	case len(e.Audience) == 0 && (e.Issuer != "" || e.KeysURL != "" || e.BearerToken != ""):
		return errors.New("events.audience: is missing: the audience of the stream at the transmitter")
	case len(e.Audience) == 0:
		return nil
	case traits.ComposedSubject:
		return fmt.Errorf("events: mean nothing for type %s, which names people by more than sub", c.Type)
	case slices.Contains(e.Audience, ""):
		return errors.New("events.audience: must not be empty")
	case e.Issuer == "" && c.Issuer == "":
		return fmt.Errorf("events.issuer: is required for type %s", c.Type)
	case e.KeysURL == "" && !traits.OpenID:
		return fmt.Errorf("events.keys_url: is required for type %s", c.Type)
	case e.BearerToken != "" && len(e.BearerToken) < minBearer:
		return fmt.Errorf("events.bearer_token: needs at least %d characters", minBearer)
	}
	return nil
}

// minBearer is long enough to prevent guessing.
const minBearer = 32

const checkByRefresh = "refresh"

func (c *Connector) checkTimes() error {
	switch {
	case c.CheckEvery < 0:
		return errors.New("check_every: must not be negative")
	case c.Outage < 0:
		return errors.New("outage: must not be negative")
	case c.CheckBy != "" && c.CheckBy != checkByRefresh:
		return fmt.Errorf("check_by: %q is not refresh", c.CheckBy)
	case c.CheckBy != "" && c.Detached:
		return errors.New("check_by: a detached sign-in is not checked")
	}
	return nil
}

func (c *Connector) checkRules() error {
	if _, err := c.compile(); err != nil {
		return err
	}
	for i, b := range c.Broker {
		switch {
		case b.Resource == "":
			return fmt.Errorf("broker[%d].resource: is missing", i)
		case len(b.Scopes) == 0:
			return fmt.Errorf("broker[%d].scopes: is missing", i)
		}
	}
	return nil
}
