package thirdparty

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

const (
	// requestTTL is how long the user may take at the provider (AS-220).
	requestTTL     = 10 * time.Minute
	requestPurpose = "departure"
)

// sentRequest is an authorization request to a provider. It is stored until the response arrives.
type sentRequest struct {
	delegation.Request
	Nonce    string       `json:"nonce"`
	Verifier string       `json:"verifier"` // RFC 7636
	Extra    oauth.Scopes `json:"extra"`    // requested in addition to the configured scopes
	LeftAt   time.Time    `json:"left_at"`
	Accounts []account    `json:"accounts,omitempty"` // one of them must come back; empty: any account
	asked    bool         // the user was shown the returned account and confirmed it
}

// LogValue implements slog.LogValuer.
func (sentRequest) LogValue() slog.Value { return slog.StringValue(redacted) }

// String implements fmt.Stringer.
func (sentRequest) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (sentRequest) GoString() string { return redacted }

// Depart builds an authorization request to a provider and stores the data that its response needs.
// Nothing is stored if the provider is unreachable. An *oauth.Error contains the message for the
// user.
func (d *Delegation) Depart(ctx context.Context, t delegation.Request) (delegation.AuthorizationRequest, error) {
	c, ok := d.byID[t.Provider]
	if !ok {
		return delegation.AuthorizationRequest{}, errNoProvider
	}
	if signedIn := t.UserID != ""; signedIn == (t.Purpose == delegation.PurposeSignIn) {
		return delegation.AuthorizationRequest{}, fmt.Errorf("thirdparty: purpose %q with user %q", t.Purpose, t.UserID)
	}
	if t.Reauth == delegation.ReauthProved && !c.traits.OpenID { // no response could prove it
		return delegation.AuthorizationRequest{}, c.say(oauth.UnmetAuthentication, sayUnproved)
	}
	replaced, err := d.replaced(ctx, c, t)
	if err != nil {
		return delegation.AuthorizationRequest{}, err
	}
	accounts, hint, err := d.expected(ctx, c, t, replaced)
	if err != nil {
		return delegation.AuthorizationRequest{}, err
	}
	extra := t.Scopes.Union(replaced.Scopes.Without(c.Scopes))
	// SP-04: fresh for each sign-in. An attacker who learns only the state, from a Referer or a
	// log, cannot use it. A browser that an attacker sends here with a state lacks the binding
	// (login CSRF).
	out := delegation.AuthorizationRequest{
		State: secrets.Token(""), Binding: secrets.Token(""), ExpiresAt: d.now().Add(requestTTL),
	}
	sent := sentRequest{
		Request: t, Nonce: secrets.Token(""), Verifier: secrets.Token(""),
		Extra: extra, LeftAt: d.now(), Accounts: accounts,
	}
	out.URL, err = c.AuthorizeURL(ctx, provider.AuthorizationRequest{
		State: out.State, Nonce: sent.Nonce, Verifier: sent.Verifier, RedirectURI: c.redirectURI(),
		LoginHint: cmp.Or(t.LoginHint, hint), Fresh: t.Reauth != "", Choose: c.choose(t, accounts), Scopes: extra,
	})
	if err != nil {
		d.unmet(ctx, c, err)
		return delegation.AuthorizationRequest{}, c.told(err)
	}
	return out, d.putDeparture(ctx, out, sent)
}

// replaced returns the session whose tokens a request for more scopes will replace. Its scopes are
// requested again.
func (d *Delegation) replaced(ctx context.Context, c *connector, t delegation.Request) (storage.Upstream, error) {
	if t.Purpose != delegation.PurposeExtend {
		return storage.Upstream{}, nil
	}
	u, err := d.cfg.Store.UpstreamFor(ctx, t.UserID, c.ID, "")
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return storage.Upstream{}, fmt.Errorf("thirdparty: depart: %w", err)
	}
	return u, nil
}

// choose reports whether the provider must let the user choose an account, because the wrong
// account may be signed in there. That is so when an account is to be linked, or when the request
// cannot name the expected one.
func (c *connector) choose(t delegation.Request, expected []account) bool {
	return t.Choose || t.Purpose != delegation.PurposeSignIn && (len(expected) == 0 || !c.traits.LoginHint)
}

func (d *Delegation) putDeparture(ctx context.Context, out delegation.AuthorizationRequest, sent sentRequest) error {
	content, err := json.Marshal(sent)
	if err != nil {
		return fmt.Errorf("thirdparty: depart: %w", err)
	}
	key := departureKey(out.State, out.Binding)
	err = d.cfg.Store.PutDeparture(ctx, storage.Departure{
		Key: key, Sealed: d.ring.Seal(requestPurpose, content, key[:]), ExpiresAt: out.ExpiresAt,
	})
	if err != nil {
		return fmt.Errorf("thirdparty: depart: %w", err)
	}
	return nil
}

// takeDeparture returns the request for a response, once. It needs both halves of the key, so an
// attacker cannot use up another user's request.
func (d *Delegation) takeDeparture(ctx context.Context, state, binding string) (sentRequest, error) {
	var sent sentRequest
	if state == "" || binding == "" {
		return sent, errNoRequest
	}
	key := departureKey(state, binding)
	found, err := d.cfg.Store.TakeDeparture(ctx, key, d.now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return sent, errNoRequest
	case errors.Is(err, storage.ErrExpired):
		d.abandoned(ctx, found)
		return sent, errRequestExpired
	case err != nil:
		return sent, fmt.Errorf("thirdparty: return: %w", err)
	}
	content, err := d.ring.Open(requestPurpose, found.Sealed, key[:])
	if err != nil { // its master key was removed in the meantime
		return sent, errRequestExpired.Because(err)
	}
	if err := json.Unmarshal(content, &sent); err != nil {
		return sent, fmt.Errorf("thirdparty: return: %w", err)
	}
	return sent, nil
}

func departureKey(state, binding string) storage.Hash {
	return sha256.Sum256([]byte(state + "." + binding))
}

// Errors for the user about a sign-in that cannot be completed.
var (
	errNoProvider = sentence.NewError(oauth.InvalidRequest, "There is no such way to sign in here.", "no_way")
	errNoRequest  = sentence.NewError(oauth.InvalidRequest,
		"This sign-in was not begun in this browser, or it was completed already. Please start again from your application.", "not_begun")
	errRequestExpired = sentence.NewError(oauth.InvalidRequest,
		"This sign-in took too long. Please start again from your application.", "too_long")
)
