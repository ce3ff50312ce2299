package thirdparty

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// responseTTL limits how long a provider may take to identify the user. Each request has its own
// limit, but there may be twenty requests: lists of organisations are paged.
const responseTTL = 30 * time.Second

// Return processes an authorization response, once. It redeems the provider's code, checks who
// signed in, and stores the user, the upstream session and the local session together, or nothing.
// An *oauth.Error contains the message for the client and the user. The result contains the request
// as soon as it is known.
func (d *Delegation) Return(ctx context.Context, r delegation.AuthorizationResponse) (delegation.Result, error) {
	c, ok := d.byID[r.Provider]
	if !ok {
		return delegation.Result{}, errNoProvider
	}
	sent, err := d.takeDeparture(ctx, single(r.Params, "state"), r.Binding)
	if err != nil {
		return delegation.Result{}, err
	}
	out := delegation.Result{Request: sent.Request}
	limited, cancel := context.WithTimeout(ctx, responseTTL)
	held, err := d.collect(limited, c, sent, r.Params)
	cancel()
	out.Came = held.Profile.Name()
	if errors.Is(err, errOtherAccount) {
		out.Came, out.Expected = held.Profile.Label, sent.Accounts[0].Label
	}
	if err != nil {
		d.refused(ctx, c, sent, err)
		return out, err
	}
	err = d.arrive(ctx, c, sent, held, r.Session, &out)
	if errors.Is(err, storage.ErrUntied) {
		out.Claim, err = d.question(ctx, c, sent, held)
		return out, err
	}
	if err != nil {
		d.refused(ctx, c, sent, err)
	}
	return out, err
}

// collect redeems an authorization response and returns the tokens and profile of the account.
func (d *Delegation) collect(ctx context.Context, c *connector, sent sentRequest, params url.Values) (holding, error) {
	// A malicious provider can send the browser to another provider's callback. It could then
	// redeem that provider's code, or steal one from this server (RFC 9700 §4.4, AS-224).
	if sent.Provider != c.ID {
		return holding{}, errMixedUp
	}
	for name, values := range params { // RFC 6749 §3.1
		if len(values) > 1 {
			return holding{},
				c.told(fmt.Errorf("%w: %.20q is twice in the authorization response", provider.ErrGarbage, name))
		}
	}
	code := single(params, "code")
	if !params.Has("error") && !isCode(code) {
		return holding{},
			c.told(fmt.Errorf("%w: no code in the authorization response, or a malformed one", provider.ErrGarbage))
	}
	if err := c.CheckIssuer(ctx, single(params, "iss")); err != nil { // RFC 9207 §2.4, AS-225
		d.unmet(ctx, c, err)
		return holding{}, c.told(err)
	}
	if other := d.issuedBy(single(params, "iss")); other != nil && other != c && c.Issuer == "" {
		err := fmt.Errorf("%w: the answer is by the provider of %q", provider.ErrGarbage, other.ID)
		return holding{}, c.told(err)
	}
	if params.Has("error") {
		return holding{}, c.refusal(params)
	}
	t, p, err := c.Exchange(ctx, code, sent.Verifier, sent.Nonce, c.redirectURI())
	if err != nil {
		d.unmet(ctx, c, err)
		return holding{}, c.told(err)
	}
	if t.Assumed {
		t.Scopes = t.Scopes.Union(sent.Extra)
	}
	held := holding{Tokens: t, Profile: p}
	if err := d.vet(c, sent, p); err != nil {
		d.giveBack(ctx, c, held.Tokens)
		return held, err
	}
	return held, nil
}

// issuedBy returns the connector with an issuer. A response for a connector without an issuer may
// name any issuer, except another connector's (RFC 9207 §2.4).
func (d *Delegation) issuedBy(iss string) *connector {
	for _, c := range d.connectors {
		if iss != "" && c.Issuer == iss {
			return c
		}
	}
	return nil
}

// maxCode is longer than any known provider's code.
const maxCode = 2 << 10

// isCode checks RFC 6749 App. A.11, 1*VSCHAR. Any other value can only come from a stranger, and a
// provider's database may fail on it.
func isCode(s string) bool {
	return s != "" && len(s) <= maxCode && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e })
}

