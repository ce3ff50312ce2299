package dcr_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestMint(t *testing.T) {
	web := []string{"https://app.example/cb"}
	for _, tt := range []struct {
		name   string
		spec   dcr.Spec
		method string
		grants []string
	}{
		{"AS-169 AS-170: a public client by default", dcr.Spec{RedirectURIs: web}, "none",
			[]string{"authorization_code", "refresh_token"}},
		{"AS-170: a confidential client", dcr.Spec{RedirectURIs: web, AuthMethod: "client_secret_post"},
			"client_secret_post", []string{"authorization_code", "refresh_token"}},
		{"AS-171: a machine", dcr.Spec{Scopes: oauth.Scopes{"mcp"}}, "client_secret_basic",
			[]string{"client_credentials"}},
		{"a person's client that also acts by itself",
			dcr.Spec{RedirectURIs: web, GrantTypes: []string{"authorization_code", "client_credentials"}},
			"client_secret_basic", []string{"authorization_code", "client_credentials"}},
		{"AS-240: a device, by the short name", dcr.Spec{GrantTypes: []string{"device", "refresh_token"}}, "none",
			[]string{oauth.GrantDeviceCode, "refresh_token"}},
		{"RFC 8693: a server that exchanges tokens, by the short name",
			dcr.Spec{GrantTypes: []string{"token-exchange"}}, "client_secret_basic",
			[]string{oauth.GrantTokenExchange}},
		{"an id of the operator's choice", dcr.Spec{ID: "ci.build-1", RedirectURIs: web}, "none",
			[]string{"authorization_code", "refresh_token"}},
		{"a private-use scheme by policy",
			dcr.Spec{RedirectURIs: []string{"myapp://cb"},
				Redirects: oauth.RedirectPolicy{PrivateUseSchemes: []string{"myapp"}}}, "none",
			[]string{"authorization_code", "refresh_token"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Now, tt.spec.Name = epoch, " Ann\u202e "
			c, secret, err := dcr.Mint(tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			if c.AuthMethod != tt.method || !slices.Equal(c.GrantTypes, tt.grants) ||
				c.Source != storage.SourceStatic || c.Name != "Ann" || !c.CreatedAt.Equal(epoch) {
				t.Errorf("got %+v", c)
			}
			if tt.spec.ID != "" && c.ID != tt.spec.ID || tt.spec.ID == "" && !strings.HasPrefix(c.ID, "mcp_") {
				t.Errorf("id %q", c.ID)
			}
			if (secret == "") != (tt.method == "none") ||
				secret != "" && *c.SecretHash != storage.Hash(secrets.Hash(secret)) {
				t.Errorf("secret %q does not fit %+v", secret, c)
			}
		})
	}
	t.Run("AS-242: a client that has to push its requests", func(t *testing.T) {
		c, _, err := dcr.Mint(dcr.Spec{RedirectURIs: web, RequirePAR: true, Now: epoch})
		if err != nil || !c.Demands().PushedRequests {
			t.Errorf("got %+v, %v", c.Demands(), err)
		}
		if c, _, err = dcr.Mint(dcr.Spec{RedirectURIs: web, Now: epoch}); err != nil || c.Demands().PushedRequests {
			t.Errorf("got %+v, %v", c.Demands(), err)
		}
		if _, _, err = dcr.Mint(dcr.Spec{RequirePAR: true, Now: epoch}); err == nil {
			t.Error("a machine has no request to push")
		}
	})
	t.Run("resources are canonical", func(t *testing.T) {
		c, _, err := dcr.Mint(dcr.Spec{Resources: []string{"HTTPS://MCP.Example.com/mcp/"}, Now: epoch})
		if err != nil || !slices.Equal(c.Resources, []string{"https://mcp.example.com/mcp"}) {
			t.Errorf("got %v, %v", c.Resources, err)
		}
	})
}

func TestMintRefuses(t *testing.T) {
	web := []string{"https://app.example/cb"}
	for name, spec := range map[string]dcr.Spec{
		"AS-120 RFC 9068 5: an id like a user's": {ID: "usr_1", RedirectURIs: web},
		"AS-146: an id like a URL":               {ID: "https://c.example/id", RedirectURIs: web},
		"an id that needs escaping":              {ID: "a b", RedirectURIs: web},
		"a long id":                              {ID: strings.Repeat("a", 300), RedirectURIs: web},
		"OAuth 2.1 4.2: client_credentials without a secret": {
			GrantTypes: []string{"client_credentials"}, AuthMethod: "none",
		},
		"RFC 8693: token-exchange without a secret": {
			GrantTypes: []string{"token-exchange"}, AuthMethod: "none",
		},
		"AS-138: authorization_code without redirect URI": {GrantTypes: []string{"authorization_code"}},
		"redirect URI without authorization_code": {
			GrantTypes: []string{"client_credentials"}, RedirectURIs: web,
		},
		"refresh_token alone": {
			GrantTypes: []string{"refresh_token"}, RedirectURIs: web,
		},
		"AS-03: implicit": {
			GrantTypes: []string{"authorization_code", "implicit"}, RedirectURIs: web,
		},
		"AS-56: http redirect":               {RedirectURIs: []string{"http://app.example/cb"}},
		"an unknown method":                  {RedirectURIs: web, AuthMethod: "magic"},
		"AS-104: a relative resource":        {Resources: []string{"/mcp"}},
		"RFC 6749 3.3: a scope with a space": {Scopes: oauth.Scopes{"a b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c, _, err := dcr.Mint(spec); err == nil {
				t.Errorf("got %+v, want an error", c)
			}
		})
	}
}
