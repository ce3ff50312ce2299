package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// plainOAuth is a provider of plain OAuth 2.0. It also contains the code that openID shares.
type plainOAuth struct {
	*Settings
	preset *preset
	listed bool // the administrator configured the scopes
	client *http.Client
	now    func() time.Time
	fixed  endpoints // endpoints of plain OAuth 2.0
	// eventKeys are the configured keys of the security event transmitter, or nil.
	eventKeys oidc.KeySet
	locate    func(ctx context.Context) (*endpoints, error)
}

// places returns the endpoints of plain OAuth 2.0, which are all configured.
func (u *plainOAuth) places(context.Context) (*endpoints, error) { return &u.fixed, nil }

func (u *plainOAuth) AuthorizationEndpoint() string { return u.fixed.authorize }

func (u *plainOAuth) AuthorizeURL(ctx context.Context, q AuthorizationRequest) (string, error) {
	e, err := u.locate(ctx)
	if err != nil {
		return "", err
	}
	conf, err := u.oauthConfig(e, q.RedirectURI)
	if err != nil {
		return "", err
	}
	p := u.parameters(e, q)
	conf.Scopes = u.asked(e).Union(q.Scopes)
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(q.Verifier)}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if p[name] != "" {
			options = append(options, oauth2.SetAuthURLParam(name, p[name]))
		}
	}
	return conf.AuthCodeURL(q.State, options...), nil
}

// asked returns the scopes of every sign-in. It includes offline_access if the provider supports
// it, because without a refresh token a sign-in ends with its first access token.
func (u *plainOAuth) asked(e *endpoints) oauth.Scopes {
	if u.offline(e) {
		return u.Scopes.Union(oauth.Scopes{oauth.OfflineAccess})
	}
	return u.Scopes
}

// offline reports whether to request offline_access. If the scope would prompt the user at every
// sign-in, a configured scope list takes precedence. Some providers list the scope in their
// metadata but refuse it to clients.
func (u *plainOAuth) offline(e *endpoints) bool {
	if u.Scopes.Has(oauth.OfflineAccess) {
		return true
	}
	return !u.Detached && u.preset.offlineScope && slices.Contains(e.scopes, oauth.OfflineAccess) &&
		!(u.listed && u.preset.consentForOffline)
}

// parameters returns the additional parameters of the authorization request: the preset's, then the
// request's, then the configured ones. An empty configured value removes a parameter. "resource" is
// never among them (AS-225), because it is for this server's own tokens.
func (u *plainOAuth) parameters(e *endpoints, q AuthorizationRequest) map[string]string {
	p := map[string]string{}
	maps.Copy(p, u.preset.parameters)
	if !u.Detached {
		maps.Copy(p, u.preset.offlineParameters)
	}
	if u.preset.openID {
		p["nonce"] = q.Nonce
		if u.preset.consentForOffline && u.offline(e) {
			p["prompt"] = "consent" // OpenID Connect Core §11
		}
	}
	if hint := u.preset.loginHint; hint != "" && q.LoginHint != "" && len(q.LoginHint) <= 256 {
		p[hint] = q.LoginHint
	}
	if len(q.Scopes) > 0 {
		maps.Copy(p, u.preset.extending)
	}
	if u.preset.narrow != nil {
		u.preset.narrow(u.Settings, p)
	}
	maps.Copy(p, u.Parameters)
	for name, value := range u.preset.demanded(q) { // the configuration cannot override these
		if name == "prompt" && p["prompt"] == "consent" && value != "consent" {
			value += " consent"
		}
		p[name] = value
	}
	return p
}

// demanded returns the parameters that prevent a session at the provider from choosing the account.
func (p *preset) demanded(q AuthorizationRequest) map[string]string {
	switch {
	case q.Choose && !q.Fresh && p.choose != nil:
		return p.choose
	case q.Choose, q.Fresh:
		return p.fresh
	}
	return nil
}

func (u *plainOAuth) CheckIssuer(ctx context.Context, iss string) error {
	e, err := u.locate(ctx)
	if err != nil {
		return err
	}
	switch {
	case iss == "" && e.namesIssuer:
		return fmt.Errorf("%w: the answer does not say whose it is, as %s promises", ErrGarbage, e.issuer)
	case iss == "" || iss == e.issuer:
		return nil
	case e.issuer == "": // plain OAuth 2.0: no issuer is configured
		return nil
	}
	return fmt.Errorf("%w: the answer is by %q", ErrGarbage, printable(iss, 200))
}

func (u *plainOAuth) Exchange(ctx context.Context, code, verifier, _, redirectURI string) (Tokens, Profile, error) {
	e, err := u.locate(ctx)
	if err != nil {
		return Tokens{}, Profile{}, err
	}
	t, _, err := u.redeem(ctx, e, code, verifier, redirectURI)
	if err != nil {
		return Tokens{}, Profile{}, err
	}
	p, err := u.ask(ctx, e, t)
	return t, p, err
}

