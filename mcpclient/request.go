package mcpclient

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// The steps after discovery.
const (
	stepPlatform = "platform"
	stepToken    = "token"
)

const (
	attempts      = 3               // for a request that fails temporarily
	shortWait     = 5 * time.Second // longest requested wait within a request
	firstWait     = 300 * time.Millisecond
	assertionLife = time.Minute
	maxLifetime   = 24 * time.Hour
	plainLifetime = 5 * time.Minute // if the response has no lifetime
	maxToken      = 64 << 10        // bytes
)

// request gets one access token. It retries temporary failures, each time with a new platform
// token, because the previous one may count as used.
func (w *Client) request(ctx context.Context, scopes oauth.Scopes) (*token, error) {
	wait := firstWait
	for i := 1; ; i++ {
		t, err := w.ask(ctx, scopes)
		var e *Error
		if err == nil || !errors.As(err, &e) || !e.temporary || e.after > shortWait || i == attempts {
			return t, err
		}
		select {
		case <-time.After(max(wait, e.after)):
		case <-ctx.Done():
			return nil, err
		}
		wait *= 3
	}
}

// ask sends one token request (RFC 7523 §2.1, RFC 6749 §4.4).
func (w *Client) ask(ctx context.Context, scopes oauth.Scopes) (*token, error) {
	form := url.Values{"grant_type": {w.grant()}, "resource": {w.found.resource}}
	if len(scopes) > 0 {
		form.Set("scope", scopes.String())
	}
	if w.c.Token != nil {
		assertion, err := w.assertion(ctx)
		if err != nil {
			return nil, err
		}
		form.Set("assertion", assertion)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.found.endpoint, nil)
	if err != nil {
		return nil, of(stepToken, err)
	}
	if err := w.authenticate(r, form); err != nil {
		return nil, of(stepToken, err)
	}
	text := form.Encode()
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	status, header, body, err := exchange(w.http, r)
	if err != nil {
		e := fail(stepToken, "Is the authorization server running, and reachable from here?", "%v", err)
		e.temporary = true
		return nil, e
	}
	if status != http.StatusOK {
		return nil, refusal(status, header, body, w.now())
	}
	return w.accept(body, scopes)
}

// authenticate adds client authentication if a client is registered (RFC 6749 §2.3, CL-28).
func (w *Client) authenticate(r *http.Request, form url.Values) error {
	c := w.c.Client
	switch {
	case c == nil:
		return nil
	case c.Key != nil:
		assertion, err := c.assertion(w.found.issuer, w.now())
		if err != nil {
			return err
		}
		form.Set("client_id", c.ID)
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
	case slices.Contains(w.found.methods, "client_secret_post") &&
		!slices.Contains(w.found.methods, "client_secret_basic"):
		form.Set("client_id", c.ID)
		form.Set("client_secret", c.Secret)
	default:
		r.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret)) // RFC 6749 §2.3.1
	}
	return nil
}

// assertion returns a signed client assertion (RFC 7523 §2.2) for the issuer.
func (c *Credentials) assertion(issuer string, now time.Time) (string, error) {
	algorithm, err := dpop.Algorithm(c.Key)
	if err != nil {
		return "", fmt.Errorf("the key of the client: %w", err)
	}
	o := (&jose.SignerOptions{}).WithType("JWT")
	if c.KeyID != "" {
		o = o.WithHeader("kid", c.KeyID)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: c.Key}, o)
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"iss": c.ID, "sub": c.ID, "aud": issuer, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// exchange sends a request and reads a response of limited size. Errors do not include the URL,
// which may contain a secret.
func exchange(c *http.Client, r *http.Request) (status int, header http.Header, body []byte, err error) {
	resp, err := c.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return 0, nil, nil, fmt.Errorf("%s cannot be reached: %w", r.URL.Host, err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, discovery.MaxBody+1))
	if err == nil && len(body) > discovery.MaxBody {
		err = fmt.Errorf("the answer of %s is larger than %d bytes", r.URL.Host, discovery.MaxBody)
	}
	return resp.StatusCode, resp.Header, body, err
}

