package mcpresource

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
	"github.com/mcp-authd/mcp-authd/oauth"
)

// BrokerConfig configures a Broker. Issuer, ClientID and ClientSecret are required.
type BrokerConfig struct {
	// Issuer is the authorization server that the callers come from. Their tokens are
	// shown to no other.
	Issuer   string
	Endpoint string // its token endpoint; found by discovery when empty
	// ClientID and ClientSecret are this resource server's own credentials, sent by
	// HTTP Basic. The client must name this resource among its own.
	ClientID, ClientSecret string
	// CacheTTL bounds how long a token is remembered, and with it how long a tool goes on
	// getting one that the person has taken back. A minute before it expires it is
	// fetched again in any case. Default: 5 minutes; negative: ask every time.
	CacheTTL   time.Duration
	HTTPClient *http.Client
	Now        func() time.Time
}

const (
	brokerCache  = 5 * time.Minute
	brokerMargin = time.Minute // before a token expires it is not handed out any more
	brokerSize   = 4096
)

// Broker gets tokens of upstream providers, such as GitHub or Google, for the people who call this
// resource server. It shows the caller's own MCP token, which only the Guard can read, to the
// authorization server, as this resource server's client, and gets a token of the provider for the
// same person (RFC 8693). The MCP token never goes to the provider, and the provider's token never
// to the MCP client, as long as no tool puts it into a result (RS-202).
//
// Tokens are remembered for each person, grant, provider and set of scopes. A Broker is
// safe for concurrent use, and logs nothing.
type Broker struct {
	c        BrokerConfig
	endpoint *issuer.Endpoint
	cache    *bounded.Map[string, UpstreamToken]
	flight   singleflight.Group
}

// NewBroker returns a broker. It does not ask the authorization server yet.
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

// UpstreamToken is a token of an upstream provider. It is written to no log and no JSON
// document by mistake.
type UpstreamToken struct {
	AccessToken string       `json:"-"`
	TokenType   string       // "Bearer"
	Scopes      oauth.Scopes // what it really allows, which may be more than was asked for
	Expiry      time.Time    // zero: the provider does not say
}

// SetAuthHeader puts the token into a request to the provider.
func (t *UpstreamToken) SetAuthHeader(r *http.Request) {
	r.Header.Set("Authorization", t.TokenType+" "+t.AccessToken)
}

// String implements fmt.Stringer, and does not show the token.
func (UpstreamToken) String() string { return "[redacted]" }

// GoString implements fmt.GoStringer.
func (UpstreamToken) GoString() string { return "[redacted]" }

// LogValue implements slog.LogValuer.
func (UpstreamToken) LogValue() slog.Value { return slog.StringValue("[redacted]") }

// InteractionRequiredError means that the person has to visit a page of the authorization
// server first, to connect an account at the provider or to allow more there. The browser that
// opens the page has to be signed in as that very person (RS-200). Package gosdk turns the
// error into a question by the MCP client; elsewhere its text holds the link.
type InteractionRequiredError struct {
	Provider string
	URL      string
}

// Error implements error.
func (e *InteractionRequiredError) Error() string {
	return fmt.Sprintf("Access to your %s account is needed first. Please open %s in your browser, then try again.",
		e.Provider, e.URL)
}

// ErrBrokerUnavailable is wrapped by the error of a token that cannot be had now.
var ErrBrokerUnavailable = errors.New("mcpresource: no token of the provider is available now")

// Token returns a token of a provider, by its id at the authorization server, for the
// caller in ctx: the context of a request that the Guard has let through. Without scopes
// the token has those that the authorization server's policy gives this resource.
//
// The error is or wraps an [*InteractionRequiredError], [ErrBrokerUnavailable],
// [ErrNoCaller], or the *oauth.Error by which the authorization server refused:
// invalid_target when its policy gives this resource no token of the provider,
// invalid_scope when not with these scopes.
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

// Forget makes the next Token ask again, for a tool that the provider has refused a token.
func (b *Broker) Forget(ctx context.Context, provider string, scopes ...string) {
	if ask, err := b.request(ctx, provider, scopes); err == nil {
		b.cache.Drop(ask.key)
	}
}

// brokerRequest is what is asked of the authorization server.
type brokerRequest struct {
	key      string // of who asks for what
	subject  string // the MCP token
	provider string
	scopes   oauth.Scopes
}

// request works out who asks. The key names person, application and grant, so that what
// one grant was given serves no other (RS-203).
func (b *Broker) request(ctx context.Context, provider string, scopes []string) (brokerRequest, error) {
	p, ok := FromContext(ctx)
	switch {
	case !ok || p.presented == nil:
		return brokerRequest{}, ErrNoCaller
	case p.Issuer != b.c.Issuer: // only its issuer may see the token
		return brokerRequest{}, fmt.Errorf("%w of %s", ErrNoCaller, b.c.Issuer)
	case provider == "":
		return brokerRequest{}, errors.New("mcpresource: no provider was named")
	}
	for _, s := range scopes {
		if !oauth.ValidScope(s) {
			return brokerRequest{}, oauth.NewError(oauth.InvalidScope, "A scope is malformed.")
		}
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(scopes)))
	key := strings.Join([]string{p.Key(), p.grant(), provider, strings.Join(sorted, " ")}, "\x00")
	return brokerRequest{key: key, subject: p.presented.token, provider: provider, scopes: sorted}, nil
}

// presented is what a caller has shown. It is reached through a pointer in a field that
// is not exported, so that printing a principal or a context does not show it.
type presented struct{ token string }

// withCredential returns a copy of p by which a Broker can speak for the caller. Principals are
// shared between requests, and what each presented is its own.
func (p *Principal) withCredential(c Credential) *Principal {
	if p == nil {
		return nil
	}
	own := *p
	own.presented = &presented{c.Token}
	return &own
}

// grant names what the token rests on: the grant, else the token itself.
func (p *Principal) grant() string {
	if id := p.GrantID(); id != "" {
		return id
	}
	sum := sha256.Sum256([]byte(p.presented.token))
	return string(sum[:])
}
