// Package config is the configuration of mcp-authd: one struct, filled from defaults, then a strict
// YAML file, then the environment, then flags. One walk over the struct serves the environment, the
// printed form and the origins, so that they cannot disagree.
package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/acme"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/mail"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Config is the whole configuration. keys.yaml explains each key to administrators.
// docs/reference/configuration.md and the JSON schema are generated from it.
type Config struct {
	// Issuer is the public URL of this server: https (http on localhost only), no
	// trailing slash. Clients compare it byte for byte.
	Issuer string `yaml:"issuer"`
	// Listen is the address of the public listener.
	Listen string `yaml:"listen"`
	// Management is the listener for health checks. It need not be public.
	Management Management `yaml:"management"`
	TLS        TLS        `yaml:"tls"`
	// Replica is the name of this server among the replicas. It defaults to the host name.
	Replica string `yaml:"replica"`
	Peers   Peers  `yaml:"peers"`
	// TrustedProxies lists the networks whose X-Forwarded-For is trusted.
	TrustedProxies []string `yaml:"trusted_proxies"`
	// DataDir contains the SQLite database and generated files.
	DataDir  string   `yaml:"data_dir"`
	Database Database `yaml:"database"`
	// SecretKey is the master key: at least 32 bytes, as base64 or hex. With SQLite, a missing key
	// is generated in the data directory.
	SecretKey Secret `yaml:"secret_key"`
	// SecretKeyOld lists earlier master keys, which can still decrypt older data.
	SecretKeyOld []Secret     `yaml:"secret_key_old"`
	Resources    []Resource   `yaml:"resources"`
	Tokens       Tokens       `yaml:"tokens"`
	DPoP         DPoP         `yaml:"dpop"`
	Limits       Limits       `yaml:"limits"`
	Keys         Keys         `yaml:"keys"`
	ProgramKeys  ProgramKeys  `yaml:"program_keys"`
	Helpers      Helpers      `yaml:"helpers"`
	Attempts     Attempts     `yaml:"attempts"`
	Sessions     Sessions     `yaml:"sessions"`
	Login        Login        `yaml:"login"`
	ThirdParty   []Connector  `yaml:"thirdparty"`
	Trust        []Trust      `yaml:"trust"`
	Registration Registration `yaml:"registration"`
	Mail         Mail         `yaml:"mail"`
	Notices      Notices      `yaml:"notices"`
	Events       Events       `yaml:"events"`
	Audit        Audit        `yaml:"audit"`
	Traces       Traces       `yaml:"traces"`
	API          API          `yaml:"api"`
	Console      Console      `yaml:"console"`
	Branding     Branding     `yaml:"branding"`
	Clients      []Client     `yaml:"clients"`
	Log          Log          `yaml:"log"`

	origins     map[string]string
	secretFiles map[string]string // files of secrets named by the environment, by variable
}

// Secret is a string that is never printed.
type Secret string

// Management configures the management listener.
type Management struct {
	Listen string `yaml:"listen"`
	// PProf serves Go profiles there.
	PProf bool `yaml:"pprof"`
}

// Database configures the store.
type Database struct {
	// URL is postgres://..., or the path of a SQLite file. It defaults to mcp-authd.db in the data
	// directory.
	URL Secret `yaml:"url"`
	// Migrate is auto, or off if administrators run "mcp-authd migrate up".
	Migrate string `yaml:"migrate"`
}

// Resource is a protected MCP server.
type Resource struct {
	URI  string `yaml:"uri"`
	Name string `yaml:"name"`
	// Aliases are additional URLs, so that one application can connect as several users.
	Aliases []string            `yaml:"aliases"`
	Scopes  []storage.ScopeText `yaml:"scopes"`
	DPoP    string              `yaml:"dpop"` // optional or required: its tokens are bound to a key
	// Tools lists the scopes that tools need beyond those of every call. It applies if this server
	// is the gateway to the MCP server.
	Tools []ToolRule `yaml:"tools"`
	// ToolsAccept says how to handle a tool whose MCP server has changed its description since it
	// was accepted.
	ToolsAccept string   `yaml:"tools_accept"` // report, hold, hold_new, off
	Upstream    Upstream `yaml:"upstream"`
	// Access says which users may have which scopes. Without rules, all users may have all scopes.
	Access []AccessRule `yaml:"access"`
}

