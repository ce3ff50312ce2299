package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TokenType is the typ of identity tokens. A server that checks it does not take them for access
// tokens, whose typ is at+jwt (RFC 8725 §3.11).
const TokenType = "mcp-identity+jwt"

// TokenLifetime is how long an identity token is good for.
const TokenLifetime = time.Minute

// The default names of the identity headers.
const (
	HeaderSubject = "X-MCP-Subject"
	HeaderClient  = "X-MCP-Client"
	HeaderScope   = "X-MCP-Scope"
	HeaderActor   = "X-MCP-Actor"
	HeaderToken   = "X-MCP-Identity"
)

// none switches a header off.
const none = "none"

// Identity says how the MCP server is told who calls. The names of headers default to the
// constants of this package; "none" switches one off.
type Identity struct {
	Subject, Client, Scope string
	// Actor is the header with the name of the helper that calls for the client; it has none of
	// what the client calls itself.
	Actor string
	// Token is the header with the signed token. Without Signer there is none.
	Token    string
	Signer   Signer
	Issuer   string // iss, whose keys are published
	Audience string // aud; default: the URL of the upstream, or the public one without

	own   map[string]bool // names that clients may not use, as plain has them
	usual map[string]bool // what speaks says of the names that most requests have
}

// Signer signs claims as a JWT of type typ. keys.Manager is one.
type Signer interface {
	Sign(ctx context.Context, typ string, claims any) (string, error)
}

func (i Identity) withDefaults() Identity {
	for _, d := range []struct {
		name  *string
		value string
	}{
		{&i.Subject, HeaderSubject}, {&i.Client, HeaderClient}, {&i.Scope, HeaderScope}, {&i.Actor, HeaderActor},
		{&i.Token, HeaderToken},
	} {
		if *d.name == "" {
			*d.name = d.value
		}
		if *d.name != none {
			*d.name = http.CanonicalHeaderKey(*d.name)
		}
	}
	i.own = map[string]bool{}
	for _, n := range append(i.names(), HeaderSubject, HeaderClient, HeaderScope, HeaderActor, HeaderToken) {
		i.own[plain(n)] = true
	}
	usual := make(map[string]bool, len(usualHeaders))
	for _, n := range usualHeaders {
		usual[n] = i.speaks(n)
	}
	i.usual = usual
	return i
}

// names are the headers of this identity that are on.
func (i *Identity) names() (out []string) {
	for _, n := range []string{i.Subject, i.Client, i.Scope, i.Actor, i.Token} {
		if n != none {
			out = append(out, n)
		}
	}
	return out
}

func (i *Identity) check() error {
	seen := map[string]bool{}
	for _, n := range i.names() {
		if !token(n) || reserved[plain(n)] {
			return fmt.Errorf("gateway: %q cannot be the name of an identity header", n)
		}
		if seen[plain(n)] {
			return fmt.Errorf("gateway: the identity header %q is used twice", n)
		}
		seen[plain(n)] = true
	}
	return nil
}

// reserved names mean something else between gateway and MCP server.
var reserved = map[string]bool{
	"authorization": true, "host": true, "content-type": true, "content-length": true, "connection": true,
	"transfer-encoding": true,
	"accept":            true, "mcp-session-id": true, "mcp-protocol-version": true, "mcp-method": true,
	"mcp-name":      true,
	"last-event-id": true,
	"cookie":        true, "te": true, "upgrade": true, "trailer": true,
}

// token reports whether s is a token (RFC 9110 §5.6.2) that needs no care.
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-')
	})
}

// usualHeaders are those that MCP clients send. A header may have any of these names in a configuration, too.
var usualHeaders = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Content-Length", "Content-Type",
	mcp.HeaderLastEvent, mcp.HeaderMethod, mcp.HeaderName, mcp.HeaderSession, mcp.HeaderVersion,
	"Sec-Fetch-Mode", "Traceparent", "User-Agent",
}

// speaks reports whether a header of a client would be taken for the gateway's word: the
// names in use, the default ones also when they are not, those that servers believe of a
// proxy, and every name that is written with more than letters, digits and hyphens, which
// may be read as any of them or of the configured headers.
func (i *Identity) speaks(name string) bool {
	if is, ok := i.usual[name]; ok {
		return is
	}
	p := plain(name)
	return i.own[p] || isClaimed(p) || !token(name)
}

