package config

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// Login says how people sign in.
type Login struct {
	// Local offers accounts with a password. Without it there must be a provider.
	Local bool `yaml:"local"`
	// DefaultProvider is where people are sent without being asked; empty: they choose.
	DefaultProvider string `yaml:"default_provider"`
}

// Connector is an upstream provider at which people sign in.
type Connector struct {
	ID   string `yaml:"id"` // part of the redirect URI: never change it
	Type string `yaml:"type"`
	Name string `yaml:"name"`
	Icon string `yaml:"icon"`

	ClientID     string `yaml:"client_id"`
	ClientSecret Secret `yaml:"client_secret"`
	// ClientSecretFile and KeyFile are files with the secret. In the environment _FILE
	// goes for every secret.
	ClientSecretFile string `yaml:"client_secret_file" env:"-"`
	ClientAuth       string `yaml:"client_auth"`
	Key              Secret `yaml:"key"` // PKCS #8 in PEM
	KeyFile          string `yaml:"key_file" env:"-"`
	KeyID            string `yaml:"key_id"`
	TeamID           string `yaml:"team_id"`

	Issuer     string            `yaml:"issuer"`
	BaseURL    string            `yaml:"base_url"`
	Tenant     string            `yaml:"tenant"`
	Endpoints  Endpoints         `yaml:"endpoints"`
	Claims     map[string]string `yaml:"claims"`
	Scopes     []string          `yaml:"scopes"`
	Parameters map[string]string `yaml:"parameters"`
	Networks   []string          `yaml:"networks"`

	Domains    []string     `yaml:"domains"`
	Allow      Allow        `yaml:"allow"`
	ScopeRules []ScopeRule  `yaml:"scope_rules"`
	Broker     []BrokerRule `yaml:"broker"`

	CheckEvery Duration `yaml:"check_every"`
	Outage     Duration `yaml:"outage"`
	Detached   bool     `yaml:"detached"`
}

// Endpoints are those of plain OAuth 2.0.
type Endpoints struct {
	Authorization string `yaml:"authorization"`
	Token         string `yaml:"token"`
	UserInfo      string `yaml:"userinfo"`
	Revocation    string `yaml:"revocation"`
	Introspection string `yaml:"introspection"`
}

// Allow says who may sign in. Every kind that is given must hold; within one kind, one
// match is enough.
type Allow struct {
	Domains       []string `yaml:"domains"`
	Emails        []string `yaml:"emails"`
	Groups        []string `yaml:"groups"`
	Organizations []string `yaml:"organizations"`
	Teams         []string `yaml:"teams"`
	Tenants       []string `yaml:"tenants"`
	Expression    string   `yaml:"expression"`
}

// ScopeRule keeps scopes to some people.
type ScopeRule struct {
	Resource   string   `yaml:"resource"`
	Scopes     []string `yaml:"scopes"`
	Groups     []string `yaml:"groups"`
	Expression string   `yaml:"expression"`
}

// BrokerRule lets a resource server have the provider's tokens.
type BrokerRule struct {
	Resource string   `yaml:"resource"`
	Scopes   []string `yaml:"scopes"`
}

// Connectors are the configured providers. Validate has checked what is parsed here.
func (c *Config) Connectors() []thirdparty.Connector {
	var out []thirdparty.Connector
	for _, p := range c.ThirdParty {
		out = append(out, p.connector())
	}
	return out
}

