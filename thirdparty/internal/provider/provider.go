package provider

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Provider is a client of an identity provider, with OpenID Connect or plain OAuth 2.0. Its methods
// are safe for concurrent use, take at most about ten seconds per request, and fail with one of the
// errors below.
type Provider interface {
	// AuthorizeURL returns the URL for the browser. It may first have to request the provider's
	// metadata.
	AuthorizeURL(ctx context.Context, q AuthorizationRequest) (string, error)
	// CheckIssuer compares the iss parameter of an authorization response, or "" if absent, with
	// the provider that was asked (RFC 9207 §2.4). It returns ErrGarbage for another server.
	CheckIssuer(ctx context.Context, iss string) error
	// Exchange redeems a code and identifies the user: token request, ID token, user info.
	Exchange(ctx context.Context, code, verifier, nonce, redirectURI string) (Tokens, Profile, error)
	// Refresh renews tokens. The result replaces t and keeps its refresh token if the provider sent
	// no new one. The profile is nil if the response says nothing about the user. Otherwise merge
	// it over the earlier profile with Profile.Over, if both have the same Subject. ErrUnsupported
	// means that t has no refresh token. Tokens returned with an error were issued, but the rest of
	// the response is invalid.
	Refresh(ctx context.Context, t Tokens) (Tokens, *Profile, error)
	// Inspect asks whether the access token is valid, with introspection or user info. The profile
	// is as for Refresh. ErrDenied may only mean that the access token has expired: if there is a
	// refresh token, Refresh decides. ErrUnsupported means that the provider offers no meaningful
	// check; use Refresh instead.
	Inspect(ctx context.Context, t Tokens) (*Profile, error)
	// Owner asks for the owner of an access token, with user info or else introspection. It returns
	// ErrUnsupported if the provider does not say.
	Owner(ctx context.Context, t Tokens) (*Profile, error)
	// Revoke revokes tokens (RFC 7009), as far as the provider supports it.
	Revoke(ctx context.Context, t Tokens) error
	// VerifyLogout checks a logout token (OpenID Connect Back-Channel Logout 1.0 §2.6), except
	// whether its ID was seen before. It returns ErrGarbage for an invalid token.
	VerifyLogout(ctx context.Context, logoutToken string) (Logout, error)

	// VerifyEvent checks the signature of a security event token (RFC 8417) and returns its
	// payload. It uses the keys of this provider, or of the transmitter in the settings. ErrForged
	// means that none of the keys matches. Every other error means that the keys were unavailable.
	VerifyEvent(ctx context.Context, token string) (payload []byte, err error)

	// AuthorizationEndpoint returns the URL that browsers are sent to, or "" until the metadata are
	// read.
	AuthorizationEndpoint() string
	// Reads returns when the metadata and keys were read. It sends no request.
	Reads() Reads
	// Examine checks the provider from this machine, for the administrator: whether it is
	// reachable, has the expected identity and accepts the client credentials, and which features
	// it offers. It signs no user in. found is false if the metadata are unusable and nothing else
	// was checked.
	Examine(ctx context.Context, redirectURI string) (findings []Finding, found bool)
}

// Options configures the requests to all providers.
type Options struct {
	ProductName string           // for the User-Agent. Default: "mcp-authd"
	Now         func() time.Time // default: time.Now
	// Transport replaces the network connections, for tests. Its responses are still bounded.
	Transport http.RoundTripper
	// Asked, if set, is called after each request with its duration and error.
	Asked func(took time.Duration, err error)
	// Connector is the provider's configured ID, which names it in trace spans.
	Connector string
}

// New checks settings and returns their provider. It makes no request.
func New(s Settings, o Options) (Provider, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	listed := s.Scopes != nil
	s, o = s.WithDefaults(), o.withDefaults()
	plain := &plainOAuth{
		Settings: &s,
		preset:   presetOf(s.Type),
		listed:   listed,
		client:   newTransport(s, o).client(),
		now:      o.Now,
	}
	if s.EventKeysURL != "" {
		plain.eventKeys = keysFor{newKeySet(s.EventKeysURL, plain.client, o.Now, &reads{}), forEvents}
	}
	if !plain.preset.openID {
		plain.fixed = s.overridden(plain.preset.places(&s))
		plain.fixed.issuer = s.Issuer
		plain.locate = plain.places
		return plain, nil
	}
	p := &openID{plainOAuth: *plain, directory: &discovery{at: s.Issuer, client: plain.client, now: o.Now}}
	if p.preset.issuerIs != nil {
		p.directory.issuer = p.preset.issuerIs(&s)
	}
	p.locate = p.places
	return p, nil
}

