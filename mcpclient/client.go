package mcpclient

import (
	"context"
	"crypto"
	"errors"
	"net/http"
	"slices"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Config states which MCP server to call and how to authenticate. Either Server and Token, or
// Server, Client and AuthorizationServer, are REQUIRED.
type Config struct {
	// Server is the URL of the MCP server: https, or http on this machine.
	Server string
	// Token is the source of the program's platform identity.
	Token PlatformToken
	// Client is the program's registration at the authorization server.
	Client *Credentials

	// AuthorizationServer is the only issuer that credentials are sent to, whatever the MCP server
	// names. Default: the issuer in the MCP server's metadata, which then gets only platform tokens
	// issued for it.
	AuthorizationServer string
	// Audience is the audience of platform tokens. Default: the issuer of the authorization server.
	Audience string

	// Scopes are the scopes to request. Default: the scopes in the MCP server's challenge, else in
	// its metadata.
	Scopes []string
	// StepUp lists further scopes that the program may request when a call needs them.
	StepUp []string

	// DPoP binds tokens to a key. Default: bound if the MCP server requires it.
	DPoP *DPoP
	// Transport sends all requests to the MCP server and its authorization server. Default:
	// http.DefaultTransport.
	Transport http.RoundTripper
	// Trace is called after each successful step, also when a token is renewed later. Calls do not
	// overlap.
	Trace func(Step)
}

// Credentials identify a client at the authorization server: its id, and either Secret or Key.
type Credentials struct {
	ID     string
	Secret string
	// Key signs assertions (private_key_jwt). It must be P-256, P-384, Ed25519 or RSA.
	Key   crypto.Signer
	KeyID string // of Key at the authorization server; optional
}

// String implements fmt.Stringer. It omits the secret.
func (c Credentials) String() string { return c.ID }

// GoString implements fmt.GoStringer.
func (c Credentials) GoString() string { return c.ID }

// DPoP configures how tokens are bound to a key (RFC 9449). The zero value creates a key for each
// Client.
type DPoP struct {
	// Key is the private key: P-256, P-384, Ed25519 or RSA. Default: a new P-256 key.
	Key crypto.Signer
	// Optional accepts tokens that the authorization server did not bind. Default: they are
	// rejected.
	Optional bool
}

// Step is one completed step on the way to a token: "challenge", "resource", "metadata", "platform"
// or "token", in this order.
type Step struct {
	Name string
	Text string         // one line, without any token
	Data map[string]any // the same, for programs
}

// Client calls one MCP server. It is safe for concurrent use.
type Client struct {
	c      Config
	found  found
	tokens *keeper
	http   *http.Client // for the token endpoint
	calls  http.RoundTripper
	bound  bool // token requests carry a DPoP proof
	now    func() time.Time
}

// Workload discovers the authorization server of c.Server and gets a first token. Errors are of
// type *Error, except for an invalid c.
func Workload(ctx context.Context, c Config) (*Client, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	w := &Client{c: c, now: time.Now}
	if err := w.discover(ctx); err != nil {
		return nil, of(discovery.StepMetadata, err)
	}
	if err := w.bind(); err != nil {
		return nil, err
	}
	w.tokens = newKeeper(w.found.scopes, w.request)
	if _, err := w.tokens.Token(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

func (c *Config) check() error {
	switch {
	case discovery.CheckURL(c.Server) != nil:
		return errors.New("mcpclient: Server is not the https URL of an MCP server")
	case c.Token == nil && c.Client == nil:
		return errors.New("mcpclient: neither Token nor Client")
	case c.Token == nil && c.Audience != "":
		return errors.New("mcpclient: Audience without Token")
	case c.Client == nil:
		return nil
	case c.Client.ID == "" || (c.Client.Secret == "") == (c.Client.Key == nil):
		return errors.New("mcpclient: Client needs ID, and either Secret or Key")
	case c.AuthorizationServer == "":
		return errors.New("mcpclient: Client without the AuthorizationServer that it is registered at")
	}
	return nil
}

// bind adds DPoP proofs to requests if tokens are to be bound.
func (w *Client) bind() error {
	next := w.c.Transport
	if w.c.DPoP == nil && w.found.demandsDPoP {
		w.c.DPoP = &DPoP{}
	}
	if w.c.DPoP != nil {
		signer, err := w.c.DPoP.signer()
		if err != nil {
			return err
		}
		next, w.bound = dpop.NewTransport(signer, next), true
	}
	w.calls = next
	w.http = &http.Client{Transport: next, Timeout: requestTime, CheckRedirect: discovery.NoRedirect}
	return nil
}

func (d *DPoP) signer() (*dpop.Signer, error) {
	if d.Key == nil {
		return dpop.Generate()
	}
	return dpop.NewSigner(d.Key)
}

// HTTPClient returns an HTTP client for calls to the MCP server, for use in the transport of an MCP
// SDK. It has no timeout, because streams stay open; use a context with requests.
func (w *Client) HTTPClient() *http.Client {
	return &http.Client{Transport: w, CheckRedirect: discovery.NoRedirect}
}

// TokenSource returns a source of access tokens. A bound token (TokenType DPoP) needs a proof with
// each request: HTTPClient adds it, an oauth2.Transport does not.
func (w *Client) TokenSource() oauth2.TokenSource { return source{w} }

type source struct{ client *Client }

// Token implements oauth2.TokenSource.
func (s source) Token() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(context.Background(), renewalTime)
	defer cancel()
	return s.client.Token(ctx)
}

// Token returns a valid access token and renews it if necessary. The error is an *Error or the
// error of ctx.
func (w *Client) Token(ctx context.Context) (*oauth2.Token, error) {
	t, err := w.tokens.Token(ctx)
	if err != nil {
		return nil, err
	}
	o := &oauth2.Token{AccessToken: t.access, TokenType: t.kind, Expiry: t.expiry}
	return o.WithExtra(map[string]any{"scope": t.scopes.String()}), nil
}

// Scopes returns the scopes of the current token, as reported by the authorization server.
func (w *Client) Scopes() []string { return slices.Clone(w.tokens.granted()) }

// Issuer returns the issuer of the authorization server.
func (w *Client) Issuer() string { return w.found.issuer }

// Resource returns the resource identifier from the MCP server's metadata: the audience of tokens.
func (w *Client) Resource() string { return w.found.resource }

func (w *Client) trace(name, text string, data map[string]any) {
	if w.c.Trace != nil {
		w.c.Trace(Step{name, text, data})
	}
}

const (
	requestTime = 15 * time.Second
	renewalTime = time.Minute // limit for getting a token, with all retries
)

// mayAsk reports whether the program may request the scopes of a challenge.
func (w *Client) mayAsk(needed oauth.Scopes) bool {
	return len(needed) > 0 && w.tokens.granted().Union(w.c.StepUp).Has(needed...)
}
