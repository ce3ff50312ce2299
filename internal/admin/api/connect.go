package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Credentials hold one of: a token for the API, a client that gets its own tokens, or a transport
// that adds a user's token to requests.
type Credentials struct {
	Token                  string
	ClientID, ClientSecret string
	By                     http.RoundTripper // nil to use one of the others
}

// remoteTimeout limits one operation on another server.
const remoteTimeout = time.Minute

// Connect returns a client of the server at an issuer. It sends nothing yet. The token goes only to
// that server: redirects are not followed. ctx is used for token requests.
func Connect(ctx context.Context, issuer string, c Credentials) (*Client, error) {
	root, err := Root(issuer)
	if err != nil {
		return nil, err
	}
	plain := &http.Client{
		Timeout:       remoteTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	with := *plain
	if c.By != nil {
		with.Transport, with.Timeout = c.By, 0 // a user needs longer
		return &Client{Root: root, HTTP: &with}, nil
	}
	with.Transport = &oauth2.Transport{
		Source: c.tokens(context.WithValue(ctx, oauth2.HTTPClient, plain), strings.TrimSuffix(issuer, "/"), root),
	}
	return &Client{Root: root, HTTP: &with}, nil
}

// Root returns the URL of the API of the server at an issuer.
func Root(issuer string) (string, error) {
	u, err := url.Parse(strings.TrimSuffix(issuer, "/"))
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf("%q is not the URL of a server", issuer)
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && oauth.IsLoopbackHost(u.Hostname())) {
		return "", fmt.Errorf("%q is not an https URL, and a token would be read on the way", issuer)
	}
	return u.String() + "/api/v1", nil
}

func (c Credentials) tokens(ctx context.Context, issuer, root string) oauth2.TokenSource {
	if c.Token != "" {
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: c.Token})
	}
	return clientTokens{(&clientcredentials.Config{
		ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: issuer + "/token",
		AuthStyle: oauth2.AuthStyleInHeader, EndpointParams: url.Values{"resource": {root}},
	}).TokenSource(ctx), root}
}

// clientTokens explains a refused token request by the protocol's error code.
type clientTokens struct {
	oauth2.TokenSource
	root string
}

// Token implements [oauth2.TokenSource].
func (c clientTokens) Token() (*oauth2.Token, error) {
	t, err := c.TokenSource.Token()
	var refused *oauth2.RetrieveError
	switch {
	case !errors.As(err, &refused) || refused.ErrorCode == "":
		return t, err
	case refused.ErrorCode == string(oauth.InvalidTarget):
		return nil, fmt.Errorf("the server gives the client no token for %s: is its issuer another URL, its API off "+
			"(api.enabled), or the client not for it (client show)?", c.root)
	}
	return nil, fmt.Errorf("the server gives the client no token: %s: %s", refused.ErrorCode,
		refused.ErrorDescription)
}
