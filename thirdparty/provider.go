package thirdparty

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// provider is an identity provider as a connector speaks to it, by OpenID Connect or plain
// OAuth 2.0.
// Its methods are safe for concurrent use, take no longer than about ten seconds for one
// request, and fail with one of the errors below.
type provider interface {
	// authorizeURL returns where the browser goes. It may have to ask the provider for its
	// metadata first.
	authorizeURL(ctx context.Context, q authorizeRequest) (string, error)
	// checkIssuer compares the iss parameter of an authorization response, "" when there
	// is none, with who was asked (RFC 9207 §2.4). errGarbage: it was somebody else.
	checkIssuer(ctx context.Context, iss string) error
	// exchange redeems a code and learns who came: token request, ID token, user info.
	exchange(ctx context.Context, code, verifier, nonce, redirectURI string) (tokens, profile, error)
	// refresh renews tokens. What it returns replaces t, whose refresh token is still in it
	// when the provider gave no other. The profile is nil when the answer says nothing about
	// the person, else it is laid over the earlier one with profile.over, if it is of the
	// same Subject. errUnsupported: t has no refresh token. Tokens beside an error came all
	// the same, and with them something that is not good.
	refresh(ctx context.Context, t tokens) (tokens, *profile, error)
	// inspect asks whether the access token is still good, by introspection or user info.
	// The profile is as with refresh. errDenied may only mean that the access token has
	// expired: with a refresh token, refresh has the last word. errUnsupported: the
	// provider has nobody to ask, or its answer would mean nothing; refresh instead.
	inspect(ctx context.Context, t tokens) (*profile, error)
	// owner asks whose an access token is, by user info, else by introspection.
	// errUnsupported: the provider tells nobody.
	owner(ctx context.Context, t tokens) (*profile, error)
	// revoke gives tokens back (RFC 7009), as well as the provider lets us.
	revoke(ctx context.Context, t tokens) error
	// verifyLogout checks a logout token (OpenID Connect Back-Channel Logout 1.0 §2.6),
	// all but that its id was not seen before. errGarbage: it is not good.
	verifyLogout(ctx context.Context, logoutToken string) (logout, error)
}

// What can become of a question to a provider. Every error of a provider wraps one of
// them; only errDenied says that a session is over.
var (
	// errDenied: the provider says that it is over: invalid_grant, 401 from user info,
	// active: false.
	errDenied = errors.New("the provider says no")
	// errUnreachable: no answer, or one that says "later": network, timeout, 5xx, 429.
	errUnreachable = errors.New("the provider cannot be reached")
	// errGarbage: the answer is not what the specification says, is too large, or is
	// about somebody else.
	errGarbage = errors.New("the provider's answer cannot be used")
	// errMisconfigured: the provider knows no such client, or does not let it do this. It
	// says nothing about the person.
	errMisconfigured = errors.New("the provider refuses this client")
	// errUnsupported: the provider has no such service.
	errUnsupported = errors.New("the provider does not offer this")
)

// authorizeRequest is what an authorization request says besides the client.
type authorizeRequest struct {
	State, Nonce string
	Verifier     string // of PKCE; its challenge is sent
	RedirectURI  string
	LoginHint    string
	Fresh        bool         // the person has to prove again who they are; see profile.AuthTime
	Choose       bool         // the person chooses the account; a session there does not do it for them
	Scopes       oauth.Scopes // in addition to those of the configuration
}

// tokens are what a provider gave us for a person. They are stored as JSON, sealed, and
// never printed.
type tokens struct {
	Access  string       `json:"access"`
	Refresh string       `json:"refresh,omitempty"`
	Type    string       `json:"type,omitempty"` // "Bearer"
	Expires time.Time    `json:"expires,omitzero"`
	Scopes  oauth.Scopes `json:"scopes,omitempty"` // granted, as far as the provider says
	// assumed: the provider did not say which scopes it granted, which means all that
	// were asked for (RFC 6749 §5.1); Scopes are those of the configuration.
	assumed bool
}

const redacted = "[redacted]"

// LogValue implements slog.LogValuer.
func (tokens) LogValue() slog.Value { return slog.StringValue(redacted) }

// String implements fmt.Stringer.
func (tokens) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (tokens) GoString() string { return redacted }

// profile is what a provider says about a person.
type profile struct {
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
func (profile) LogValue() slog.Value { return slog.StringValue(redacted) }

// String implements fmt.Stringer.
func (profile) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (profile) GoString() string { return redacted }

// over returns the earlier profile brought up to date by p: what p heard of a source
// replaces what that source said before and wins over the others, which are believed as
// before. A claim that its source has dropped is gone, wherever else it was said.
func (p profile) over(earlier profile) profile {
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
	out := profile{Subject: p.Subject, SessionID: cmp.Or(p.SessionID, earlier.SessionID), AuthTime: p.AuthTime, Claims: map[string]any{}, Parts: parts}
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
	if said && text(claims, "email") != text(over, "email") {
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

// logout is the content of a good logout token. At least one of Subject and SessionID is set.
type logout struct {
	ID        string // jti: good for once
	Subject   string // as in profile.Subject
	SessionID string
	// ForgetAt is when the token is refused for its age, so that its ID need not be kept longer.
	ForgetAt time.Time
}
