package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/mcp-authd/mcp-authd/internal/testkit/idptest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	deskRedirect = "http://localhost:3142/callback"
	agentSecret  = "the secret of the agent at the partner, of enough length"
)

// company is one of our installations. Its users sign in through node-oidc-provider. It asserts
// their identity to a partner, another installation, which trusts it and receives its security
// events.
type company struct {
	*installation
	up      *idptest.Provider
	desk    *oauthex.ClientCredentials
	partner *installation
}

func newCompany(t *testing.T) *company {
	t.Helper()
	c := &company{installation: plan(t), partner: plan(t)}
	rule := func(scope, group string) map[string]any {
		return map[string]any{"resource": c.partner.mcpURL, "scopes": []string{scope}, "groups": []string{group}}
	}
	c.up = c.node("node", idptest.Options{}, map[string]any{
		"scopes":      []string{"openid", "email", "profile", "groups"},
		"scope_rules": []any{rule("mcp", "staff"), rule("notes:write", "editors")},
	})
	c.config["events"] = map[string]any{"receivers": []any{map[string]any{
		"id": "partner", "url": c.partner.issuer + "/events", "audience": c.partner.issuer,
		"networks": []string{"127.0.0.0/8"},
	}}}
	delete(c.partner.config, "login")
	c.partner.config["trust"] = []any{map[string]any{
		"id": "company", "kind": "enterprise", "issuer": c.issuer, "create_people": true,
		"event_audience": []string{c.partner.issuer},
	}}
	c.partner.config["clients"] = append(c.partner.config["clients"].([]any), map[string]any{
		"id": "agent", "name": "Agent", "secret": agentSecret, "grant_types": []string{oauth.GrantJWTBearer},
	})
	c.start()
	c.partner.start()
	var desk struct{ ID, Secret string }
	if err := json.Unmarshal(c.command(t, "client", "add", "--id", "desk", "--name", "Desk", "--scope", "openid",
		"--auth-method", "client_secret_basic", "--redirect-uri", deskRedirect, "--json"), &desk); err != nil {
		t.Fatal(err)
	}
	c.desk = credentials(desk.ID, desk.Secret)
	c.command(t, "trust", "issue", "add", c.partner.issuer, "--resource", c.partner.mcpURL, "--scope", "mcp",
		"--scope", "notes:write", "--client", "desk=agent")
	return c
}

func credentials(id, secret string) *oauthex.ClientCredentials {
	return &oauthex.ClientCredentials{
		ClientID: id, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: secret},
	}
}

// command runs an operator command.
func (i *installation) command(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(program.Authd(t), append(args, "--config", i.configFile())...).Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out
}

// signIn signs in a user at the desk, and returns the desk's tokens.
func (c *company) signIn(ctx context.Context, p *idptest.Person, scopes ...string) (*oauth2.Token, error) {
	return extauth.PerformOIDCLogin(ctx, &extauth.OIDCLoginConfig{
		IssuerURL: c.issuer, Credentials: c.desk, RedirectURL: deskRedirect, Scopes: append(scopes, "openid"),
	}, func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		back, err := p.Visit(args.URL, deskRedirect)
		if err != nil {
			return nil, err
		}
		q := back.Query()
		return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
	})
}

// exchange exchanges an ID token or a refresh token for an ID-JAG for the partner.
func (c *company) exchange(t *testing.T, kind, token string) (status int, out map[string]any) {
	t.Helper()
	return post(t, c.issuer+"/token", url.Values{
		"grant_type": {oauth.GrantTokenExchange}, "requested_token_type": {oauth.TokenTypeIDJAG},
		"subject_token": {token}, "subject_token_type": {kind}, "audience": {c.partner.issuer},
		"resource": {c.partner.mcpURL}, "client_id": {c.desk.ClientID},
		"client_secret": {c.desk.ClientSecretAuth.ClientSecret},
	})
}

