package provider

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/mcp-authd/mcp-authd/internal/claim"
)

const (
	Leeway = time.Minute // allowed difference between clocks
	// logoutAge is the maximum age of a logout token. Providers retry for a while.
	logoutAge    = 10 * time.Minute
	logoutEvent  = "http://schemas.openid.net/event/backchannel-logout"
	maxTokenSize = 64 << 10
)

// openID is a provider of OpenID Connect.
type openID struct {
	plainOAuth
	directory *discovery
}

// places returns the discovered endpoints. Configured endpoints take precedence.
func (p *openID) places(ctx context.Context) (*endpoints, error) {
	found, err := p.directory.get(ctx)
	if err != nil {
		return nil, err
	}
	e := p.overridden(*found)
	if p.preset.noUserInfo && p.UserInfoURL == "" {
		e.userInfo = ""
	}
	return &e, nil
}

func (p *openID) AuthorizationEndpoint() string {
	if found, _ := p.directory.cached(); found != nil && p.AuthorizationURL == "" {
		return found.authorize
	}
	return p.AuthorizationURL
}

// CheckIssuer also accepts an issuer that matches a template for tenants.
func (p *openID) CheckIssuer(ctx context.Context, iss string) error {
	err := p.plainOAuth.CheckIssuer(ctx, iss)
	if err == nil || !errors.Is(err, ErrGarbage) || iss == "" || p.preset.tenantOf == nil {
		return err
	}
	e, failure := p.locate(ctx)
	if failure != nil {
		return failure
	}
	if !matchesTemplate(e.issuer, iss) {
		return err
	}
	return nil
}

func (p *openID) Exchange(ctx context.Context, code, verifier, nonce, redirectURI string) (Tokens, Profile, error) {
	e, err := p.locate(ctx)
	if err != nil {
		return Tokens{}, Profile{}, err
	}
	t, answer, err := p.redeem(ctx, e, code, verifier, redirectURI)
	if err != nil {
		return Tokens{}, Profile{}, err
	}
	raw, _ := answer.Extra("id_token").(string)
	if raw == "" {
		return t, Profile{}, fmt.Errorf("%w: no ID token", ErrGarbage)
	}
	said, token, err := p.identify(ctx, e, raw, t.Access)
	switch {
	case err != nil:
		return t, Profile{}, err
	case nonce == "" || token.Nonce != nonce: // OpenID Connect Core §3.1.3.7, 11
		return t, Profile{}, fmt.Errorf("%w: the ID token has another nonce", ErrGarbage)
	case e.userInfo == "":
		return t, said, nil
	}
	more, err := p.ask(ctx, e, t)
	if err != nil {
		return t, Profile{}, AboutNew(err)
	}
	if more.Subject != said.Subject { // OpenID Connect Core §5.3.2
		return t, Profile{}, fmt.Errorf("%w: user info is about another person than the ID token", ErrGarbage)
	}
	return t, said.Over(more), nil
}

// AboutNew converts the refusal of a newly issued token to ErrGarbage. It says nothing about the
// user, only that the provider contradicts itself.
func AboutNew(err error) error {
	if errors.Is(err, ErrDenied) {
		return fmt.Errorf("%w: a token that it has just given: %s", ErrGarbage, err.Error())
	}
	return err
}

func (p *openID) Refresh(ctx context.Context, t Tokens) (Tokens, *Profile, error) {
	e, err := p.locate(ctx)
	if err != nil {
		return Tokens{}, nil, err
	}
	renewed, answer, err := p.renew(ctx, e, t)
	if err != nil {
		return Tokens{}, nil, err
	}
	raw, _ := answer.Extra("id_token").(string)
	if raw == "" {
		return renewed, nil, nil
	}
	said, _, err := p.identify(ctx, e, raw, renewed.Access)
	if err != nil { // OpenID Connect Core §12.2; the old refresh token may be invalid
		return renewed, nil, fmt.Errorf("the ID token of a renewal: %w", err)
	}
	return renewed, &said, nil
}

func (p *openID) Owner(ctx context.Context, t Tokens) (*Profile, error) {
	e, err := p.locate(ctx)
	if err != nil {
		return nil, err
	}
	if e.userInfo == "" {
		return p.named(ctx, e, t)
	}
	said, err := p.ask(ctx, e, t)
	return &said, err
}

