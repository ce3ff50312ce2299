package provider

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"
)

// Authentication methods at the token endpoint.
const (
	authBasic = "basic"
	authPost  = "post"
	authJWT   = "jwt"
	authNone  = "none"
)

// authMethod returns the method to authenticate at a provider that supports the given methods of
// OpenID Connect Core §9. It never tries several methods, because a code can be redeemed only once.
func (u *plainOAuth) authMethod(supported []string) string {
	switch {
	case u.ClientAuth != "":
		return u.ClientAuth
	case u.ClientSecret == "":
		return authNone
	case len(supported) > 0 && !slices.Contains(supported, "client_secret_basic") &&
		slices.Contains(supported, "client_secret_post"):
		return authPost
	}
	return authBasic
}

// secret returns the client secret. For Apple it is a signed statement.
func (u *plainOAuth) secret(method string) (string, error) {
	switch method {
	case authNone:
		return "", nil
	case authJWT:
		return u.signedSecret()
	}
	return u.ClientSecret, nil
}

// signedSecret returns the client secret for Sign in with Apple: a JWT that is valid for five
// minutes.
func (u *plainOAuth) signedSecret() (string, error) {
	key, err := parseKey(u.Key)
	if err != nil {
		return "", fmt.Errorf("%w: key: %w", ErrMisconfigured, err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key},
		(&jose.SignerOptions{}).WithHeader("kid", u.KeyID))
	if err != nil {
		return "", fmt.Errorf("%w: key: %w", ErrMisconfigured, err)
	}
	now := u.now()
	return jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: u.TeamID, Subject: u.ClientID, Audience: jwt.Audience{u.preset.secretAudience},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(5 * time.Minute)),
	}).Serialize()
}

func parseKey(text string) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("is not PKCS #8")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve.Params().BitSize != 256 {
		return nil, errors.New("is not a P-256 key")
	}
	return key, nil
}

// oauthConfig returns the client configuration for x/oauth2.
func (u *plainOAuth) oauthConfig(e *endpoints, redirectURI string) (*oauth2.Config, error) {
	method := u.authMethod(e.authMethods)
	secret, err := u.secret(method)
	if err != nil {
		return nil, err
	}
	style := oauth2.AuthStyleInParams
	if method == authBasic {
		style = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{
		ClientID: u.ClientID, ClientSecret: secret, RedirectURL: redirectURI,
		Endpoint: oauth2.Endpoint{AuthURL: e.authorize, TokenURL: e.token, AuthStyle: style},
	}, nil
}

// post sends a form with client authentication to an endpoint that x/oauth2 does not support. It
// returns the body of a response with status 200.
func (u *plainOAuth) post(ctx context.Context, e *endpoints, to string, form url.Values) ([]byte, error) {
	method := u.authMethod(e.authMethods)
	secret, err := u.secret(method)
	if err != nil {
		return nil, err
	}
	if method != authBasic {
		form.Set("client_id", u.ClientID)
		if secret != "" {
			form.Set("client_secret", secret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if method == authBasic {
		req.SetBasicAuth(url.QueryEscape(u.ClientID), url.QueryEscape(secret))
	}
	resp, err := u.client.Do(req)
	if err != nil {
		return nil, failed(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, failed(err)
	}
	if resp.StatusCode != http.StatusOK {
		var answer struct {
			Error       string `json:"error"`
			Description string `json:"error_description"`
		}
		_ = json.Unmarshal(body, &answer)
		return nil, u.refusal(resp.StatusCode, answer.Error, answer.Description, form.Get("token"), secret)
	}
	return body, nil
}

// refusals maps the error codes of token endpoints, including GitHub's and Slack's, to errors.
var refusals = map[string]error{
	"invalid_grant": ErrDenied, "access_denied": ErrDenied, "unauthorized": ErrDenied,
	"interaction_required": ErrDenied, "login_required": ErrDenied, "consent_required": ErrDenied,
	"bad_verification_code": ErrDenied, "bad_refresh_token": ErrDenied,
	"invalid_code": ErrDenied, "code_already_used": ErrDenied, "code_expired": ErrDenied,
	"invalid_refresh_token": ErrDenied, "invalid_auth": ErrDenied,
	"token_revoked": ErrDenied, "token_expired": ErrDenied, "account_inactive": ErrDenied,
	"user_removed_from_team": ErrDenied, "not_authed": ErrDenied,

	"server_error": ErrUnreachable, "temporarily_unavailable": ErrUnreachable, "slow_down": &TooOften{},
	"ratelimited": &TooOften{}, "internal_error": ErrUnreachable, "fatal_error": ErrUnreachable,
	"service_unavailable": ErrUnreachable,
}

// refusal returns the error for a response with or without an error code. words is its description.
// An unknown code means that something is wrong with the client, not with the user.
func refusal(status int, code, words string) error {
	if words != "" {
		words = ": " + words
	}
	if err, ok := refusals[code]; ok {
		return fmt.Errorf("%w: %s (%d)%s", err, code, status, words)
	}
	if code == "" && status != http.StatusUnauthorized && status != http.StatusForbidden {
		return fmt.Errorf("%w: status %d without an error code", ErrGarbage, status)
	}
	if code == "" {
		code = "no error code"
	}
	odd := func(r rune) bool { return r != '_' && r != ' ' && (r < 'a' || r > 'z') }
	if len(code) > 64 || strings.ContainsFunc(code, odd) {
		code = "a malformed error code" // it could contain anything
	}
	return fmt.Errorf("%w: %s (%d)%s", ErrMisconfigured, code, status, words)
}

// refusal returns the error for a provider's response. It makes the description safe for the log:
// printable, bounded, and without the secrets of the request, which a provider could repeat.
func (u *plainOAuth) refusal(status int, code, description string, secrets ...string) error {
	secrets = append(secrets, u.ClientSecret)
	if _, known := refusals[code]; !known {
		code = hide(code, secrets...)
	}
	return refusal(status, code, printable(hide(description, secrets...), 300))
}

// printable makes untrusted text safe for a log.
func printable(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, s)
	if len(s) > limit {
		s = s[:limit] + "..."
	}
	return s
}