// admitted exchanges an ID-JAG for an access token of the partner.
func (c *company) admitted(t *testing.T, out map[string]any) string {
	t.Helper()
	assertion, _ := out["access_token"].(string)
	status, got := post(t, c.partner.issuer+"/token", url.Values{
		"grant_type": {oauth.GrantJWTBearer}, "assertion": {assertion}, "client_id": {"agent"},
		"client_secret": {agentSecret},
	})
	token, _ := got["access_token"].(string)
	if status != http.StatusOK || got["scope"] != "mcp" {
		t.Fatalf("got %d %v", status, got)
	}
	c.partner.lives(t, token)
	return token
}

// TestCompany: AS-196 AS-244. A user signs in at a real provider, one of our servers asserts the
// identity, and another one accepts it. Revocation at the provider takes effect there.
func TestCompany(t *testing.T) {
	lane.Long(t, "test/e2e has two servers of ours")
	t.Parallel()
	c := newCompany(t)
	alice := idptest.NewPerson(idptest.Alice)
	t.Run("AS-179 AS-196 from the provider by way of two servers to a tool", func(t *testing.T) {
		handler, err := extauth.NewEnterpriseHandler(&extauth.EnterpriseHandlerConfig{
			IdPIssuerURL: c.issuer, IdPCredentials: c.desk, MCPAuthServerURL: c.partner.issuer,
			MCPResourceURI: c.partner.mcpURL, MCPCredentials: credentials("agent", agentSecret),
			IDTokenFetcher: func(ctx context.Context) (*oauth2.Token, error) { return c.signIn(ctx, alice) },
		})
		if err != nil {
			t.Fatal(err)
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "desk", Version: "1"}, nil).Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: c.partner.mcpURL, OAuthHandler: handler}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		who := call[caller](t, &client{ClientSession: session}, "whoami", nil)
		if !strings.HasPrefix(who.Subject, "usr_") || who.Client != "agent" ||
			!slices.Equal(who.Scopes, []string{"mcp"}) {
			t.Errorf("got %+v; the provider's rules give staff only mcp", who)
		}
		if n := c.up.TokenCalls("authorization_code"); n != 1 {
			t.Errorf("the provider redeemed %d codes", n)
		}
	})
	t.Run("AS-244 who the rules give nothing gets no assertion", func(t *testing.T) {
		out, err := c.signIn(t.Context(), idptest.NewPerson(idptest.Bob))
		if err != nil {
			t.Fatal(err)
		}
		status, got := c.exchange(t, oauth.TokenTypeID, out.Extra("id_token").(string))
		if status != http.StatusBadRequest || got["error"] != "access_denied" {
			t.Errorf("got %d %v", status, got)
		}
	})
	for name, end := range map[string]func() error{
		"signed out at the provider, which tells us": func() error {
			_, err := alice.Visit(c.up.SessionEnd, "there is no such place")
			if errors.Is(err, idptest.ErrNoWay) {
				return nil
			}
			return err
		},
		"revoked at the provider, which is asked": func() error { c.up.Revoke(t, idptest.Alice); return nil },
	} {
		t.Run("AS-196 AS-218 AS-245 "+name, func(t *testing.T) {
			// An end also ends the assertions of the same second, because their iat has no
			// fractions.
			second := time.Now().Unix()
			wait.Until(t, "the next second begins", func() bool { return time.Now().Unix() > second })
			out, err := c.signIn(t.Context(), alice, "offline_access")
			if err != nil {
				t.Fatal(err)
			}
			tokens := map[string]string{
				oauth.TokenTypeID: out.Extra("id_token").(string), oauth.TokenTypeRefresh: out.RefreshToken,
			}
			var there []string
			for kind, token := range tokens {
				status, got := c.exchange(t, kind, token)
				if status != http.StatusOK {
					t.Fatalf("%s: got %d %v", kind, status, got)
				}
				there = append(there, c.admitted(t, got))
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			for kind, token := range tokens {
				wait.Until(t, "no assertion is given", func() bool {
					status, got := c.exchange(t, kind, token)
					return status == http.StatusBadRequest && got["error"] == "invalid_grant"
				})
			}
			for _, token := range there {
				c.partner.dies(t, token)
			}
		})
	}
}
