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

// Provider is an identity provider as we speak to it, by OpenID Connect or plain OAuth 2.0.
// Its methods are safe for concurrent use, take no longer than about ten seconds for one
// request, and fail with one of the errors below.
type Provider interface {
	// AuthorizeURL returns where the browser goes. It may have to ask the provider for its
	// metadata first.
	AuthorizeURL(ctx context.Context, q AuthorizationRequest) (string, error)
	// CheckIssuer compares the iss parameter of an authorization response, "" when there
	// is none, with who was asked (RFC 9207 §2.4). ErrGarbage: it was another server.
	CheckIssuer(ctx context.Context, iss string) error
	// Exchange redeems a code and learns who came: token request, ID token, user info.
	Exchange(ctx context.Context, code, verifier, nonce, redirectURI string) (Tokens, Profile, error)
	// Refresh renews tokens. What it returns replaces t, whose refresh token is still in it
	// when the provider gave no other. The profile is nil when the answer says nothing about
	// the person, else it is laid over the earlier one with Profile.Over, if it is of the
	// same Subject. ErrUnsupported: t has no refresh token. Tokens beside an error came all
	// the same, and with them something that is not good.
	Refresh(ctx context.Context, t Tokens) (Tokens, *Profile, error)
	// Inspect asks whether the access token is still good, by introspection or user info.
	// The profile is as with Refresh. ErrDenied may only mean that the access token has
	// expired: with a refresh token, Refresh has the last word. ErrUnsupported: the
	// provider offers no way to ask, or its answer would mean nothing; Refresh instead.
	Inspect(ctx context.Context, t Tokens) (*Profile, error)
	// Owner asks whose an access token is, by user info, else by introspection.
	// ErrUnsupported: the provider does not say.
	Owner(ctx context.Context, t Tokens) (*Profile, error)
	// Revoke gives tokens back (RFC 7009), as well as the provider lets us.
	Revoke(ctx context.Context, t Tokens) error
	// VerifyLogout checks a logout token (OpenID Connect Back-Channel Logout 1.0 §2.6),
	// all but that its id was not seen before. ErrGarbage: it is not good.
	VerifyLogout(ctx context.Context, logoutToken string) (Logout, error)

	// VerifyEvent checks the signature of a security event token (RFC 8417) by the keys of this
	// provider, or of the transmitter that the settings name for it, and returns its payload.
	// ErrForged: it is by none of them. Every other error says that they could not be asked.
	VerifyEvent(ctx context.Context, token string) (payload []byte, err error)

	// AuthorizationEndpoint is where browsers are sent, "" until the metadata have been read.
	AuthorizationEndpoint() string
	// Reads is when its metadata and keys were read. It asks for none.
	Reads() Reads
	// Examine looks at the provider from here, for the operator: whether it can be reached,
	// is who it should be, takes our credentials, and what it offers. It signs no person in.
	// found is false when its metadata cannot be used, and nothing else was looked at.
	Examine(ctx context.Context, redirectURI string) (findings []Finding, found bool)
}

// Options are what all providers are spoken to with.
type Options struct {
	ProductName string           // for the User-Agent. Default: "mcp-authd"
	Now         func() time.Time // default: time.Now
	// Transport carries the requests in place of connections of our own, for tests. What
	// it answers is bounded all the same.
	Transport http.RoundTripper
	// Asked is told how long each request took, and why it came to nothing. Default: nothing is.
	Asked func(took time.Duration, err error)
	// Connector is what the operator calls the provider: how spans of traces name it.
	Connector string
}

// New checks settings and returns the provider that they name. It makes no request.
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
		keys := &keySet{at: s.EventKeysURL, client: plain.client, now: o.Now, reads: &reads{}}
		plain.eventKeys = keys.allow("event")
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

