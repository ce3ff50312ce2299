package thirdparty

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

func TestValidate(t *testing.T) {
	good := Connector{ID: "acme", Type: "oidc", Issuer: "https://idp.example.com", ClientID: "c", ClientSecret: "s"}
	plain := Connector{
		ID: "acme", Type: "oauth2", ClientID: "c", ClientSecret: "s", AuthorizationURL: "https://a.example.com/a",
		TokenURL: "https://a.example.com/t", UserInfoURL: "https://a.example.com/u",
	}
	google := Connector{ID: "google", Type: "google", ClientID: "c", ClientSecret: "s"}
	entra := Connector{ID: "entra", Type: "entra", Tenant: "common", ClientID: "c", ClientSecret: "s"}
	_, p256 := appleKey(t)
	apple := Connector{ID: "apple", Type: "apple", ClientID: "c", TeamID: "T", KeyID: "K", Key: p256}
	for _, tt := range []struct {
		name  string
		c     Connector
		edit  func(*Connector)
		field string // "": valid
	}{
		{"good", good, func(*Connector) {}, ""},
		{"public client", good, func(c *Connector) { c.ClientSecret = "" }, ""},
		{"loopback without TLS", good, func(c *Connector) { c.Issuer = "http://localhost:5556/dex" }, ""},
		{"no id", good, func(c *Connector) { c.ID = "" }, "id"},
		{"id with capitals", good, func(c *Connector) { c.ID = "Acme" }, "id"},
		{"id with a slash", good, func(c *Connector) { c.ID = "a/b" }, "id"},
		{"id of 41", good, func(c *Connector) { c.ID = strings.Repeat("a", 41) }, "id"},
		{"id that ends with a hyphen", good, func(c *Connector) { c.ID = "a-" }, "id"},
		{"no type", good, func(c *Connector) { c.Type = "" }, "type"},
		{"unknown type", good, func(c *Connector) { c.Type = "facebook" }, "type"},
		{"no client id", good, func(c *Connector) { c.ClientID = "" }, "client_id"},
		{"no issuer", good, func(c *Connector) { c.Issuer = "" }, "issuer"},
		{"issuer without TLS", good, func(c *Connector) { c.Issuer = "http://idp.example.com" }, "issuer"},
		{"issuer that is a name", good, func(c *Connector) { c.Issuer = "idp.example.com" }, "issuer"},
		{"issuer with a query", good, func(c *Connector) { c.Issuer = "https://idp.example.com?x=1" }, "issuer"},
		{"issuer with a password", good, func(c *Connector) { c.Issuer = "https://a:b@idp.example.com" }, "issuer"},
		{"issuer with a fragment", good, func(c *Connector) { c.Issuer = "https://idp.example.com#x" }, "issuer"},
		{"issuer of Google", google, func(c *Connector) { c.Issuer = "https://accounts.google.com" }, "issuer"},
		{"no secret for Google", google, func(c *Connector) { c.ClientSecret = "" }, "client_secret"},
		{"base URL of Google", google, func(c *Connector) { c.BaseURL = "https://google.example.com" }, "base_url"},
		{"base URL without TLS",
			Connector{ID: "gh", Type: "github", ClientID: "c", ClientSecret: "s", BaseURL: "http://git.example.com"},
			func(*Connector) {}, "base_url"},
		{"tenant for Google", google, func(c *Connector) { c.Tenant = "common" }, "tenant"},
		{"no tenant for Entra", entra, func(c *Connector) { c.Tenant = "" }, "tenant"},
		{"tenant with a slash", entra, func(c *Connector) { c.Tenant = "a/../b" }, "tenant"},
		{"tenants rule elsewhere", google,
			func(c *Connector) { c.Allow.Tenants = []string{"11111111-2222-3333-4444-555555555555"} }, "allow.tenants"},
		{"tenants rule with a name", entra, func(c *Connector) { c.Allow.Tenants = []string{"acme"} }, "allow.tenants"},
		{"teams rule elsewhere", google, func(c *Connector) { c.Allow.Teams = []string{"a/b"} }, "allow.teams"},
		{"team without its organisation", good, func(c *Connector) { c.Allow.Teams = []string{"core"} }, "allow.teams"},
		{"organizations rule elsewhere", google, func(c *Connector) { c.Allow.Organizations = []string{"acme"} },
			"allow.organizations"},
		{"domain that is an address", good, func(c *Connector) { c.Allow.Domains = []string{"a@example.com"} },
			"allow.domains"},
		{"domain with a star", good, func(c *Connector) { c.Allow.Domains = []string{"*.example.com"} },
			"allow.domains"},
		{"address that is a domain", good, func(c *Connector) { c.Allow.Emails = []string{"example.com"} },
			"allow.emails"},
		{"empty group", good, func(c *Connector) { c.Allow.Groups = []string{""} }, "allow.groups"},
		{"an invalid expression", good, func(c *Connector) { c.Allow.Expression = "claims.a &&" },
			"allow.expression"},
		{"scope rule without people", good,
			func(c *Connector) { c.ScopeRules = []ScopeRule{{Scopes: oauth.Scopes{"a"}}} }, "scope_rules[0]"},
		{"scope rule without scopes", good,
			func(c *Connector) { c.ScopeRules = []ScopeRule{{Groups: []string{"a"}}} }, "scope_rules[0].scopes"},
		{"scope rule with a bad expression", good,
			func(c *Connector) { c.ScopeRules = []ScopeRule{{Scopes: oauth.Scopes{"a"}, Expression: "x"}} },
			"scope_rules[0].expression"},
		{"broker rule without resource", good,
			func(c *Connector) { c.Broker = []BrokerRule{{Scopes: oauth.Scopes{"a"}}} }, "broker[0].resource"},
		{"broker rule without scopes", good,
			func(c *Connector) { c.Broker = []BrokerRule{{Resource: "https://mcp.example.com"}} }, "broker[0].scopes"},
		{"scope that is two", good, func(c *Connector) { c.Scopes = oauth.Scopes{"a b"} }, "scopes"},
		{"resource as a parameter", good,
			func(c *Connector) { c.Parameters = map[string]string{"resource": "https://x.example.com"} }, "parameters"},
		{"state as a parameter", good, func(c *Connector) { c.Parameters = map[string]string{"state": "x"} },
			"parameters"},
		{"response mode", good, func(c *Connector) { c.Parameters = map[string]string{"response_mode": "fragment"} },
			"parameters"},
		{"routing domain", good, func(c *Connector) { c.Domains = []string{"@example.com"} }, "domains[0]"},
		{"unknown client_auth", good, func(c *Connector) { c.ClientAuth = "magic" }, "client_auth"},
		{"jwt elsewhere", good, func(c *Connector) { c.ClientAuth = "jwt" }, "client_auth"},
		{"none with a secret", good, func(c *Connector) { c.ClientAuth = "none" }, "client_auth"},
		{"post without a secret", good, func(c *Connector) { c.ClientAuth, c.ClientSecret = "post", "" },
			"client_secret"},
		{"key elsewhere", good, func(c *Connector) { c.Key = p256 }, "key"},
		{"an invalid key", apple, func(c *Connector) { c.Key = "key" }, "key"},
		{"apple", apple, func(*Connector) {}, ""},
		{"plain", plain, func(*Connector) {}, ""},
		{"plain without user info", plain, func(c *Connector) { c.UserInfoURL = "" }, "user_info_url"},
		{"token URL without TLS", plain, func(c *Connector) { c.TokenURL = "http://a.example.com/t" }, "token_url"},
		{"authorization URL that is script", plain, func(c *Connector) { c.AuthorizationURL = "javascript:alert(1)" },
			"authorization_url"},
		{"an invalid revocation URL", plain, func(c *Connector) { c.RevocationURL = "/revoke" }, "revocation_url"},
		{"no way to check", good, func(c *Connector) { c.CheckBy = "hope" }, "check_by"},
		{"check what is detached", good, func(c *Connector) { c.CheckBy, c.Detached = "refresh", true }, "check_by"},
		{"negative interval", good, func(c *Connector) { c.CheckEvery = -time.Second }, "check_every"},
		{"negative outage", good, func(c *Connector) { c.Outage = -time.Second }, "outage"},
	} {
		t.Run("AS-223 configuration: "+tt.name, func(t *testing.T) {
			tt.edit(&tt.c)
			err := tt.c.Validate()
			if tt.field == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), " "+tt.field+":") {
				t.Errorf("got %v, want one about %s", err, tt.field)
			}
			if err != nil && strings.Contains(err.Error(), "PRIVATE KEY") {
				t.Error("the key is in the message")
			}
			if _, again := newConnector(tt.c, issuer, provider.Options{}); again == nil {
				t.Error("newConnector accepts it")
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	c := ready(t,
		Connector{ID: "google", Type: "google", ClientID: "c", ClientSecret: "s", Domains: []string{"Example.com"}})
	if c.Name != "Google" || c.Icon != "google" || c.CheckEvery != 5*time.Minute || c.Outage != time.Hour ||
		c.Issuer != "https://accounts.google.com" {
		t.Errorf("got %q %q %v %v %q", c.Name, c.Icon, c.CheckEvery, c.Outage, c.Issuer)
	}
	if c.redirectURI() != issuer+"/callback/google" || c.public().Host != "accounts.google.com" {
		t.Errorf("got %q, %q", c.redirectURI(), c.public().Host)
	}
	if !c.routes("example.com") || c.routes("x.example.com") {
		t.Error("routing by domain")
	}
	_, key := appleKey(t)
	apple := ready(t, Connector{ID: "apple", Type: "apple", ClientID: "c", TeamID: "T", KeyID: "K", Key: key})
	if apple.CheckEvery != 24*time.Hour || apple.Outage < apple.CheckEvery {
		t.Errorf("Apple is asked every %v", apple.CheckEvery)
	}
	own := ready(t,
		Connector{ID: "x", Type: "oidc", Issuer: "https://idp.example.com", ClientID: "c",
			Scopes: oauth.Scopes{"email"}})
	if got := own.Scopes.String(); got != "openid email" {
		t.Errorf("got %q, want openid added", got)
	}
}
