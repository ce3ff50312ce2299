// Package broker exchanges the tokens of callers for tokens of upstream providers.
package broker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/issuer"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// BrokerConfig configures a Broker. Issuer, ClientID and ClientSecret are required.
type BrokerConfig struct {
	// Issuer is the authorization server of the callers. Their tokens are sent to no other server.
	Issuer   string
	Endpoint string // its token endpoint; discovered if empty
	// ClientID and ClientSecret are this resource server's own credentials, sent with HTTP Basic.
	// The client must be registered for this resource.
	ClientID, ClientSecret string
	// CacheTTL is how long a token is cached. For that time, a tool still gets a token that the
	// user has revoked. A token is fetched again one minute before it expires in any case. Default:
	// 5 minutes; negative: no cache.
	CacheTTL   time.Duration
	HTTPClient *http.Client
	Now        func() time.Time
}

const (
	brokerCache  = 5 * time.Minute
	brokerMargin = time.Minute // a token is no longer returned this long before it expires
	brokerSize   = 4096
)

// Broker gets tokens of upstream providers, such as GitHub or Google, for the users who call this
// resource server. It sends the caller's MCP token, which only the Guard can read, to the
// authorization server, authenticated as this resource server's client. It gets a provider token
// for the same user (RFC 8693). The MCP token is never sent to the provider. The provider's token
// never reaches the MCP client, unless a tool puts it into a result (RS-202).
//
// Tokens are cached by user, grant, provider and set of scopes. A Broker is safe for concurrent
// use, and logs nothing.
type Broker struct {
	c        BrokerConfig
	endpoint *issuer.Endpoint
	cache    *bounded.Map[string, UpstreamToken]
	flight   singleflight.Group
}

// NewBroker returns a broker. It sends no request yet.
func NewBroker(c BrokerConfig) (*Broker, error) {
	endpoint, err := issuer.NewEndpoint(issuer.EndpointConfig{
		Name:         "token endpoint",
		Issuer:       c.Issuer,
		Location:     c.Endpoint,
		Locate:       func(m issuer.Metadata) string { return m.Token },
		ClientID:     c.ClientID,
		ClientSecret: c.ClientSecret,
		Client:       c.HTTPClient,
		Timeout:      exchangeTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("mcpresource: %w", err)
	}
	if c.CacheTTL == 0 {
		c.CacheTTL = brokerCache
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Broker{c: c, endpoint: endpoint, cache: bounded.New[string, UpstreamToken](brokerSize, c.Now)}, nil
}

// UpstreamToken is a token of an upstream provider. Logging and JSON encoding omit the token.
type UpstreamToken struct {
	AccessToken string       `json:"-"`
	TokenType   string       // "Bearer"
	Scopes      oauth.Scopes // as granted, which may be more than requested
	Expiry      time.Time    // zero if the provider does not report it
}

// SetAuthHeader adds the token to a request to the provider.
func (t *UpstreamToken) SetAuthHeader(r *http.Request) {
	r.Header.Set("Authorization", t.TokenType+" "+t.AccessToken)
}

// String implements fmt.Stringer. It omits the token.
func (UpstreamToken) String() string { return "[redacted]" }

// GoString implements fmt.GoStringer.
func (UpstreamToken) GoString() string { return "[redacted]" }

// LogValue implements slog.LogValuer.
func (UpstreamToken) LogValue() slog.Value { return slog.StringValue("[redacted]") }

// InteractionRequiredError means that the user must first visit a page of the authorization server,
// to connect an account at the provider or to allow more access. The browser must be signed in as
// the same user (RS-200). Package gosdk turns the error into a question to the user in the MCP
// client. Elsewhere the error text contains the link.
type InteractionRequiredError struct {
	Provider string
	URL      string
}

// Error implements error.
func (e *InteractionRequiredError) Error() string {
	return fmt.Sprintf("Access to your %s account is needed first. Please open %s in your browser, then try again.",
		e.Provider, e.URL)
}

// ErrBrokerUnavailable is wrapped by errors for a token that is not available now.
var ErrBrokerUnavailable = errors.New("mcpresource: no token of the provider is available now")

// Token returns a token of a provider for the caller in ctx, which must be the context of a guarded
// request. provider is its id at the authorization server. Without scopes, the token has the scopes
// that the authorization server's policy allows this resource.
//
// The error is or wraps an [*InteractionRequiredError], [ErrBrokerUnavailable], [ErrNoCaller], or
// the *oauth.Error of the authorization server. Its code is invalid_target if the server's policy
// allows this resource no token of the provider, and invalid_scope if it does not allow these
// scopes.
func (b *Broker) Token(ctx context.Context, provider string, scopes ...string) (*UpstreamToken, error) {
	ask, err := b.request(ctx, provider, scopes)
	if err != nil {
		return nil, err
	}
	if t, ok := b.cache.Get(ask.key); ok {
		return &t, nil
	}
	done := b.flight.DoChan(ask.key, func() (any, error) { return b.fetch(context.WithoutCancel(ctx), ask) })
	select {
	case r := <-done:
		if r.Err != nil {
			return nil, r.Err
		}
		t := r.Val.(UpstreamToken) // each caller gets its own
		return &t, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Forget drops the cached token, for tools whose token the provider has rejected.
func (b *Broker) Forget(ctx context.Context, provider string, scopes ...string) {
	if ask, err := b.request(ctx, provider, scopes); err == nil {
		b.cache.Drop(ask.key)
	}
}

type brokerRequest struct {
	key      string // of the caller and the request
	subject  string // the MCP token
	provider string
	scopes   oauth.Scopes
}

// request returns the request for the caller in ctx. Its key contains user, application and grant,
// so that a token is never used for another grant (RS-203).
func (b *Broker) request(ctx context.Context, provider string, scopes []string) (brokerRequest, error) {
	p, ok := token.FromContext(ctx)
	switch {
	case !ok || token.PresentedToken(p) == "":
		return brokerRequest{}, token.ErrNoCaller
	case p.Issuer != b.c.Issuer: // only its issuer may see the token
		return brokerRequest{}, fmt.Errorf("%w of %s", token.ErrNoCaller, b.c.Issuer)
	case provider == "":
		return brokerRequest{}, errors.New("mcpresource: no provider was named")
	}
	for _, s := range scopes {
		if !oauth.ValidScope(s) {
			return brokerRequest{}, oauth.NewError(oauth.InvalidScope, "A scope is malformed.")
		}
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(scopes)))
	key := strings.Join([]string{p.Key(), grantOf(p), provider, strings.Join(sorted, " ")}, "\x00")
	return brokerRequest{key: key, subject: token.PresentedToken(p), provider: provider, scopes: sorted}, nil
}

// grantOf returns the id of the token's grant, or a hash of the token without a grant.
func grantOf(p *token.Principal) string {
	if id := p.GrantID(); id != "" {
		return id
	}
	sum := sha256.Sum256([]byte(token.PresentedToken(p)))
	return string(sum[:])
}