// identify verifies an ID token (OpenID Connect Core §3.1.3.7) and returns its profile.
func (p *openID) identify(ctx context.Context, e *endpoints, raw, access string) (Profile, *oidc.IDToken, error) {
	token, claims, err := p.verify(ctx, e, raw, expected{keys: e.keys, issuer: true, audience: true, expiry: true})
	if err != nil {
		return Profile{}, nil, err
	}
	switch azp, ok := claims["azp"]; {
	case ok && azp != p.ClientID:
		return Profile{}, nil, fmt.Errorf("%w: the ID token was issued to another client (azp)", ErrGarbage)
	case !ok && len(token.Audience) > 1:
		return Profile{}, nil, fmt.Errorf("%w: the ID token has several audiences (%s) and no azp that says which of "+
			"them it was issued to", ErrGarbage, printable(strings.Join(token.Audience, ", "), 200))
	}
	if token.AccessTokenHash != "" {
		if err := token.VerifyAccessToken(access); err != nil {
			return Profile{}, nil, fmt.Errorf("%w: the ID token belongs to another access token", ErrGarbage)
		}
	}
	said, err := p.part("id_token", claims)
	return said, token, err
}

// expected lists the required properties of a token.
type expected struct {
	keys     oidc.KeySet
	issuer   bool // iss is required
	audience bool // aud must name this client
	expiry   bool // exp must be in the future
}

// verify checks the signature of a provider's token, its issuer and times if present, and the
// properties in want.
func (p *openID) verify(
	ctx context.Context, e *endpoints, raw string, want expected,
) (*oidc.IDToken, map[string]any, error) {
	if len(raw) > maxTokenSize {
		return nil, nil, fmt.Errorf("%w: a token of %d bytes", ErrGarbage, len(raw))
	}
	keys := &witness{KeySet: want.keys}
	// Claims are checked below, because go-oidc ignores case in member names.
	config := oidc.Config{
		SupportedSigningAlgs: e.algorithms, SkipClientIDCheck: true, SkipExpiryCheck: true, SkipIssuerCheck: true,
	}
	token, err := oidc.NewVerifier(e.issuer, keys, &config).Verify(ctx, raw)
	if err != nil {
		if keys.err != nil {
			err = keys.err
		}
		return nil, nil, unusable(err)
	}
	var payload json.RawMessage
	if err := token.Claims(&payload); err != nil {
		return nil, nil, unusable(err)
	}
	claims, err := object(payload)
	if err != nil {
		return nil, nil, err
	}
	exactly(token, claims)
	return token, claims, p.check(e, token, claims, want)
}

// exactly reads the claims of a token by their exact names (RFC 7519 §4). "Aud" is a different
// claim and must not replace "aud".
func exactly(token *oidc.IDToken, claims map[string]any) {
	token.Issuer, token.Subject, token.Nonce = claim.Text(claims, "iss"), claim.Text(claims, "sub"),
		claim.Text(claims, "nonce")
	token.AccessTokenHash, token.Audience = claim.Text(claims, "at_hash"), claim.List(claims, "aud")
	token.IssuedAt, _ = instant(claims["iat"])
	token.Expiry, _ = instant(claims["exp"])
}

func (p *openID) check(e *endpoints, token *oidc.IDToken, claims map[string]any, want expected) error {
	issuer := e.issuer
	if p.preset.tenantOf != nil {
		issuer = p.preset.tenantOf(e.issuer, claims)
	}
	now := p.now()
	notBefore, _ := instant(claims["nbf"])
	switch {
	case token.Issuer == "" && want.issuer, token.Issuer != "" && !sameIssuer(token.Issuer, issuer):
		return fmt.Errorf("%w: the token is by %q", ErrGarbage, printable(token.Issuer, 200))
	case want.audience && !slices.Contains(token.Audience, p.ClientID):
		return fmt.Errorf("%w: the token is for another client", ErrGarbage)
	case want.expiry && token.Expiry.Before(now.Add(-Leeway)):
		return fmt.Errorf("%w: the token has expired", ErrGarbage)
	case token.IssuedAt.After(now.Add(Leeway)), notBefore.After(now.Add(Leeway)):
		return fmt.Errorf("%w: a token from the future; are the clocks right?", ErrGarbage)
	}
	return nil
}

// sameIssuer also accepts Google's issuer without a scheme, which Google sometimes sends.
func sameIssuer(said, issuer string) bool {
	return said != "" && said == issuer || said == "accounts.google.com" && issuer == "https://accounts.google.com"
}

// witness keeps the error from reading keys, which the verifier reduces to text.
type witness struct {
	oidc.KeySet
	err error
}