func (p Connector) connector() thirdparty.Connector {
	out := thirdparty.Connector{
		ID: p.ID, Type: p.Type, Name: p.Name, Icon: p.Icon,
		ClientID: p.ClientID, ClientSecret: string(p.ClientSecret), ClientAuth: p.ClientAuth,
		Key: string(p.Key), KeyID: p.KeyID, TeamID: p.TeamID,
		Issuer: p.Issuer, BaseURL: p.BaseURL, Tenant: p.Tenant,
		AuthorizationURL: p.Endpoints.Authorization, TokenURL: p.Endpoints.Token, UserInfoURL: p.Endpoints.UserInfo,
		RevocationURL: p.Endpoints.Revocation, IntrospectionURL: p.Endpoints.Introspection,
		Claims: p.Claims, Scopes: p.Scopes, Parameters: p.Parameters, Domains: p.Domains, Allow: thirdparty.Rules(p.Allow),
		CheckEvery: time.Duration(p.CheckEvery), Outage: time.Duration(p.Outage), Detached: p.Detached,
	}
	for _, n := range p.Networks {
		if prefix, err := parseNetwork(n); err == nil {
			out.Networks = append(out.Networks, prefix)
		}
	}
	for _, r := range p.ScopeRules {
		out.ScopeRules = append(out.ScopeRules, thirdparty.ScopeRule{Resource: canonical(r.Resource), Scopes: r.Scopes, Groups: r.Groups, Expression: r.Expression})
	}
	for _, r := range p.Broker {
		out.Broker = append(out.Broker, thirdparty.BrokerRule{Resource: canonical(r.Resource), Scopes: r.Scopes})
	}
	return out
}

func canonical(resource string) string {
	if uri, err := oauth.CanonicalResource(resource); err == nil {
		return uri
	}
	return resource
}

// SecretFiles are the files that secrets are read from, by the key that names each.
func (c *Config) SecretFiles() map[string]string {
	out := map[string]string{}
	for i, p := range c.ThirdParty {
		for key, file := range map[string]string{"client_secret_file": p.ClientSecretFile, "key_file": p.KeyFile} {
			if file != "" {
				out[fmt.Sprintf("thirdparty[%d].%s", i, key)] = file
			}
		}
	}
	for key, file := range c.secretFiles {
		out[key] = file
	}
	return out
}

// readSecretFiles reads the secrets of connectors that the file only points at. What the
// environment says goes before.
func (l *Loaded) readSecretFiles() error {
	for i := range l.ThirdParty {
		p := &l.ThirdParty[i]
		for _, s := range []struct {
			key   string
			value *Secret
			file  string
		}{{"client_secret", &p.ClientSecret, p.ClientSecretFile}, {"key", &p.Key, p.KeyFile}} {
			_, fromEnv := l.origins[fmt.Sprintf("thirdparty.%d.%s", i, s.key)]
			switch {
			case s.file == "" || fromEnv:
				continue
			case *s.value != "":
				return fmt.Errorf("thirdparty[%d]: %s and %s_file are both set; set one", i, s.key, s.key)
			}
			b, err := os.ReadFile(s.file)
			if err != nil {
				return fmt.Errorf("thirdparty[%d].%s_file: %w", i, s.key, err)
			}
			*s.value = Secret(strings.TrimRight(string(b), "\r\n"))
			l.origins[fmt.Sprintf("thirdparty.%d.%s", i, s.key)] = s.key + "_file"
		}
	}
	return nil
}

// fillConnectors puts in the defaults that an item of a list cannot have beforehand.
func (l *Loaded) fillConnectors() {
	for i := range l.ThirdParty {
		p := &l.ThirdParty[i]
		if p.CheckEvery == 0 {
			p.CheckEvery = Duration(5 * time.Minute)
		}
		if p.Outage == 0 {
			p.Outage = Duration(time.Hour)
		}
	}
}

var connectorID = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)