func (o Options) withDefaults() Options {
	if o.ProductName == "" {
		o.ProductName = "mcp-authd"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Asked == nil {
		o.Asked = func(time.Duration, error) {}
	}
	return o
}

// The possible failures. Every error of a provider wraps one of them. Only ErrDenied means that a
// session is over.
var (
	// ErrDenied means that the provider ended the session: invalid_grant, 401 from user info, or
	// active: false.
	ErrDenied = errors.New("the provider says no")
	// ErrUnreachable means no answer, or a request to retry later: network, timeout, 5xx, 429.
	ErrUnreachable = errors.New("the provider cannot be reached")
	// ErrGarbage means that the response violates the specification, is too large, or is about
	// another user.
	ErrGarbage = errors.New("the provider's answer cannot be used")
	// ErrMisconfigured means that the provider does not know the client, or refuses this request to
	// it. It says nothing about the user.
	ErrMisconfigured = errors.New("the provider refuses this client")
	// ErrUnsupported means that the provider does not offer the function.
	ErrUnsupported = errors.New("the provider does not offer this")
)

// AuthorizationRequest lists the parameters of an authorization request besides the client's.
type AuthorizationRequest struct {
	State, Nonce string
	Verifier     string // PKCE code verifier; its challenge is sent
	RedirectURI  string
	LoginHint    string
	Fresh        bool         // the user must authenticate again; see Profile.AuthTime
	Choose       bool         // the user chooses the account, whatever session the provider has
	Scopes       oauth.Scopes // in addition to the configured scopes
}

// Tokens are a provider's tokens for a user. They are stored as sealed JSON and never printed.
type Tokens struct {
	Access  string       `json:"access"`
	Refresh string       `json:"refresh,omitempty"`
	Type    string       `json:"type,omitempty"` // "Bearer"
	Expires time.Time    `json:"expires,omitzero"`
	Scopes  oauth.Scopes `json:"scopes,omitempty"` // granted scopes, as far as the provider reports them
	// Assumed means that the provider did not list the granted scopes. Then all requested scopes
	// are granted (RFC 6749 §5.1), and Scopes contains the configured ones.
	Assumed bool `json:"-"`
}

const redacted = "[redacted]"

// LogValue implements slog.LogValuer.
func (Tokens) LogValue() slog.Value { return slog.StringValue(redacted) }

// String implements fmt.Stringer.
func (Tokens) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Tokens) GoString() string { return redacted }

// ExpiredAt reports whether the access token is expired at a time.
func (t Tokens) ExpiredAt(at time.Time) bool { return !t.Expires.IsZero() && !at.Before(t.Expires) }

// Profile contains a provider's claims about a user.
type Profile struct {
	Subject   string    `json:"sub"`                // the provider's stable identifier
	Label     string    `json:"label,omitempty"`    // display name of the account; never compared
	SessionID string    `json:"sid,omitempty"`      // the provider's session ID
	AuthTime  time.Time `json:"auth_time,omitzero"` // when the user last authenticated; zero: unknown
	// Claims contains all known claims. Rules use it.
	Claims map[string]any `json:"claims,omitempty"`
	// Parts contains the claims by source ("id_token", "userinfo"). A claim that its source no
	// longer repeats is removed.
	Parts map[string]map[string]any `json:"parts,omitempty"`
}

// Claims are personal data and must not appear in logs.

// LogValue implements slog.LogValuer.
func (Profile) LogValue() slog.Value { return slog.StringValue(redacted) }

// String implements fmt.Stringer.
func (Profile) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Profile) GoString() string { return redacted }

// Proved returns when the user last authenticated. The time is in the past if the user was already
// signed in at the provider. It is zero if the provider reports no plausible time. The value is
// never invented, because resource servers receive it (RFC 9470 §6).
func (p Profile) Proved(now time.Time) time.Time {
	switch {
	case p.AuthTime.After(now.Add(Leeway)):
		return time.Time{}
	case p.AuthTime.After(now):
		return now
	}
	return p.AuthTime
}

// Over returns the earlier profile updated with p. Claims that p received from a source replace the
// earlier claims of that source, and take precedence over the other sources. A claim that its
// source has dropped is removed, even if another source had it.
func (p Profile) Over(earlier Profile) Profile {
	parts := map[string]map[string]any{}
	for source, claims := range earlier.Parts {
		parts[source] = maps.Clone(claims)
	}
	for source, claims := range p.Parts {
		for name := range earlier.Parts[source] {
			if _, still := claims[name]; !still {
				for _, other := range parts {
					delete(other, name)
				}
			}
		}
	}
	maps.Copy(parts, p.Parts)
	out := Profile{
		Subject: p.Subject, SessionID: cmp.Or(p.SessionID, earlier.SessionID), AuthTime: p.AuthTime,
		Claims: map[string]any{}, Parts: parts,
	}
	if len(earlier.Parts) == 0 {
		maps.Copy(out.Claims, earlier.Claims)
	}
	for _, fresh := range []bool{false, true} {
		for _, source := range sources {
			if _, is := p.Parts[source]; is == fresh {
				lay(parts[source], out.Claims)
			}
		}
	}
	if out.AuthTime.IsZero() {
		out.AuthTime = earlier.AuthTime
	}
	out.Label = cmp.Or(label(out.Claims), p.Label, earlier.Label)
	return out
}

// lay copies the claims of one source over those from other sources. email_verified applies only to
// the address of the same source, so a source without an address does not change it.
func lay(claims, over map[string]any) {
	verified, known := over["email_verified"]
	_, said := claims["email"]
	if said && claim.Text(claims, "email") != claim.Text(over, "email") {
		known = false
	}
	maps.Copy(over, claims)
	if _, new := claims["email_verified"]; new && said {
		return
	}
	if delete(over, "email_verified"); known {
		over["email_verified"] = verified
	}
}

// sources lists the sources of claims, the more trusted later.
var sources = []string{"userinfo", "id_token"}

// Logout is the content of a valid logout token. At least one of Subject and SessionID is set.
type Logout struct {
	ID        string // jti: valid once
	Subject   string // same as Profile.Subject
	SessionID string
	// ForgetAt is when the token is too old to be accepted, so its ID need not be stored longer.
	ForgetAt time.Time
}
