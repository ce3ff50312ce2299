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

// TokenType is the typ of identity tokens. It keeps a server that checks typ from accepting them as
// access tokens, whose typ is at+jwt (RFC 8725 §3.11).
const TokenType = "mcp-identity+jwt"

// TokenLifetime is the lifetime of an identity token.
const TokenLifetime = time.Minute

// These are the default names of the identity headers.
const (
	HeaderSubject = "X-MCP-Subject"
	HeaderClient  = "X-MCP-Client"
	HeaderScope   = "X-MCP-Scope"
	HeaderActor   = "X-MCP-Actor"
	HeaderToken   = "X-MCP-Identity"
)

// none switches a header off.
const none = "none"

// Identity configures how the MCP server learns who calls. Header names default to the constants of
// this package. "none" disables a header.
type Identity struct {
	Subject, Client, Scope string
	// Actor is the header with the name of the sub-agent that calls for the client. The name never
	// comes from the client itself.
	Actor string
	// Token is the header with the signed token. It is not sent if Signer is nil.
	Token    string
	Signer   Signer
	Issuer   string // iss, which publishes the keys
	Audience string // aud; default: the upstream URL, or else the public URL

	own   map[string]bool // names that clients may not use, as returned by plain
	usual map[string]bool // results of speaks for the most common header names
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

// names returns the identity headers that are enabled.
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

// reserved lists names that have another meaning between gateway and MCP server.
var reserved = map[string]bool{
	"authorization": true, "host": true, "content-type": true, "content-length": true, "connection": true,
	"transfer-encoding": true,
	"accept":            true, "mcp-session-id": true, "mcp-protocol-version": true, "mcp-method": true,
	"mcp-name":      true,
	"last-event-id": true,
	"cookie":        true, "te": true, "upgrade": true, "trailer": true,
}

// token reports whether s consists of letters, digits and hyphens, a safe subset of token (RFC 9110
// §5.6.2).
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-')
	})
}

// usualHeaders lists the headers that MCP clients send. A configured identity header may also use
// one of these names.
var usualHeaders = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Content-Length", "Content-Type",
	mcp.HeaderLastEvent, mcp.HeaderMethod, mcp.HeaderName, mcp.HeaderSession, mcp.HeaderVersion,
	"Sec-Fetch-Mode", "Traceparent", "User-Agent",
}

// speaks reports whether the MCP server could take a client's header for the gateway's word. This
// covers the configured names, the default names even if unused, and the names that servers believe
// from a proxy. It also covers every name with characters other than letters, digits and hyphens,
// because a server may normalize it to one of these.
func (i *Identity) speaks(name string) bool {
	if is, ok := i.usual[name]; ok {
		return is
	}
	p := plain(name)
	return i.own[p] || isClaimed(p) || !token(name)
}

// fits returns an error if headers cannot carry the caller's identity. The identity is sent in full
// or not at all: an MCP server must not take a missing name for an anonymous caller.
func (i *Identity) fits(p *mcpresource.Principal) error {
	for _, v := range []string{p.Subject, p.ClientID, p.Scopes.String(), actor(p)} {
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) || strings.TrimSpace(v) != v {
			return errUnspeakable
		}
	}
	return nil
}

// actor returns the name of the calling sub-agent, or "" if the client itself calls.
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
	values := make([]string, 0, 5) // one allocation
	for _, own := range [...]struct{ name, value string }{
		{i.Subject, x.principal.Subject}, {i.Client, x.principal.ClientID}, {i.Scope, x.principal.Scopes.String()},
		{i.Actor, actor(x.principal)}, {i.Token, x.identity},
	} {
		if own.name != none && own.value != "" {
			values = append(values, own.value)
			h[own.name] = values[len(values)-1 : len(values) : len(values)] // the name is canonical
		}
	}
}

// claims are the claims of an identity token, in the order of RFC 7519 and RFC 9068.
type claims struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	Expires  int64  `json:"exp"`
	Issued   int64  `json:"iat"`
	ClientID string `json:"client_id,omitempty"`
	Scope    string `json:"scope,omitempty"`
	// Act is the delegation chain, with the calling sub-agent first (RFC 8693 §4.1).
	Act      *oauth.Actor `json:"act,omitempty"`
	Resource string       `json:"resource"`         // the resource of the caller's token
	Origin   string       `json:"origin,omitempty"` // issuer of the caller's token, if it differs from iss
}

// signer makes identity tokens. It reuses a token for half of its lifetime, so a caller costs one
// signature every thirty seconds instead of one per request.
type signer struct {
	identity           Identity
	resource, audience string
	now                func() time.Time
	made               *bounded.Map[caller, signed]
}

// caller holds every claim that identifies a caller.
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