// What can become of a question to a provider. Every error of a provider wraps one of
// them; only ErrDenied says that a session is over.
var (
	// ErrDenied: the provider says that it is over: invalid_grant, 401 from user info,
	// active: false.
	ErrDenied = errors.New("the provider says no")
	// ErrUnreachable: no answer, or one that says "later": network, timeout, 5xx, 429.
	ErrUnreachable = errors.New("the provider cannot be reached")
	// ErrGarbage: the answer is not what the specification says, is too large, or is
	// about another person.
	ErrGarbage = errors.New("the provider's answer cannot be used")
	// ErrMisconfigured: the provider knows no such client, or does not let it do this. It
	// says nothing about the person.
	ErrMisconfigured = errors.New("the provider refuses this client")
	// ErrUnsupported: the provider has no such service.
	ErrUnsupported = errors.New("the provider does not offer this")
)

// AuthorizationRequest is what an authorization request says in addition to the client.
type AuthorizationRequest struct {
	State, Nonce string
	Verifier     string // of PKCE; its challenge is sent
	RedirectURI  string
	LoginHint    string
	Fresh        bool         // the person has to prove again who they are; see Profile.AuthTime
	Choose       bool         // the person chooses the account; a session there does not do it for them
	Scopes       oauth.Scopes // in addition to those of the configuration
}

// Tokens are what a provider gave us for a person. They are stored as JSON, sealed, and
// never printed.
type Tokens struct {
	Access  string       `json:"access"`
	Refresh string       `json:"refresh,omitempty"`
	Type    string       `json:"type,omitempty"` // "Bearer"
	Expires time.Time    `json:"expires,omitzero"`
	Scopes  oauth.Scopes `json:"scopes,omitempty"` // granted, as far as the provider says
	// Assumed: the provider did not say which scopes it granted, which means all that
	// were asked for (RFC 6749 §5.1); Scopes are those of the configuration.
	Assumed bool `json:"-"`
}

const redacted = "[redacted]"

// LogValue implements slog.LogValuer.
func (Tokens) LogValue() slog.Value { return slog.StringValue(redacted) }

// String implements fmt.Stringer.
func (Tokens) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Tokens) GoString() string { return redacted }

// ExpiredAt reports whether the access token is no longer good at a time.
func (t Tokens) ExpiredAt(at time.Time) bool { return !t.Expires.IsZero() && !at.Before(t.Expires) }

// Profile is what a provider says about a person.
type Profile struct {
	Subject   string    `json:"sub"`                // the provider's own, stable identifier
	Label     string    `json:"label,omitempty"`    // what people call the account; never compared
	SessionID string    `json:"sid,omitempty"`      // the provider's name of its session
	AuthTime  time.Time `json:"auth_time,omitzero"` // when the person last proved who they are; zero: it does not say
	// Claims are all that is known, and what rules look at.
	Claims map[string]any `json:"claims,omitempty"`
	// Parts are the claims by where they came from ("id_token", "userinfo"), so that a
	// claim that its source does not repeat is gone.
	Parts map[string]map[string]any `json:"parts,omitempty"`
}

// Claims are personal data and stay out of logs, too.

// LogValue implements slog.LogValuer.
func (Profile) LogValue() slog.Value { return slog.StringValue(redacted) }

// String implements fmt.Stringer.
func (Profile) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Profile) GoString() string { return redacted }

// Proved is when the person last proved who they are: earlier than now if they were signed
// in at the provider already, zero if it does not say so in a way that can be true. It is
// never made up, for it is what resource servers are told (RFC 9470 §6).
func (p Profile) Proved(now time.Time) time.Time {
	switch {
	case p.AuthTime.After(now.Add(Leeway)):
		return time.Time{}
	case p.AuthTime.After(now):
		return now
	}
	return p.AuthTime
}

// Over returns the earlier profile brought up to date by p: what p heard of a source
// replaces what that source said before and wins over the others, which are believed as
// before. A claim that its source has dropped is gone, wherever else it was said.
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

// lay lays the claims of one source over those of others. That an address was verified
// says nothing about another one, so a source that names none says nothing of it.
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

// sources of claims, the more trusted later.
var sources = []string{"userinfo", "id_token"}

// Logout is the content of a good logout token. At least one of Subject and SessionID is set.
type Logout struct {
	ID        string // jti: good for once
	Subject   string // as in Profile.Subject
	SessionID string
	// ForgetAt is when the token is refused for its age, so that its ID need not be kept longer.
	ForgetAt time.Time
}
