package config

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// Connector is an identity provider: thirdparty.Connector in the form of a file. Secrets are masked
// when printed or can be in files, and durations may be in days.
type Connector struct {
	ID   string `yaml:"id"` // part of the redirect URI: never change it
	Type string `yaml:"type"`
	Name string `yaml:"name"`
	Icon string `yaml:"icon"`

	ClientID     string `yaml:"client_id"`
	ClientSecret Secret `yaml:"client_secret"`
	// ClientSecretFile and KeyFile name files with the secret. In the environment, _FILE works for
	// every secret.
	ClientSecretFile string `yaml:"client_secret_file" env:"-"`
	ClientAuth       string `yaml:"client_auth"`
	Key              Secret `yaml:"key"` // PKCS #8 in PEM
	KeyFile          string `yaml:"key_file" env:"-"`
	KeyID            string `yaml:"key_id"`
	TeamID           string `yaml:"team_id"`

	Issuer  string `yaml:"issuer"`
	BaseURL string `yaml:"base_url"`
	Tenant  string `yaml:"tenant"`
	// The endpoints for plain OAuth 2.0. They take precedence over discovered ones.
	AuthorizationURL string `yaml:"authorization_url"`
	TokenURL         string `yaml:"token_url"`
	UserInfoURL      string `yaml:"user_info_url"`
	RevocationURL    string `yaml:"revocation_url"`
	IntrospectionURL string `yaml:"introspection_url"`

	Claims     map[string]string `yaml:"claims"`
	Scopes     []string          `yaml:"scopes"`
	Parameters map[string]string `yaml:"parameters"`
	Networks   []string          `yaml:"networks"`

	Domains    []string     `yaml:"domains"`
	Allow      Allow        `yaml:"allow"`
	ScopeRules []ScopeRule  `yaml:"scope_rules"`
	Broker     []BrokerRule `yaml:"broker"`

	CheckEvery Duration `yaml:"check_every"`
	CheckBy    string   `yaml:"check_by"`
	Outage     Duration `yaml:"outage"`
	Detached   bool     `yaml:"detached"`

	Events ProviderEvents `yaml:"events"`
}

// ProviderEvents configures which security events of a provider are accepted.
type ProviderEvents struct {
	Audience        []string `yaml:"audience"`
	Issuer          string   `yaml:"issuer"`
	KeysURL         string   `yaml:"keys_url"`
	BearerToken     Secret   `yaml:"bearer_token"`
	BearerTokenFile string   `yaml:"bearer_token_file" env:"-"`
}

// Allow says who may sign in. Every kind that is set must match. Within one kind, one match is
// enough.
type Allow struct {
	Domains       []string `yaml:"domains"`
	Emails        []string `yaml:"emails"`
	Groups        []string `yaml:"groups"`
	Organizations []string `yaml:"organizations"`
	Teams         []string `yaml:"teams"`
	Tenants       []string `yaml:"tenants"`
	Expression    string   `yaml:"expression"`
}

// ScopeRule restricts scopes to some users.
type ScopeRule struct {
	Resource   string   `yaml:"resource"`
	Scopes     []string `yaml:"scopes"`
	Groups     []string `yaml:"groups"`
	Expression string   `yaml:"expression"`
}

// BrokerRule lets a resource server get the provider's tokens.
type BrokerRule struct {
	Resource string   `yaml:"resource"`
	Scopes   []string `yaml:"scopes"`
}

// Connectors returns the configured providers. Validate has checked the parsed values.
func (c *Config) Connectors() []thirdparty.Connector {
	var out []thirdparty.Connector
	for _, p := range c.ThirdParty {
		out = append(out, p.connector())
	}
	return out
}

// ProviderIDs returns the IDs of the configured providers.
func (c *Config) ProviderIDs() (ids []string) {
	for _, p := range c.ThirdParty {
		ids = append(ids, p.ID)
	}
	return ids
}