// vet decides whether the user may sign in.
func (d *Delegation) vet(c *connector, sent sentRequest, p provider.Profile) error {
	if p.Subject == "" {
		return c.told(fmt.Errorf("%w: no subject", provider.ErrGarbage))
	}
	if sent.Reauth != "" {
		if err := d.prove(c, sent, p); err != nil {
			return err
		}
	}
	if err := c.admit(p); err != nil {
		return c.say(oauth.AccessDenied, sayNotAllowed).Because(attempt.CauseRule.Because(err))
	}
	return c.recognize(sent, p)
}

// prove checks that the provider authenticated the user again, as the request demands. A missing
// auth_time proves nothing: it is REQUIRED if max_age was requested (OpenID Connect Core §2), and a
// provider that reuses its session could omit it.
func (d *Delegation) prove(c *connector, sent sentRequest, p provider.Profile) error {
	switch at := p.Proved(d.now()); {
	case at.IsZero() && sent.Reauth == delegation.ReauthAsked:
		return nil // it was asked; many providers return no auth_time
	case at.IsZero():
		return c.say(oauth.UnmetAuthentication, sayUnproved)
	case at.Before(sent.LeftAt.Add(-provider.Leeway)):
		return c.say(oauth.UnmetAuthentication, sayNotAskedAgain)
	}
	return nil
}

// arrive stores the sign-in.
func (d *Delegation) arrive(
	ctx context.Context, c *connector, sent sentRequest, held holding, s storage.Session, out *delegation.Result,
) error {
	if err := d.settle(ctx); err != nil {
		return err
	}
	a := d.arrival(c, sent, held, s)
	user, err := d.cfg.Store.Arrive(ctx, a)
	if errors.Is(err, storage.ErrUntied) {
		return err // the tokens are kept until the user answers
	}
	if err != nil {
		d.abandon(ctx, c, a.Upstream.ID, held.Tokens)
		return c.turnedAway(err)
	}
	if t := held.Tokens; !c.Detached && t.Refresh == "" && !t.Expires.IsZero() {
		d.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "the provider gave no refresh token, so this sign-in ends when its "+
			"access token expires: let this server's client there have refresh tokens (offline_access)",
			slog.String("connector", c.ID), slog.Time("expires_at", t.Expires))
	}
	out.User, out.Upstream, out.AuthTime = user, a.Upstream.ID, held.Profile.Proved(a.Now)
	event := audit.ProviderSignedIn
	if sent.Purpose != delegation.PurposeSignIn {
		event = audit.ProviderLinked
	}
	d.record(ctx, event, c, audit.Person(user.ID, user.Name),
		slog.String("subject", a.Identity.Subject), audit.ProviderSession(a.Upstream.ID),
		slog.String("scope", a.Upstream.Scopes.String()))
	return nil
}

func (d *Delegation) arrival(c *connector, sent sentRequest, held holding, s storage.Session) storage.Arrival {
	now, p := d.now(), held.Profile
	u := storage.Upstream{
		ID: secrets.ID("ups_"), Connector: c.ID, Subject: p.Subject, UserID: sent.UserID, SessionID: p.SessionID,
		Linked: sent.Purpose != delegation.PurposeSignIn, Scopes: held.Tokens.Scopes, Version: 1,
		CreatedAt: now, CheckedAt: now, DueAt: c.nextCheck(held.Tokens, now),
	}
	a := storage.Arrival{Upstream: u, Asked: sent.asked, LeftAt: sent.LeftAt, Now: now, Identity: storage.Identity{
		Connector: c.ID, Subject: p.Subject, UserID: sent.UserID, Label: p.Label, CreatedAt: now, LastUsedAt: now,
	}}
	a.Seal = func(userID string) ([]byte, error) {
		u.UserID = userID
		return d.seal(u, held)
	}
	if sent.asked { // the provider may have ended the session in the meantime
		a.Upstream.DueAt = now
	}
	if sent.Purpose == delegation.PurposeSignIn {
		s.AuthTime, s.UpstreamID = p.Proved(now), u.ID
		s.ProvedAt = s.AuthTime
		a.NewUser, a.Session = d.newcomer(c, p, now), &s
	}
	return a
}