// VerifySignature implements oidc.KeySet.
func (w *witness) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := w.KeySet.VerifySignature(ctx, jwt)
	if err != nil {
		w.err = unusable(err)
	}
	return payload, err
}

func instant(v any) (time.Time, bool) {
	if written, ok := v.(string); ok { // some providers send strings
		v = json.Number(written)
	}
	n, ok := v.(json.Number)
	if !ok {
		return time.Time{}, false
	}
	f, err := n.Float64()
	if err != nil || !(f >= 0 && f <= 1<<40) { // excludes NaN
		return time.Time{}, false
	}
	return time.Unix(int64(f), 0), true
}

// ask reads user info, which may be signed (OpenID Connect Core §5.3.2).
func (p *openID) ask(ctx context.Context, e *endpoints, t Tokens) (Profile, error) {
	body, mediaType, err := p.get(ctx, e.userInfo, t.Access)
	if err != nil {
		return Profile{}, err
	}
	var raw map[string]any
	if kind, _, _ := mime.ParseMediaType(mediaType); kind == "application/jwt" {
		raw, err = p.signed(ctx, e, string(bytes.TrimSpace(body)))
	} else {
		raw, err = object(body)
	}
	if err != nil {
		return Profile{}, err
	}
	return p.describe(ctx, raw, t)
}

func (p *openID) signed(ctx context.Context, e *endpoints, raw string) (map[string]any, error) {
	token, claims, err := p.verify(ctx, e, raw, expected{keys: e.keys})
	if err != nil {
		return nil, err
	}
	if len(token.Audience) > 0 && !slices.Contains(token.Audience, p.ClientID) {
		return nil, fmt.Errorf("%w: user info of another issuer or audience", ErrGarbage)
	}
	return claims, nil
}

func (p *openID) Inspect(ctx context.Context, t Tokens) (*Profile, error) {
	e, err := p.locate(ctx)
	if err != nil {
		return nil, err
	}
	if p.preset.noInspection && p.IntrospectionURL == "" && e.userInfo == "" {
		return nil, fmt.Errorf("%w: access tokens are not asked about", ErrUnsupported)
	}
	return p.inspectBy(ctx, e, t, p.ask)
}

func (p *openID) VerifyLogout(ctx context.Context, logoutToken string) (Logout, error) {
	e, err := p.locate(ctx)
	if err != nil {
		return Logout{}, err
	}
	if typ := headerType(logoutToken); typ != "" && typ != "jwt" && typ != "logout+jwt" {
		return Logout{}, fmt.Errorf("%w: a token of type %q", ErrGarbage, printable(typ, 40))
	}
	// exp was added late to the specification
	token, claims, err := p.verify(ctx, e, logoutToken, expected{keys: e.logoutKeys, issuer: true, audience: true})
	if err != nil {
		return Logout{}, err
	}
	out := Logout{
		ID: claim.Text(claims, "jti"), Subject: claim.Text(claims, "sub"), SessionID: claim.Text(claims, "sid"),
		ForgetAt: token.IssuedAt.Add(logoutAge),
	}
	if exp, ok := instant(claims["exp"]); ok && exp.Add(Leeway).Before(out.ForgetAt) {
		out.ForgetAt = exp.Add(Leeway)
	}
	if p.preset.subject != nil && out.Subject != "" {
		out.Subject = p.preset.subject(claims, out.Subject)
	}
	events, _ := claims["events"].(map[string]any)
	_, isLogout := events[logoutEvent].(map[string]any)
	_, nonce := claims["nonce"]
	switch {
	case !isLogout:
		err = errors.New("it is about another event")
	case nonce:
		err = errors.New("it has a nonce, so it is an ID token")
	case out.ID == "" || len(out.ID) > 256:
		err = errors.New("it has no jti")
	case out.Subject == "" && out.SessionID == "":
		err = errors.New("it says neither who nor which session")
	case !p.now().Before(out.ForgetAt):
		err = errors.New("it has expired")
	}
	if err != nil {
		return Logout{}, fmt.Errorf("%w: logout token: %w", ErrGarbage, err)
	}
	return out, nil
}

// headerType returns the typ of a JWT, in lower case and without "application/".
func headerType(jwt string) string {
	first, _, _ := strings.Cut(jwt, ".")
	var header struct {
		Type string `json:"typ"`
	}
	if decoded, err := base64.RawURLEncoding.DecodeString(first); err == nil {
		_ = json.Unmarshal(decoded, &header) // an invalid header fails verification later
	}
	return strings.TrimPrefix(strings.ToLower(header.Type), "application/")
}