func (p Connector) connector() thirdparty.Connector {
	out := thirdparty.Connector{
		ID: p.ID, Type: p.Type, Name: p.Name, Icon: p.Icon,
		ClientID: p.ClientID, ClientSecret: string(p.ClientSecret), ClientAuth: p.ClientAuth,
		Key: string(p.Key), KeyID: p.KeyID, TeamID: p.TeamID,
		Issuer: p.Issuer, BaseURL: p.BaseURL, Tenant: p.Tenant,
		AuthorizationURL: p.AuthorizationURL, TokenURL: p.TokenURL, UserInfoURL: p.UserInfoURL,
		RevocationURL: p.RevocationURL, IntrospectionURL: p.IntrospectionURL,
		Claims: p.Claims, Scopes: p.Scopes, Parameters: p.Parameters, Domains: p.Domains,
		Allow:      thirdparty.Rules(p.Allow),
		CheckEvery: time.Duration(p.CheckEvery), CheckBy: p.CheckBy, Outage: time.Duration(p.Outage),
		Detached: p.Detached,
		Events: thirdparty.Events{
			Audience: p.Events.Audience, Issuer: p.Events.Issuer, KeysURL: p.Events.KeysURL,
			BearerToken: string(p.Events.BearerToken),
		},
	}
	for _, n := range p.Networks {
		if prefix, err := parseNetwork(n); err == nil {
			out.Networks = append(out.Networks, prefix)
		}
	}
	for _, r := range p.ScopeRules {
		out.ScopeRules = append(out.ScopeRules,
			thirdparty.ScopeRule{
				Resource: canonical(r.Resource), Scopes: r.Scopes, Groups: r.Groups, Expression: r.Expression,
			})
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

// SecretFiles returns the files that contain secrets, by key.
func (c *Config) SecretFiles() map[string]string {
	out := map[string]string{}
	for i, p := range c.ThirdParty {
		for key, file := range map[string]string{
			"client_secret_file": p.ClientSecretFile, "key_file": p.KeyFile,
			"events.bearer_token_file": p.Events.BearerTokenFile,
		} {
			if file != "" {
				out[fmt.Sprintf("thirdparty[%d].%s", i, key)] = file
			}
		}
	}
	for _, s := range c.fileSecrets() {
		if *s.file != "" {
			out[s.key+"_file"] = *s.file
		}
	}
	for key, file := range c.secretFiles {
		out[key] = file
	}
	return out
}

// readSecretFiles reads the secrets that the configuration file names files for. The environment
// takes precedence.
func (l *Loaded) readSecretFiles() error {
	for i := range l.ThirdParty {
		p := &l.ThirdParty[i]
		for _, s := range []struct {
			key   string
			value *Secret
			file  string
		}{
			{"client_secret", &p.ClientSecret, p.ClientSecretFile},
			{"key", &p.Key, p.KeyFile},
			{"events.bearer_token", &p.Events.BearerToken, p.Events.BearerTokenFile},
		} {
			path := fmt.Sprintf("thirdparty.%d.%s", i, s.key)
			if err := l.readSecretFile(fmt.Sprintf("thirdparty[%d].%s", i, s.key), path, s.value, s.file); err != nil {
				return err
			}
		}
	}
	for _, s := range l.fileSecrets() {
		if err := l.readSecretFile(s.key, s.key, s.value, *s.file); err != nil {
			return err
		}
	}
	return nil
}

// readSecretFile reads a secret from a file. key is its name in messages, and path its name in
// origins.
func (l *Loaded) readSecretFile(key, path string, value *Secret, file string) error {
	_, fromEnv := l.origins[path]
	fromEnv = fromEnv && strings.HasPrefix(l.origins[path], "$")
	switch {
	case file == "" || fromEnv:
		return nil
	case *value != "":
		return fmt.Errorf("%s and %s_file are both set; set one", key, key)
	}
	if why := misspelling(key+"_file", file); why != "" {
		return fmt.Errorf("%s_file: %s", key, why)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s_file: %w", key, err)
	}
	*value = Secret(strings.TrimRight(string(b), "\r\n"))
	l.origins[path] = path[strings.LastIndexByte(path, '.')+1:] + "_file"
	return nil
}

func (c *Config) validateConnectors(add func(string, string, ...any)) {
	ids := map[string]bool{}
	for i, p := range c.ThirdParty {
		key := fmt.Sprintf("thirdparty[%d]", i)
		if p.ID != "" && ids[p.ID] {
			add(key+".id", "%q is listed twice", p.ID)
		}
		ids[p.ID] = true
		p.validate(func(sub, format string, args ...any) { add(key+"."+sub, format, args...) })
		if err := p.connector().Validate(); err != nil {
			add(key, "%s", ofConnector(err))
		}
	}
	if d := c.Login.DefaultProvider; d != "" && !ids[d] {
		add("login.default_provider", "%q is not the id of a provider under thirdparty", d)
	}
	if !c.Login.Local && len(c.ThirdParty) == 0 {
		add("login.local", "is false, and there is no provider under thirdparty: no one could sign in")
	}
}

// ofConnector returns the message of a connector's error, without the part that repeats the key.
func ofConnector(err error) string {
	text := strings.TrimPrefix(err.Error(), thirdparty.ErrConfig.Error()+": ")
	if strings.HasPrefix(text, "thirdparty \"") {
		_, text, _ = strings.Cut(text, "\": ")
	}
	return text
}

// validate checks the values parsed here. The connector itself checks the rest.
func (p Connector) validate(add func(string, string, ...any)) {
	for i, n := range p.Networks {
		if _, err := parseNetwork(n); err != nil {
			add(fmt.Sprintf("networks[%d]", i), "%q is not an address or network such as 10.0.0.0/8", n)
		}
	}
	resource := func(key, uri string) {
		if _, err := oauth.CanonicalResource(uri); err != nil {
			add(key, "%q: %v", uri, err)
		}
	}
	for i, r := range p.ScopeRules {
		if r.Resource != "" {
			resource(fmt.Sprintf("scope_rules[%d].resource", i), r.Resource)
		}
	}
	for i, r := range p.Broker {
		resource(fmt.Sprintf("broker[%d].resource", i), r.Resource)
	}
	if p.CheckEvery != 0 { // otherwise the type's default
		checkBetween(add, "check_every", p.CheckEvery, time.Second, 24*time.Hour)
	}
	if p.Outage != 0 {
		checkBetween(add, "outage", p.Outage, time.Second, 7*24*time.Hour)
	}
}
