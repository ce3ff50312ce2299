// Package signin is the client of an authorization server behind mcpclient.Person, `mcp-authd login`
// and `mcp-authd check`. It registers and signs in step by step, checks a server from outside, and
// reports why a step failed.
package signin

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// These are the steps after those of discovery, in order.
const (
	StepRegistration = "registration"
	StepBrowser      = "browser"
	StepDevice       = "device"
	StepToken        = "token"
	StepTools        = "tools"
)

func fail(step, advice, format string, args ...any) error {
	return discovery.Fail(step, advice, format, args...)
}

// Client sends the HTTP requests of every step. Use New, NewThrough or NewBound to create one.
type Client struct {
	*discovery.Client
	Name   string            // shown to users
	tokens *discovery.Client // sends token requests
	calls  http.RoundTripper // sends requests with a token
	key    string            // thumbprint of the key that tokens must be bound to, or ""
	now    func() time.Time
}

// loginName is the client name of the command login.
const loginName = "mcp-authd login"

// New returns a client.
func New() *Client { return NewThrough(http.DefaultTransport) }

// NewThrough returns a client that sends its requests through t.
func NewThrough(t http.RoundTripper) *Client {
	d := discovery.New(t)
	return &Client{Client: d, Name: loginName, tokens: d, calls: t, now: time.Now}
}

// NewBound returns a client whose tokens are bound to a new key, which stays in memory (RFC 9449).
func NewBound() (*Client, error) {
	key, err := dpop.Generate()
	if err != nil {
		return nil, err
	}
	return NewThrough(nil).Bound(key), nil
}

// Bound returns a copy of c whose tokens are bound to a key (RFC 9449).
func (c *Client) Bound(key *dpop.Signer) *Client {
	bound, t := *c, dpop.NewTransport(key, c.calls)
	bound.tokens, bound.calls, bound.key = discovery.New(t), t, key.Thumbprint()
	return &bound
}

// Server is the metadata of an authorization server.
type Server struct {
	metadata.AuthorizationServer
	Legacy bool `json:"-"` // without metadata: the default endpoints of MCP 2025-03-26
}

// Metadata reads the metadata of the authorization server. The server must support PKCE with S256
// (CL-08).
func (c *Client) Metadata(ctx context.Context, mcpURL string, r discovery.Resource) (Server, error) {
	issuers, err := discovery.Issuers(mcpURL, r)
	if err != nil {
		return Server{}, err
	}
	issuer := issuers[0]
	var s Server
	found := false
	s.AuthorizationServer, found, err = c.Server(ctx, issuer)
	switch {
	case err != nil:
		return s, err
	case found:
		return s, s.check()
	case r.Location != "":
		return Server{},
			fail(discovery.StepMetadata,
				"Is the issuer right? Its metadata must be at "+discovery.Origin(issuer)+
					metadata.AuthorizationServerPaths(issuer)[0]+" (RFC 8414 section 3.1).",
				"there is no metadata of the issuer %s", issuer)
	}
	s.Legacy = true // CL-06
	s.Issuer, s.AuthorizationEndpoint, s.TokenEndpoint, s.RegistrationEndpoint = issuer, issuer+"/authorize",
		issuer+"/token", issuer+"/register"
	return s, nil
}

// Find reads the metadata of an issuer.
func (c *Client) Find(ctx context.Context, issuer string) (s Server, err error) {
	var found bool
	if s.AuthorizationServer, found, err = c.Server(ctx, issuer); err == nil && !found {
		err = fail(discovery.StepMetadata, "Is the issuer right?", "there is no metadata of the issuer %s", issuer)
	}
	if err != nil {
		return s, err
	}
	return s, s.check()
}

func (s Server) check() error {
	switch {
	case len(s.CodeChallengeMethods) == 0:
		return fail(discovery.StepMetadata, "Publish code_challenge_methods_supported with S256.",
			"the metadata does not say that PKCE is supported")
	case !slices.Contains(s.CodeChallengeMethods, oauth.S256):
		return fail(discovery.StepMetadata, "Support S256.", "PKCE is offered with %s only",
			strings.Join(s.CodeChallengeMethods, ", "))
	}
	return discovery.CheckURL(s.AuthorizationEndpoint)
}
