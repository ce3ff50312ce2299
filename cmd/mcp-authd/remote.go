package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// The variables of the environment that say which server carries a command out, and as whom.
const (
	envRemote       = "MCP_AUTHD_REMOTE"
	envToken        = "MCP_AUTHD_TOKEN"
	envClientID     = "MCP_AUTHD_CLIENT_ID"
	envClientSecret = "MCP_AUTHD_CLIENT_SECRET"
)

// elsewhere lets a command be carried out by another server, which --remote or the environment names.
// Flags that find an installation on this machine go before the environment.
func elsewhere(s std, c *cobra.Command, run func(*cobra.Command, admin.Caller, []string) error) {
	var server string
	c.Flags().StringVar(&server, "remote", "", "have the server at this URL do it (default: $"+envRemote+")")
	c.MarkFlagsMutuallyExclusive("remote", "config")
	c.MarkFlagsMutuallyExclusive("remote", "data")
	here := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if server == "" && !c.Flags().Changed("config") && !c.Flags().Changed("data") {
			server = lookup(s.environ, envRemote)
		}
		if server == "" {
			return here(c, args)
		}
		by, err := remote(c.Context(), s.environ, server)
		if err != nil {
			return err
		}
		return run(c, by, args)
	}
}

// remoteTimeout is how long another server may take for one operation.
const remoteTimeout = time.Minute

// remote is the server at an issuer. The token goes to it alone: redirects are not followed.
func remote(ctx context.Context, environ []string, issuer string) (admin.Caller, error) {
	u, err := url.Parse(strings.TrimSuffix(issuer, "/"))
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("--remote: %q is not the URL of a server", issuer)
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && oauth.IsLoopbackHost(u.Hostname())) {
		return nil, fmt.Errorf("--remote: %q is not an https URL, and a token would be read on the way", issuer)
	}
	plain := &http.Client{
		Timeout:       remoteTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	root := u.String() + "/api/v1"
	tokens, err := tokensFor(context.WithValue(ctx, oauth2.HTTPClient, plain), environ, u.String(), root)
	if err != nil {
		return nil, err
	}
	with := *plain
	with.Transport = &oauth2.Transport{Source: tokens}
	return &api.Client{Root: root, HTTP: &with}, nil
}

// tokensFor are those of the environment: a token, or those that a client gets for itself.
func tokensFor(ctx context.Context, environ []string, issuer, root string) (oauth2.TokenSource, error) {
	token, err := lookupSecret(environ, envToken)
	if err != nil {
		return nil, err
	}
	if token != "" {
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token}), nil
	}
	id := lookup(environ, envClientID)
	secret, err := lookupSecret(environ, envClientSecret)
	if err != nil {
		return nil, err
	}
	if id == "" || secret == "" {
		return nil, errors.New("--remote needs a token or a client: set $" + envToken + ", or $" + envClientID + " and $" +
			envClientSecret + " (see docs/api.md)")
	}
	return clientTokens{(&clientcredentials.Config{
		ClientID: id, ClientSecret: secret, TokenURL: issuer + "/token", AuthStyle: oauth2.AuthStyleInHeader,
		EndpointParams: url.Values{"resource": {root}},
	}).TokenSource(ctx)}, nil
}

// clientTokens says in the protocol's own word why there is no token.
type clientTokens struct{ oauth2.TokenSource }

func (c clientTokens) Token() (*oauth2.Token, error) {
	t, err := c.TokenSource.Token()
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.ErrorCode != "" {
		return nil, fmt.Errorf("the server gives the client no token: %s: %s", refused.ErrorCode, refused.ErrorDescription)
	}
	return t, err
}

// lookupSecret is lookup of a variable whose value may also be in the file that the one with _FILE names.
func lookupSecret(environ []string, name string) (string, error) {
	file := lookup(environ, name+"_FILE")
	if v := lookup(environ, name); v != "" || file == "" {
		return v, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("$%s_FILE: %w", name, err)
	}
	return strings.TrimSpace(string(text)), nil
}
