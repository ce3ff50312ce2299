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

// Config says which MCP server is called, and as whom. Server and Token, or Server, Client and
// AuthorizationServer, are REQUIRED.
type Config struct {
	// Server is the URL of the MCP server: https, or http on this machine.
	Server string
	// Token is who the program is by its platform.
	Token PlatformToken
	// Client is who the program is by its registration at the authorization server.
	Client *Credentials

	// AuthorizationServer is the issuer that credentials may be sent to; no other gets them, whatever
	// the MCP server names. Default: the one that the MCP server names, which gets no token but one
	// that was made for it.
	AuthorizationServer string
	// Audience is what platform tokens are made for. Default: the issuer of the authorization server.
	Audience string

	// Scopes are those to ask for. Default: those of the challenge of the MCP server, else those of
	// its metadata.
	Scopes []string
	// StepUp are further scopes that the program may ask for when a call needs them.
	StepUp []string

	// DPoP binds tokens to a key. Default: if the MCP server demands it.
	DPoP *DPoP
	// Transport sends all requests to the MCP server and its authorization server. Default:
	// http.DefaultTransport.
	Transport http.RoundTripper
	// Trace is called for each step that succeeds, also later when a token is renewed, one at a time.
	Trace func(Step)
}

// Credentials are a client of the authorization server: its id, and one of the others.
type Credentials struct {
	ID     string
	Secret string
	// Key signs assertions (private_key_jwt): of P-256 or P-384, Ed25519, or RSA.
	Key   crypto.Signer
	KeyID string // of Key, as the authorization server knows it; "": it finds the key otherwise
}

// String implements fmt.Stringer, and does not show the secret.
func (c Credentials) String() string { return c.ID }

// GoString implements fmt.GoStringer.
func (c Credentials) GoString() string { return c.ID }

// DPoP is how tokens are bound to a key (RFC 9449). The zero value makes a key for each Client.
type DPoP struct {
	// Key is the private key: of P-256 or P-384, Ed25519, or RSA. Default: a new one of P-256.
	Key crypto.Signer
	// Optional admits tokens that the authorization server has not bound. Default: they are refused.
	Optional bool
}

// Step is something that was done on the way to a token: "challenge", "resource", "metadata",
// "platform", "token", in this order.
type Step struct {
	Name string
	Text string         // one line, with no token in it
	Data map[string]any // the same for programs
}

// Client calls one MCP server. It is safe for concurrent use.
type Client struct {
	c      Config
	found  found
	tokens *keeper
	http   *http.Client // to the token endpoint
	calls  http.RoundTripper
	bound  bool // tokens are asked for with a proof
	now    func() time.Time
}

// Workload finds the authorization server of c.Server and gets a first token. An error is an *Error,
// unless c cannot be right.
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

// bind puts proofs into the way of requests if tokens are to be bound.
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

// HTTPClient returns a client for calls to the MCP server, for the transport of an MCP SDK. It has no
// timeout, because streams stay open; give its requests a context.
func (w *Client) HTTPClient() *http.Client {
	return &http.Client{Transport: w, CheckRedirect: discovery.NoRedirect}
}

// TokenSource returns the access tokens alone. One that is bound to a key (TokenType DPoP) needs a
// proof with each request, which HTTPClient makes and an oauth2.Transport does not.
func (w *Client) TokenSource() oauth2.TokenSource { return source{w} }

type source struct{ client *Client }

// Token implements oauth2.TokenSource.
func (s source) Token() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(context.Background(), renewalTime)
	defer cancel()
	return s.client.Token(ctx)
}

// Token returns an access token that is good for a while, and asks for a new one if need be. An error
// is an *Error, or that of ctx.
func (w *Client) Token(ctx context.Context) (*oauth2.Token, error) {
	t, err := w.tokens.Token(ctx)
	if err != nil {
		return nil, err
	}
	o := &oauth2.Token{AccessToken: t.access, TokenType: t.kind, Expiry: t.expiry}
	return o.WithExtra(map[string]any{"scope": t.scopes.String()}), nil
}

// Scopes returns what the present token may do, as the authorization server said.
func (w *Client) Scopes() []string { return slices.Clone(w.tokens.granted()) }

// Issuer returns the authorization server.
func (w *Client) Issuer() string { return w.found.issuer }

// Resource returns the MCP server as its metadata name it: the audience of tokens.
func (w *Client) Resource() string { return w.found.resource }

func (w *Client) trace(name, text string, data map[string]any) {
	if w.c.Trace != nil {
		w.c.Trace(Step{name, text, data})
	}
}

const (
	requestTime = 15 * time.Second
	renewalTime = time.Minute // for a token, with everything that it takes
)

// mayAsk are the scopes of a challenge that the program may ask for.
func (w *Client) mayAsk(needed oauth.Scopes) bool {
	return len(needed) > 0 && w.tokens.granted().Union(w.c.StepUp).Has(needed...)
}