// Sessions configures browser sign-ins.
type Sessions struct {
	TTL Duration `yaml:"ttl"`
}

// Log configures logging.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // auto, text, json
}

// Default returns the configuration of a server without any settings.
func Default(getenv func(string) string) *Config {
	return &Config{
		Issuer: "http://localhost:8414", Listen: "127.0.0.1:8414",
		Management:   Management{Listen: "127.0.0.1:9414"},
		TLS:          TLS{ACME: ACME{Directory: acme.LetsEncrypt, HTTPListen: ":80"}},
		DataDir:      defaultDataDir(getenv),
		Peers:        defaultPeers(),
		Database:     Database{Migrate: "auto"},
		Tokens:       defaultTokens(),
		DPoP:         defaultDPoP(),
		Limits:       defaultLimits(),
		Keys:         defaultKeys(),
		ProgramKeys:  defaultProgramKeys(),
		Helpers:      Helpers{Enabled: true},
		API:          API{Enabled: true, MCP: true},
		Attempts:     Attempts{Enabled: true, Keep: Duration(attempt.DefaultKeep)},
		Console:      defaultConsole(),
		Sessions:     Sessions{TTL: Duration(authserver.DefaultSessionTTL)},
		Login:        defaultLogin(),
		Registration: defaultRegistration(),
		Mail:         Mail{SMTP: SMTP{TLS: string(mail.STARTTLS)}},
		Audit:        defaultAudit(),
		Traces:       defaultTraces(),
		Log:          Log{Level: "info", Format: "auto"},
		origins:      map[string]string{},
	}
}

// Proxies returns the trusted proxies. Validate has checked them.
func (c *Config) Proxies() []netip.Prefix {
	var out []netip.Prefix
	for _, s := range c.TrustedProxies {
		if p, err := parseNetwork(s); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// TrustsAll returns those of TrustedProxies that contain every address of a family.
func (c *Config) TrustsAll() []string {
	var out []string
	for _, s := range c.TrustedProxies {
		if p, err := parseNetwork(s); err == nil && p.Bits() == 0 {
			out = append(out, s)
		}
	}
	return out
}

func parseNetwork(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

// Validate reports all errors, by key.
func (c *Config) Validate() error {
	misspelled := c.misspelled()
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(misspelled)) {
		errs = append(errs, misspelled[key])
	}
	add := func(key, format string, args ...any) {
		if misspelled[key] == nil {
			errs = append(errs, fmt.Errorf("%s: "+format+"%s", slices.Concat([]any{key}, args, []any{c.where(key)})...))
		}
	}
	if err := metadata.ValidateIssuer(c.Issuer); err != nil {
		add("issuer", "%s", strings.TrimPrefix(err.Error(), "metadata: "))
	}
	if !isAddress(c.Listen) {
		add("listen", "%q is not an address such as 127.0.0.1:8414", c.Listen)
	}
	if !isAddress(c.Management.Listen) && c.Management.Listen != "" {
		add("management.listen", "%q is not an address such as 127.0.0.1:9414", c.Management.Listen)
	}
	c.validateTLS(add)
	for i, p := range c.TrustedProxies {
		if _, err := parseNetwork(p); err != nil {
			add(fmt.Sprintf("trusted_proxies[%d]", i), "%q is not an address or network such as 10.0.0.0/8", p)
		}
	}
	oneOf := func(key, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			add(key, "%q is not one of %s", value, strings.Join(allowed, ", "))
		}
	}
	oneOf("database.migrate", c.Database.Migrate, "auto", "off")
	oneOf("tokens.algorithm", c.Tokens.Algorithm, "ES256", "EdDSA", "RS256")
	c.validateDPoP(oneOf)
	c.Limits.validate(oneOf)
	oneOf("audit.detail", c.Audit.Detail, "", DetailStandard, DetailFull)
	oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	oneOf("log.format", c.Log.Format, "auto", "text", "json")
	c.validateTokens(add)
	c.validateReplica(add)
	c.validatePeers(add)
	c.validateConsole(add)
	c.Registration.validate(add)
	c.validateResources(add)
	c.validateConnectors(add)
	c.validateTrust(add)
	c.validateLogin(add)
	c.validateNotices(add)
	c.validateEvents(add)
	c.Traces.validate(add)
	c.Audit.validate(add)
	c.validateAuditSinks(add)
	c.validateBranding(add)
	c.validateClients(add, oneOf)
	return errors.Join(errs...)
}

// isAddress reports whether s has the form of an address to listen on.
func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err != nil || port == "" {
		return false
	}
	_, err = net.LookupPort("tcp", port)
	return err == nil
}