// redeem redeems a code at the token endpoint. It also returns the whole response.
func (u *plainOAuth) redeem(
	ctx context.Context, e *endpoints, code, verifier, redirectURI string,
) (Tokens, *oauth2.Token, error) {
	conf, err := u.oauthConfig(e, redirectURI)
	if err != nil {
		return Tokens{}, nil, err
	}
	answer, err := conf.Exchange(u.context(ctx), code, oauth2.VerifierOption(verifier))
	if err != nil {
		return Tokens{}, nil, u.tokenFailure(err, code, verifier, conf.ClientSecret)
	}
	t, err := u.received(answer, Tokens{Scopes: u.asked(e)})
	return t, answer, err
}

func (u *plainOAuth) Refresh(ctx context.Context, t Tokens) (Tokens, *Profile, error) {
	e, err := u.locate(ctx)
	if err != nil {
		return Tokens{}, nil, err
	}
	renewed, _, err := u.renew(ctx, e, t)
	return renewed, nil, err
}

func (u *plainOAuth) renew(ctx context.Context, e *endpoints, t Tokens) (Tokens, *oauth2.Token, error) {
	if t.Refresh == "" {
		return Tokens{}, nil, fmt.Errorf("%w: no refresh token", ErrUnsupported)
	}
	conf, err := u.oauthConfig(e, "")
	if err != nil {
		return Tokens{}, nil, err
	}
	answer, err := conf.TokenSource(u.context(ctx), &oauth2.Token{RefreshToken: t.Refresh}).Token()
	if err != nil {
		return Tokens{}, nil, u.renewalFailure(err, t.Refresh, t.Access, conf.ClientSecret)
	}
	renewed, err := u.received(answer, t)
	return renewed, answer, err
}

// renewalFailure is tokenFailure for a renewal. Dex reports a revoked or expired refresh token as
// invalid_request, against RFC 6749 §5.2, and mentions the token only in the description. Without
// this case, such a session would be asked about forever.
func (u *plainOAuth) renewalFailure(err error, secrets ...string) error {
	var r *oauth2.RetrieveError
	if errors.As(err, &r) && r.Response.StatusCode == http.StatusBadRequest &&
		r.ErrorCode == string(oauth.InvalidRequest) &&
		strings.HasPrefix(strings.ToLower(r.ErrorDescription), "refresh token ") {
		return fmt.Errorf("%w: %s about the refresh token", ErrDenied, r.ErrorCode)
	}
	return u.tokenFailure(err, secrets...)
}

func (u *plainOAuth) context(ctx context.Context) context.Context {
	c := *u.client
	c.Transport = tokenAnswers{c.Transport}
	return context.WithValue(ctx, oauth2.HTTPClient, &c)
}

// received converts a token response to Tokens. Missing members keep their earlier values.
func (u *plainOAuth) received(answer *oauth2.Token, before Tokens) (Tokens, error) {
	if !strings.EqualFold(answer.Type(), "Bearer") {
		return Tokens{}, fmt.Errorf("%w: token_type is %q", ErrGarbage, printable(answer.TokenType, 20))
	}
	t := Tokens{
		Access: answer.AccessToken, Refresh: answer.RefreshToken, Type: "Bearer", Scopes: before.Scopes, Assumed: true,
	}
	if !answer.Expiry.IsZero() {
		t.Expires = u.now().Add(time.Until(answer.Expiry)).Truncate(time.Second)
	}
	if scope, ok := answer.Extra("scope").(string); ok && scope != "" {
		if u.preset.commaScopes {
			scope = strings.ReplaceAll(scope, ",", " ")
		}
		t.Scopes, t.Assumed = oauth.ParseScopes(scope), false
	}
	return t, nil
}

// tokenFailure returns the error of a token request, with the error code and the description
// without secrets.
func (u *plainOAuth) tokenFailure(err error, secrets ...string) error {
	var r *oauth2.RetrieveError
	if errors.As(err, &r) {
		return u.refusal(r.Response.StatusCode, r.ErrorCode, r.ErrorDescription, secrets...)
	}
	var web *url.Error
	if errors.As(err, &web) {
		return failed(err)
	}
	return fmt.Errorf("%w: the token endpoint's answer is malformed", ErrGarbage) // err may quote it
}

// ask asks who owns a token.
func (u *plainOAuth) ask(ctx context.Context, e *endpoints, t Tokens) (Profile, error) {
	body, _, err := u.get(ctx, e.userInfo, t.Access)
	if err != nil {
		return Profile{}, err
	}
	raw, err := object(body)
	if err != nil {
		return Profile{}, err
	}
	return u.describe(ctx, raw, t)
}

// describe builds a profile from user info and the preset's additional requests.
func (u *plainOAuth) describe(ctx context.Context, raw map[string]any, t Tokens) (Profile, error) {
	if err := u.slackFailure(raw); err != nil {
		return Profile{}, err
	}
	raw = mapped(raw, u.preset.claims)
	raw = mapped(raw, u.Claims)
	if u.preset.lookup != nil {
		if err := u.preset.lookup(ctx, u, t, raw); err != nil {
			return Profile{}, err
		}
	}
	return u.part("userinfo", raw)
}