func (c *Config) validateConnectors(add func(string, string, ...any)) {
	ids := map[string]bool{}
	for i, p := range c.ThirdParty {
		key := fmt.Sprintf("thirdparty[%d]", i)
		said := false
		at := func(sub, format string, args ...any) {
			said = true
			add(key+"."+sub, format, args...)
		}
		switch {
		case p.ID == "":
			at("id", "is missing")
		case !connectorID.MatchString(p.ID):
			at("id", "%q has other characters than lower case letters, digits and hyphens; it becomes part of the redirect URI", p.ID)
		case ids[p.ID]:
			at("id", "%q is listed twice", p.ID)
		}
		ids[p.ID] = true
		p.validate(at)
		if !said { // what only the connector itself knows
			if err := thirdparty.Check(p.connector()); err != nil {
				add(key, "%s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), thirdparty.ErrConfig.Error()+": "), "\n", "; "))
			}
		}
	}
	if d := c.Login.DefaultProvider; d != "" && !ids[d] {
		add("login.default_provider", "%q is not the id of a provider under thirdparty", d)
	}
	if !c.Login.Local && len(c.ThirdParty) == 0 {
		add("login.local", "is false, and there is no provider under thirdparty: nobody could sign in")
	}
}

func (p Connector) validate(add func(string, string, ...any)) {
	if types := thirdparty.Types(); !slices.Contains(types, p.Type) {
		hint := ""
		if near := nearest(p.Type, types); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		add("type", "%q is not one of %s%s", p.Type, strings.Join(types, ", "), hint)
	}
	if p.ClientID == "" {
		add("client_id", "is missing")
	}
	for _, u := range []struct{ key, value string }{
		{"issuer", p.Issuer}, {"base_url", p.BaseURL}, {"endpoints.authorization", p.Endpoints.Authorization}, {"endpoints.token", p.Endpoints.Token},
		{"endpoints.userinfo", p.Endpoints.UserInfo}, {"endpoints.revocation", p.Endpoints.Revocation}, {"endpoints.introspection", p.Endpoints.Introspection},
	} {
		if u.value != "" && !secureURL(u.value) {
			add(u.key, "%q is not an https URL (http is for localhost only)", u.value)
		}
	}
	for i, n := range p.Networks {
		if _, err := parseNetwork(n); err != nil {
			add(fmt.Sprintf("networks[%d]", i), "%q is not an address or network such as 10.0.0.0/8", n)
		}
	}
	for i, d := range append(slices.Clone(p.Domains), p.Allow.Domains...) {
		if d == "" || strings.ContainsAny(d, "@*/ ") {
			add(within("domains", i, len(p.Domains), "allow.domains"), "%q is not a domain such as example.com", d)
		}
	}
	for i, e := range p.Allow.Emails {
		if strings.Count(e, "@") != 1 {
			add(fmt.Sprintf("allow.emails[%d]", i), "%q is not an e-mail address", e)
		}
	}
	for i, t := range p.Allow.Teams {
		if strings.Count(t, "/") != 1 {
			add(fmt.Sprintf("allow.teams[%d]", i), "%q is not of the form organisation/team", t)
		}
	}
	p.validateRules(add)
	checkBetween(add, "check_every", p.CheckEvery, time.Second, 24*time.Hour)
	checkBetween(add, "outage", p.Outage, time.Second, 7*24*time.Hour)
}

// within names item i of two lists that are looked at as one.
func within(first string, i, n int, second string) string {
	if i < n {
		return fmt.Sprintf("%s[%d]", first, i)
	}
	return fmt.Sprintf("%s[%d]", second, i-n)
}

func (p Connector) validateRules(add func(string, string, ...any)) {
	scopes := func(key string, list []string, needed bool) {
		if needed && len(list) == 0 {
			add(key, "is missing")
		}
		for i, s := range list {
			if !oauth.ValidScope(s) {
				add(fmt.Sprintf("%s[%d]", key, i), "%q is not a scope (no spaces, quotes or backslashes)", s)
			}
		}
	}
	resource := func(key, uri string) {
		if _, err := oauth.CanonicalResource(uri); err != nil {
			add(key, "%q: %v", uri, err)
		}
	}
	scopes("scopes", p.Scopes, false)
	for i, r := range p.ScopeRules {
		key := fmt.Sprintf("scope_rules[%d]", i)
		scopes(key+".scopes", r.Scopes, true)
		if r.Resource != "" {
			resource(key+".resource", r.Resource)
		}
		if len(r.Groups) == 0 && r.Expression == "" {
			add(key, "has neither groups nor an expression, so it would keep its scopes from everybody")
		}
	}
	for i, r := range p.Broker {
		resource(fmt.Sprintf("broker[%d].resource", i), r.Resource)
		scopes(fmt.Sprintf("broker[%d].scopes", i), r.Scopes, false)
	}
}

// secureURL admits https anywhere and http on this machine.
func secureURL(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && oauth.IsLoopbackHost(u.Hostname()))
}