// fits reports whether a caller can be named in headers at all. An MCP server that finds
// no name must not take that for an anonymous caller, so there is no half of an identity.
func (i *Identity) fits(p *mcpresource.Principal) error {
	for _, v := range []string{p.Subject, p.ClientID, p.Scopes.String(), actor(p)} {
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) || strings.TrimSpace(v) != v {
			return errUnspeakable
		}
	}
	return nil
}

// actor is the name of the helper that calls, "" when the client does itself.
func actor(p *mcpresource.Principal) string {
	if chain := p.Actors(); len(chain) > 0 {
		return chain[0].Name()
	}
	return ""
}

func (i *Identity) set(h http.Header, x *exchange) {
	if x.principal == nil {
		return
	}
	values := make([]string, 0, 5) // in one piece
	for _, own := range [...]struct{ name, value string }{
		{i.Subject, x.principal.Subject}, {i.Client, x.principal.ClientID}, {i.Scope, x.principal.Scopes.String()},
		{i.Actor, actor(x.principal)}, {i.Token, x.identity},
	} {
		if own.name != none && own.value != "" {
			values = append(values, own.value)
			h[own.name] = values[len(values)-1 : len(values) : len(values)] // canonical
		}
	}
}

// claims of an identity token, in the order of RFC 7519 and RFC 9068.
type claims struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	Expires  int64  `json:"exp"`
	Issued   int64  `json:"iat"`
	ClientID string `json:"client_id,omitempty"`
	Scope    string `json:"scope,omitempty"`
	// Act is the chain of helpers, the one that calls first (RFC 8693 §4.1).
	Act      *oauth.Actor `json:"act,omitempty"`
	Resource string       `json:"resource"`         // that the caller's token is for
	Origin   string       `json:"origin,omitempty"` // the issuer of the caller's token, when that is not iss
}

// signer makes identity tokens. One is used for half of its life, so that a caller costs
// a signature every thirty seconds and not with every request.
type signer struct {
	identity           Identity
	resource, audience string
	now                func() time.Time
	made               *bounded.Map[caller, signed]
}

// caller is everything that a token says.
type caller struct{ issuer, subject, client, scope, act string }

type signed struct {
	token string
	until time.Time
}

const maxSigned = 10_000

func newSigner(i Identity, resource, upstream string, now func() time.Time) *signer {
	audience := i.Audience
	if audience == "" {
		audience = upstream
	}
	return &signer{
		identity: i, resource: resource, audience: audience,
		now: now, made: bounded.New[caller, signed](maxSigned, now),
	}
}

func (s *signer) sign(ctx context.Context, p *mcpresource.Principal) (string, error) {
	if s.identity.Signer == nil || s.identity.Token == none {
		return "", nil
	}
	act := oauth.ChainOf(p.Actors())
	var said []byte
	if act != nil {
		var err error
		if said, err = json.Marshal(act); err != nil {
			return "", fmt.Errorf("gateway: identity: %w", err)
		}
	}
	who, now := caller{p.Issuer, p.Subject, p.ClientID, p.Scopes.String(), string(said)}, s.now()
	if old, ok := s.made.Get(who); ok && now.After(old.until.Add(-TokenLifetime)) { // or the clock was set back
		return old.token, nil
	}
	c := claims{
		Issuer: s.identity.Issuer, Subject: p.Subject, Audience: s.audience, Expires: now.Add(TokenLifetime).Unix(),
		Issued:   now.Unix(),
		ClientID: p.ClientID, Scope: who.scope, Act: act, Resource: s.resource,
	}
	if p.Issuer != s.identity.Issuer {
		c.Origin = p.Issuer
	}
	t, err := s.identity.Signer.Sign(ctx, TokenType, c)
	if err != nil {
		return "", fmt.Errorf("gateway: identity: %w", err)
	}
	until := now.Add(TokenLifetime / 2)
	s.made.Put(who, signed{t, until}, until)
	return t, nil
}