func (u *plainOAuth) Inspect(ctx context.Context, t Tokens) (*Profile, error) {
	e, err := u.locate(ctx)
	if err != nil {
		return nil, err
	}
	return u.inspectBy(ctx, e, t, u.ask)
}

// inspectBy uses introspection if it is configured. It reads user info if there is no
// introspection, or if rules need the claims.
func (u *plainOAuth) inspectBy(
	ctx context.Context, e *endpoints, t Tokens, ask func(context.Context, *endpoints, Tokens) (Profile, error),
) (*Profile, error) {
	var introspected *Profile
	if u.IntrospectionURL != "" || e.userInfo == "" && e.introspect != "" {
		subject, err := u.introspect(ctx, e, t)
		introspected = u.about(subject)
		if err != nil || e.userInfo == "" || u.Judged == nil || !u.Judged() {
			return introspected, err
		}
	}
	if e.userInfo == "" {
		return nil, fmt.Errorf("%w: neither user info nor introspection", ErrUnsupported)
	}
	p, err := ask(ctx, e, t)
	switch {
	case err != nil:
		return nil, err
	case introspected != nil && introspected.Subject != p.Subject:
		return nil, fmt.Errorf("%w: introspection and user info speak of different people", ErrGarbage)
	}
	return &p, nil
}

func (u *plainOAuth) Owner(ctx context.Context, t Tokens) (*Profile, error) {
	e, err := u.locate(ctx)
	if err != nil {
		return nil, err
	}
	if e.userInfo == "" {
		return u.named(ctx, e, t)
	}
	p, err := u.ask(ctx, e, t)
	return &p, err
}

// named returns the owner of a token from introspection, which may omit it.
func (u *plainOAuth) named(ctx context.Context, e *endpoints, t Tokens) (*Profile, error) {
	// A subject with more parts than sub cannot be compared with sub alone.
	if e.introspect == "" || u.preset.noInspection && u.IntrospectionURL == "" || u.preset.subject != nil {
		return nil, fmt.Errorf("%w: neither user info nor introspection", ErrUnsupported)
	}
	subject, err := u.introspect(ctx, e, t)
	switch {
	case err != nil:
		return nil, err
	case subject == "":
		return nil, fmt.Errorf("%w: introspection names no user", ErrUnsupported)
	}
	return &Profile{Subject: subject}, nil
}

// introspect asks about the access token (RFC 7662). It returns sub, which is OPTIONAL.
func (u *plainOAuth) introspect(ctx context.Context, e *endpoints, t Tokens) (subject string, err error) {
	body, err := u.post(ctx, e, e.introspect, url.Values{"token": {t.Access}, "token_type_hint": {"access_token"}})
	if err != nil {
		if errors.Is(err, ErrDenied) { // the error is about this client, not the token
			err = fmt.Errorf("%w: introspection: %s", ErrMisconfigured, err.Error())
		}
		return "", err
	}
	answer, err := object(body)
	if err != nil {
		return "", err
	}
	active, said := answer["active"].(bool)
	switch {
	case !said:
		return "", fmt.Errorf("%w: introspection does not say whether the token is active", ErrGarbage)
	case !active:
		return "", fmt.Errorf("%w: the token is not active", ErrDenied)
	}
	if client := claim.Text(answer, "client_id"); client != "" && client != u.ClientID { // RFC 7662 §2.2
		return "", fmt.Errorf("%w: introspection speaks of the token of another client", ErrGarbage)
	}
	return claim.Text(answer, "sub"), nil
}

// about returns the profile from introspection, or nil if introspection names no user or identifies
// users differently. An answer about another client's token does not count (RFC 7662 §4).
func (u *plainOAuth) about(subject string) *Profile {
	if subject == "" || u.Claims["sub"] != "" || u.preset.claims["sub"] != "" || u.preset.subject != nil {
		return nil
	}
	return &Profile{Subject: subject}
}

// Revoke revokes the refresh token, which includes its access tokens, or else the access token.
func (u *plainOAuth) Revoke(ctx context.Context, t Tokens) error {
	if u.preset.revoke != nil {
		return u.preset.revoke(ctx, u, t)
	}
	e, err := u.locate(ctx)
	if err != nil {
		return err
	}
	if e.revoke == "" {
		return fmt.Errorf("%w: no revocation", ErrUnsupported)
	}
	form := url.Values{"token": {t.Refresh}, "token_type_hint": {"refresh_token"}}
	if t.Refresh == "" {
		form = url.Values{"token": {t.Access}, "token_type_hint": {"access_token"}}
	}
	_, err = u.post(ctx, e, e.revoke, form)
	return err
}

func (u *plainOAuth) VerifyLogout(context.Context, string) (Logout, error) {
	return Logout{}, fmt.Errorf("%w: back-channel logout", ErrUnsupported)
}
