package config

import (
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/trust"
)

// Trust is a trusted issuer: storage.TrustEntry in the form of a file.
type Trust struct {
	ID     string `yaml:"id"`
	Kind   string `yaml:"kind"` // enterprise, workload
	Issuer string `yaml:"issuer"`
	// Preset names a known kind of issuer. Parameters restrict it.
	Preset     string            `yaml:"preset"`
	Parameters map[string]string `yaml:"parameters"`
	// The source of the keys. By default, the issuer's metadata names it.
	JWKSURL   string   `yaml:"jwks_url"`
	JWKSFile  string   `yaml:"jwks_file"`
	CAFile    string   `yaml:"ca_file"`
	TokenFile string   `yaml:"token_file" env:"-"` // here _FILE belongs to the name, not to a secret
	Networks  []string `yaml:"networks"`

	AudienceAliases []string     `yaml:"audience_aliases"`
	Match           []TrustMatch `yaml:"match"`
	Resources       []string     `yaml:"resources"`
	Scopes          []string     `yaml:"scopes"`
	MaxTTL          Duration     `yaml:"max_ttl"`
	Subject         string       `yaml:"subject"`
	CreatePeople    bool         `yaml:"create_people"`
	EmailDomains    []string     `yaml:"email_domains"`
	SAMLIssuers     []string     `yaml:"saml_issuers"`
	Resubmit        bool         `yaml:"resubmit"`
	RequireJTI      string       `yaml:"require_jti"` // true or false; "" for the preset's value, or true
	AllowPublic     bool         `yaml:"allow_public"`
	EventAudience   []string     `yaml:"event_audience"`
}

// TrustMatch is a rule about a claim, or an expression.
type TrustMatch struct {
	Claim      string `yaml:"claim"`
	Equals     string `yaml:"equals"`
	Glob       string `yaml:"glob"`
	Expression string `yaml:"expression"`
}

// TrustEntries returns the configured trusted issuers.
func (c *Config) TrustEntries() []storage.TrustEntry {
	var out []storage.TrustEntry
	for _, t := range c.Trust {
		out = append(out, t.entry())
	}
	return out
}

func (t Trust) entry() storage.TrustEntry {
	e := storage.TrustEntry{
		ID: t.ID, Kind: storage.TrustKind(t.Kind), Issuer: t.Issuer, Config: true,
		TrustRules: storage.TrustRules{
			Preset: t.Preset, Parameters: t.Parameters, JWKSURL: t.JWKSURL, JWKSFile: t.JWKSFile,
			CAFile: t.CAFile, TokenFile: t.TokenFile, Networks: t.Networks,
			AudienceAliases: t.AudienceAliases, Resources: t.Resources, Scopes: t.Scopes,
			MaxTTL: time.Duration(t.MaxTTL), Subject: t.Subject, CreatePeople: t.CreatePeople,
			EmailDomains: t.EmailDomains, SAMLIssuers: t.SAMLIssuers, Resubmit: t.Resubmit,
			AllowPublic: t.AllowPublic, EventAudience: t.EventAudience,
		},
	}
	if t.RequireJTI != "" {
		required := t.RequireJTI == "true"
		e.RequireJTI = &required
	}
	for _, m := range t.Match {
		e.Match = append(e.Match, storage.TrustMatch(m))
	}
	return e
}

// validateTrust checks each entry, and then all of them together.
func (c *Config) validateTrust(add func(string, string, ...any)) {
	good := true
	for i, t := range c.Trust {
		key := fmt.Sprintf("trust[%d]", i)
		if t.RequireJTI != "" && t.RequireJTI != "true" && t.RequireJTI != "false" {
			add(key+".require_jti", "%q is not one of true, false", t.RequireJTI)
		}
		if _, err := trust.Check(t.entry()); err != nil {
			add(key, "%s", err)
			good = false
		}
	}
	if good {
		if err := trust.CheckAll(c.Issuer, c.TrustEntries()); err != nil {
			add("trust", "%s", err)
		}
	}
}