// turnedAway translates the store's error for an authenticated user who cannot sign in.
func (c *connector) turnedAway(err error) error {
	switch {
	case errors.Is(err, storage.ErrHomeProvider):
		return delegation.ErrHomeProvider
	case errors.Is(err, storage.ErrStopped):
		return errRequestExpired // stopped by the user
	case errors.Is(err, storage.ErrRevoked):
		return sentence.NewError(oauth.AccessDenied,
			"Your account on this server is disabled. Please ask its operator.", "disabled").Because(err)
	case errors.Is(err, storage.ErrExists):
		return c.say(oauth.AccessDenied, sayBelongsToOther).Because(err)
	case errors.Is(err, storage.ErrNotFound):
		return sentence.NewError(oauth.AccessDenied,
			"Your account on this server does not exist any more.", "account_gone").Because(err)
	}
	return fmt.Errorf("thirdparty: return: %w", err)
}

// forAdministrators are error numbers of Microsoft Entra that require consent by an administrator,
// regardless of the error code.
var forAdministrators = []string{"AADSTS90094", "AADSTS90095", "AADSTS65001"}

// refusal returns the protocol error for an error response of a provider (RFC 6749 §4.1.2.1).
func (c *connector) refusal(params url.Values) *oauth.Error {
	code := oauth.Code(single(params, "error"))
	description := single(params, "error_description")
	cause := fmt.Errorf("the provider answered error=%.40q error_description=%.300q", string(code), description)
	if code == oauth.ConsentRequired || slices.ContainsFunc(forAdministrators, func(number string) bool {
		return strings.HasPrefix(description, number)
	}) {
		return c.say(oauth.AccessDenied, sayUnapproved).Because(attempt.CauseProvider.Because(cause))
	}
	switch code {
	case oauth.AccessDenied, oauth.LoginRequired, oauth.InteractionRequired,
		"account_selection_required",
		"user_cancelled_login", "user_cancelled_authorize":
		return c.say(oauth.AccessDenied, sayDeclined).Because(attempt.CauseProvider.Because(cause))
	case oauth.TemporarilyUnavailable:
		return c.told(fmt.Errorf("%w: %w", provider.ErrUnreachable, cause))
	case oauth.UnauthorizedClient, oauth.InvalidScope, oauth.InvalidRequest, oauth.InvalidClient,
		oauth.UnsupportedResponseType:
		return c.told(fmt.Errorf("%w: %w", provider.ErrMisconfigured, cause))
	}
	return c.told(fmt.Errorf("%w: %w", provider.ErrGarbage, cause))
}

// refused records a failed sign-in. The cause goes only to the log, because readers of the audit
// events may not see it.
func (d *Delegation) refused(ctx context.Context, c *connector, sent sentRequest, err error) {
	e := oauth.AsError(err)
	attrs := []slog.Attr{
		audit.Purpose(string(sent.Purpose)), slog.String("error", string(e.Code)),
		slog.String("reason", e.Description),
	}
	if sent.UserID != "" {
		attrs = append(attrs, slog.String("user", sent.UserID))
	}
	var kept *notAllowedError
	if errors.As(err, &kept) {
		attrs = append(attrs, slog.String("rule", kept.rule), slog.String("subject", kept.subject),
			slog.String("account", kept.account))
	}
	d.record(ctx, audit.ProviderRefused, c, attrs...)
	d.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "sign-in at a provider refused", slog.String("connector", c.ID),
		request.Of(ctx).ReferenceAttr(), slog.Any("cause", sentence.Cause(e)))
}

// abandon revokes tokens after a failed sign-in, unless the sign-in was stored: a lost reply looks
// like a failure.
func (d *Delegation) abandon(ctx context.Context, c *connector, id string, t provider.Tokens) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if _, err := d.cfg.Store.Upstream(ctx, id); errors.Is(err, storage.ErrNotFound) {
		d.giveBack(ctx, c, t)
	}
}

// giveBack asks the provider to revoke unused tokens, in the background and without a guarantee.
func (d *Delegation) giveBack(ctx context.Context, c *connector, t provider.Tokens) {
	d.pending.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTTL)
		defer cancel()
		if err := c.Revoke(ctx, t); err != nil && !errors.Is(err, provider.ErrUnsupported) {
			d.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "tokens of a provider could not be given back",
				slog.String("connector", c.ID), slog.Any("cause", err))
		}
	})
}

// errMixedUp means that the response came from another provider than the request was sent to.
var errMixedUp = sentence.NewError(oauth.ServerError,
	"The answer came from another provider than the one that was asked. Please start again from your application.", "mixed_up")

// single returns a parameter that must not be repeated (RFC 6749 §3.1), or "" if it is.
func single(params url.Values, name string) string {
	if v := params[name]; len(v) == 1 {
		return v[0]
	}
	return ""
}
