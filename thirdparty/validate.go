package thirdparty

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

var connectorID = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$`)

// reserved are the parameters of the authorization request that are ours.
var reserved = []string{
	"client_id", "client_secret", "redirect_uri", "response_type", "scope", "state", "nonce", "code_challenge", "code_challenge_method",
	"resource", "request", "request_uri", "id_token_hint",
}

// urls are the addresses that the configuration names.
func (c *Connector) urls() []string {
	var out []string
	for _, u := range []string{c.Issuer, c.BaseURL, c.AuthorizationURL, c.TokenURL, c.UserInfoURL, c.RevocationURL, c.IntrospectionURL} {
		if u != "" {
			out = append(out, u)
		}
	}
	return out
}

// withDefaults fills in what the type knows. An unknown type is left as it is.
func (c Connector) withDefaults() Connector {
	p := presetOf(c.Type)
	if p == nil {
		return c
	}
	for field, value := range map[*string]string{&c.Name: p.Name, &c.Icon: p.ID, &c.BaseURL: p.baseURL, &c.ClientAuth: p.clientAuth} {
		if *field == "" {
			*field = value
		}
	}
	c.BaseURL = strings.TrimSuffix(c.BaseURL, "/")
	c.Tenant = strings.ToLower(c.Tenant)
	if p.issuer != nil && (c.Issuer != "" || !slices.Contains(p.Needs, "issuer")) {
		c.Issuer = p.issuer(&c)
	}
	if c.Scopes == nil {
		c.Scopes = p.scopes
	}
	if p.openID {
		c.Scopes = oauth.Scopes{"openid"}.Union(c.Scopes)
	}
	if p.enrichScopes != nil && c.enriches() {
		c.Scopes = c.Scopes.Union(p.enrichScopes(&c))
	}
	if c.CheckEvery == 0 {
		c.CheckEvery = max(p.checkEvery, defaultCheckEvery)
	}
	if c.Outage == 0 {
		c.Outage = max(defaultOutage, 2*c.CheckEvery)
	}
	return c
}

// enriches reports whether a rule looks at organisations, teams or groups.
func (c *Connector) enriches() bool {
	about := func(expression string) bool {
		return strings.Contains(expression, "organizations") || strings.Contains(expression, "teams") || strings.Contains(expression, "groups")
	}
	a := c.Allow
	return len(a.Organizations)+len(a.Teams)+len(a.Groups) > 0 || about(a.Expression) ||
		slices.ContainsFunc(c.ScopeRules, func(s ScopeRule) bool { return len(s.Groups) > 0 || about(s.Expression) })
}

// Validate reports what is wrong with a connector as it was given, as New would, and talks
// to nobody. Its error wraps ErrConfig and names the field as the configuration file does.
func (c Connector) Validate() error {
	if err := c.checkNames(); err != nil {
		return fmt.Errorf("%w: thirdparty %q: %w", ErrConfig, c.ID, err)
	}
	full := c.withDefaults()
	for _, check := range []func() error{c.checkNeeds, full.checkURLs, full.checkRequest, full.checkClientAuth, full.checkTimes, full.checkRules} {
		if err := check(); err != nil {
			return fmt.Errorf("%w: thirdparty %q: %w", ErrConfig, c.ID, err)
		}
	}
	return nil
}

func (c *Connector) checkNames() error {
	if !connectorID.MatchString(c.ID) {
		return errors.New("id: must be lower case letters, digits and hyphens, at most 40")
	}
	if p := presetOf(c.Type); p == nil {
		var known []string
		for _, t := range Types() {
			known = append(known, t.ID)
		}
		return fmt.Errorf("type: %q is none of %s", c.Type, strings.Join(known, ", "))
	}
	return nil
}

// settings are the fields that only some types need or take.
func (c *Connector) settings() map[string]string {
	claims := ""
	if len(c.Claims) > 0 {
		claims = "given"
	}
	return map[string]string{
		"client_id": c.ClientID, "client_secret": c.ClientSecret, "issuer": c.Issuer, "base_url": c.BaseURL, "tenant": c.Tenant,
		"key": c.Key, "key_id": c.KeyID, "team_id": c.TeamID, "claims": claims,
		"authorization_url": c.AuthorizationURL, "token_url": c.TokenURL, "user_info_url": c.UserInfoURL,
		"revocation_url": c.RevocationURL, "introspection_url": c.IntrospectionURL,
	}
}

func (c *Connector) checkNeeds() error {
	p, given := presetOf(c.Type), c.settings()
	for _, name := range p.Needs {
		if given[name] == "" {
			return fmt.Errorf("%s: is required for type %s", name, c.Type)
		}
	}
	for _, name := range []string{"issuer", "base_url", "tenant", "key", "key_id", "team_id"} {
		if given[name] != "" && !slices.Contains(p.Needs, name) && !slices.Contains(p.Takes, name) {
			return fmt.Errorf("%s: means nothing for type %s", name, c.Type)
		}
	}
	return nil
}

func (c *Connector) checkURLs() error {
	given := c.settings()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if given[name] == "" || !strings.HasSuffix(name, "_url") && name != "issuer" {
			continue
		}
		if err := webURL(given[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if u, _ := url.Parse(given[name]); u.RawQuery != "" && (name == "issuer" || name == "base_url") {
			return fmt.Errorf("%s: must not have a query", name)
		}
	}
	if c.Tenant != "" && !regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`).MatchString(c.Tenant) {
		return errors.New("tenant: must be a tenant id, a domain, or one of organizations, common, consumers")
	}
	return nil
}

func (c *Connector) checkRequest() error {
	for _, s := range c.Scopes {
		if !oauth.ValidScope(s) {
			return fmt.Errorf("scopes: %q is not a scope", s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Parameters)) {
		if slices.Contains(reserved, name) {
			return fmt.Errorf("parameters: %s is not yours to set", name)
		}
	}
	if c.Parameters["response_mode"] != "" && c.Parameters["response_mode"] != "query" && c.Parameters["response_mode"] != "form_post" {
		return errors.New("parameters: response_mode must be query or form_post")
	}
	for i, d := range c.Domains {
		if strings.ContainsAny(d, "@*/ ") || !strings.Contains(d, ".") {
			return fmt.Errorf("domains[%d]: %q is not a domain such as example.com", i, d)
		}
	}
	return nil
}

func (c *Connector) checkClientAuth() error {
	p := presetOf(c.Type)
	switch c.ClientAuth {
	case "", authBasic, authPost:
		if c.ClientAuth != "" && c.ClientSecret == "" {
			return fmt.Errorf("client_secret: is required for client_auth %s", c.ClientAuth)
		}
	case authNone:
		if c.ClientSecret != "" {
			return errors.New("client_auth: none, but there is a client_secret")
		}
	case authJWT:
		if p.secretAudience == "" {
			return fmt.Errorf("client_auth: jwt is for type apple, not %s", c.Type)
		}
		if _, err := parseKey(c.Key); err != nil {
			return fmt.Errorf("key: %w", err)
		}
	default:
		return fmt.Errorf("client_auth: %q is none of basic, post, jwt, none", c.ClientAuth)
	}
	return nil
}

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
	p := presetOf(c.Type)
	if _, err := newRules("allow", c.Allow, p); err != nil {
		return err
	}
	if _, err := newScopeRules(c.ScopeRules, p); err != nil {
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