// refusal returns the error for a token response that is not a success (RFC 6749 §5.2). It ends the
// request, whatever the code (CL-29), unless the server is only busy.
func refusal(status int, header http.Header, body []byte, now time.Time) *Error {
	var answer struct {
		Code        oauth.Code `json:"error"`
		Description string     `json:"error_description"`
	}
	_ = json.Unmarshal(body, &answer) // without JSON, the status alone counts
	if status >= 500 || status == http.StatusTooManyRequests {
		e := fail(stepToken, "Try again later.", "the authorization server answered %d", status)
		e.Code, e.temporary, e.after = answer.Code, true, retryAfter(header, now)
		return e
	}
	if answer.Code == "" {
		return fail(stepToken, "Is this an authorization server?", "the token endpoint answered %d", status)
	}
	e := fail(stepToken, advice[answer.Code], "%s: %s", printable(string(answer.Code)), printable(answer.Description))
	e.Why, e.Code = strings.TrimSuffix(e.Why, ": "), answer.Code
	return e
}

// advice is the remedy for each error code.
var advice = map[oauth.Code]string{
	oauth.InvalidGrant: "The authorization server did not accept this token of the platform. Its operator sees" +
		" what the rules say of it with: mcp-authd trust test",
	oauth.UnauthorizedClient: "The program may not have tokens for this MCP server: ask the operator.",
	oauth.InvalidScope:       "Ask for scopes that the operator allows, or leave the scopes out.",
	oauth.InvalidTarget:      "The authorization server does not know this MCP server: mcp-authd resource add",
	oauth.InvalidClient:      "Compare the client's id, and its secret or key, with those of the registration.",
	oauth.InvalidDPoPProof:   "Is the clock of this machine right?",
}

// retryAfter reads Retry-After (RFC 9110 §10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return min(time.Duration(min(n, 1<<20))*time.Second, mostPatience)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), mostPatience)
	}
	return 0
}

// accept reads a token response (RFC 6749 §5.1).
func (w *Client) accept(body []byte, asked oauth.Scopes) (*token, error) {
	var answer oauth.TokenResponse
	const broken = "The authorization server's answer is broken."
	if err := json.Unmarshal(body, &answer); err != nil || !isCredential(answer.AccessToken) {
		return nil, fail(stepToken, broken, "the answer holds no access token")
	}
	t := &token{access: answer.AccessToken, scopes: asked}
	switch {
	case strings.EqualFold(answer.TokenType, "DPoP") && w.bound:
		t.kind = "DPoP"
	case strings.EqualFold(answer.TokenType, "Bearer") && (!w.bound || w.c.DPoP.Optional):
		t.kind = "Bearer"
	case w.bound:
		return nil, fail(stepToken, "Does the authorization server support DPoP? Config.DPoP.Optional does without.",
			"the token is %q, and not bound to the key", printable(answer.TokenType))
	default:
		return nil, fail(stepToken, broken, "the token is %q, and not a bearer token", printable(answer.TokenType))
	}
	if answer.Scope != "" {
		t.scopes = oauth.ParseScopes(answer.Scope)
	}
	lifetime := min(time.Duration(min(answer.ExpiresIn, 1<<30))*time.Second, maxLifetime)
	if lifetime <= 0 {
		lifetime = plainLifetime
	}
	t.live(w.now(), lifetime)
	w.trace(stepToken, fmt.Sprintf("%s, expires in %s, scope %q", t.kind, lifetime, t.scopes),
		map[string]any{"token_type": t.kind, "expires_in": int64(lifetime / time.Second), "scope": t.scopes.String()})
	return t, nil
}

// isCredential reports whether s is valid in an Authorization header (RFC 6750 §2.1).
func isCredential(s string) bool {
	if s == "" || len(s) > maxToken {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}