func (c *Config) validateResources(add func(string, string, ...any)) {
	seen := map[string]bool{}
	for i, r := range c.Resources {
		key := fmt.Sprintf("resources[%d]", i)
		uri, err := oauth.CanonicalResource(r.URI)
		switch {
		case err != nil:
			add(key+".uri", "%q: %v", r.URI, err)
		case seen[uri]:
			add(key+".uri", "%q is listed twice", r.URI)
		}
		seen[uri] = true
		validateScopes(add, key, r.Scopes)
		r.validateUpstream(add, key)
		r.validateAccess(add, key)
	}
	for i, r := range c.Resources {
		r.validateAliases(add, fmt.Sprintf("resources[%d].aliases", i), seen)
	}
}

// validateAliases checks the aliases of one resource. seen contains the URIs of all resources, and
// receives the aliases.
func (r *Resource) validateAliases(add func(string, string, ...any), key string, seen map[string]bool) {
	if _, err := oauth.CanonicalResource(r.URI); err != nil {
		return // that error is reported separately
	}
	aliases, err := oauth.CanonicalAliases(r.URI, r.Aliases)
	if err != nil {
		add(key, "%v", err)
	}
	for _, alias := range aliases {
		if seen[alias] {
			add(key, "%q is the URL of another resource, or an alias of one", alias)
		}
		seen[alias] = true
	}
}

func validateScopes(add func(string, string, ...any), resource string, scopes []storage.ScopeText) {
	names := map[string]bool{}
	for j, s := range scopes {
		key := fmt.Sprintf("%s.scopes[%d].name", resource, j)
		switch {
		case !oauth.ValidScope(s.Name):
			add(key, "%q is not a scope (no spaces, quotes or backslashes)", s.Name)
		case s.Name == oauth.OfflineAccess:
			add(key, "%s is the server's own", s.Name)
		case oauth.Reserved(s.Name):
			add(key, "%q begins with %s, by which the server names a person's permission for one call",
				s.Name, oauth.ScopeClearance)
		case names[s.Name]:
			add(key, "%q is listed twice", s.Name)
		}
		names[s.Name] = true
	}
	for j, s := range scopes {
		if fault := policy.FaultOf(storage.Resource{Scopes: scopes}, s); fault != "" {
			add(fmt.Sprintf("%s.scopes[%d]", resource, j), "%q: %s", s.Name, fault)
		}
		for _, implied := range s.Implies {
			if !names[implied] {
				add(fmt.Sprintf("%s.scopes[%d].implies", resource, j),
					"%q is not a scope of this resource, which has %s", implied, scopesOf(scopes))
			}
		}
	}
}

func scopesOf(scopes []storage.ScopeText) string {
	if len(scopes) == 0 {
		return "none"
	}
	names := make([]string, 0, len(scopes))
	for _, s := range scopes {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// Duration is a time.Duration that can also be written in days: "30d".
type Duration time.Duration

// String implements fmt.Stringer.
func (d Duration) String() string {
	if day := 24 * time.Hour; d != 0 && time.Duration(d)%day == 0 {
		return fmt.Sprintf("%dd", time.Duration(d)/day)
	}
	return time.Duration(d).String()
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalYAML implements yaml.Unmarshaler. The library alone would omit the line number.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	err := fmt.Errorf("%q is not a duration such as 15m, 12h or 30d", n.Value)
	if n.Kind == yaml.ScalarNode {
		err = d.UnmarshalText([]byte(n.Value))
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	return nil
}

// UnmarshalText implements encoding.TextUnmarshaler, which the environment uses.
func (d *Duration) UnmarshalText(b []byte) error {
	s := string(b)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := time.ParseDuration(days + "h")
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 15m, 12h or 30d", s)
		}
		*d = Duration(24 * n)
		return nil
	}
	n, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 15m, 12h or 30d", s)
	}
	*d = Duration(n)
	return nil
}
