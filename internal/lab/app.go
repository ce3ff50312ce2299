package lab

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// app is the client that the checks use.
type app struct {
	id, redirectURI string
	secret          string // "" for a public client
	at, token       string // registration_client_uri and registration_access_token (RFC 7592), or ""
}

// redirectURI has no listener: most checks end before the browser gets there.
const redirectURI = "http://127.0.0.1:49152/callback"

// record returns the metadata that MCP clients register, with changes; nil removes a member.
func record(change map[string]any) string {
	r := map[string]any{
		"client_name": "mcp-authd lab", "redirect_uris": []string{redirectURI}, "token_endpoint_auth_method": "none",
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
	}
	for name, v := range change {
		if r[name] = v; v == nil {
			delete(r, name)
		}
	}
	b, _ := json.Marshal(r) // cannot fail: strings and lists
	return string(b)
}

// register registers a client. The app is nil if the server refuses.
func (b *bench) register(ctx context.Context, change map[string]any) (*app, *answer, error) {
	a, err := b.send(ctx, b.server.RegistrationEndpoint, "application/json", record(change), nil)
	if err != nil || a.status != http.StatusCreated || a.member("client_id") == "" {
		return nil, a, err
	}
	return &app{
		id: a.member("client_id"), redirectURI: redirectURI, at: a.member("registration_client_uri"),
		token: a.member("registration_access_token"),
	}, a, nil
}

func (b *bench) registration(ctx context.Context) {
	if b.o.ClientID != "" {
		b.app = &app{id: b.o.ClientID, redirectURI: b.o.RedirectURI, secret: b.o.ClientSecret}
	}
	const what = "clients can register (RFC 7591): 201 with their metadata, and no-store"
	if b.server.RegistrationEndpoint == "" {
		b.skip("AS-132", must, what, "there is no registration_endpoint")
		return
	}
	mine, a, err := b.register(ctx, map[string]any{"redirect_uris": b.redirects()})
	b.judge("AS-132", must, what, a, err, func(a *answer) bool {
		return mine != nil && a.is("application/json") && strings.Contains(a.header.Get("Cache-Control"), "no-store") &&
			strings.Contains(string(a.body), "redirect_uris")
	})
	if mine == nil {
		return
	}
	if b.app == nil {
		b.app = mine
		b.app.redirectURI = b.redirects()[0]
	} else {
		defer b.forget(ctx, mine)
	}
	b.want("AS-134", should, "a client that registers none gets no secret", a.member("client_secret") == "",
		"it got one")
	b.registerAgain(ctx, mine.id)
	b.wrongRegistrations(ctx)
}

// redirects returns the redirect URI of this run's client.
func (b *bench) redirects() []string {
	if b.o.RedirectURI != "" {
		return []string{b.o.RedirectURI}
	}
	return []string{redirectURI}
}

func (b *bench) registerAgain(ctx context.Context, first string) {
	second, a, err := b.register(ctx, map[string]any{"x_of_tomorrow": map[string]any{"a": 1}})
	b.judge("AS-139", must, "members of the registration that are unknown are ignored", a, err,
		func(*answer) bool { return second != nil })
	if second != nil {
		b.want("AS-146", must, "each registration has a client_id of its own", second.id != first, "both are %s", first)
		b.forget(ctx, second)
	}
	secret, a, err := b.register(ctx, map[string]any{"token_endpoint_auth_method": "client_secret_post"})
	if err != nil || secret == nil {
		return
	}
	b.want("AS-133", must, "client_secret_expires_at goes with a secret", a.member("client_secret") == "" ||
		strings.Contains(string(a.body), `"client_secret_expires_at"`), "it is missing")
	b.forget(ctx, secret)
}

// wrongRegistrations checks that invalid registrations are refused, and deletes the others.
func (b *bench) wrongRegistrations(ctx context.Context) {
	for _, c := range []struct {
		id, what string
		change   map[string]any
	}{
		{"AS-56", "a redirect URI of plain http on another machine is refused",
			map[string]any{"redirect_uris": []string{"http://app.example.com/cb"}}},
		{"AS-137", "a redirect URI that is a script is refused",
			map[string]any{"redirect_uris": []string{"javascript:alert(1)"}}},
		{"AS-58", "a redirect URI with a fragment is refused",
			map[string]any{"redirect_uris": []string{"https://app.example.com/cb#x"}}},
		{"AS-138", "a registration without a redirect URI is refused", map[string]any{"redirect_uris": nil}},
	} {
		registered, a, err := b.register(ctx, c.change)
		b.judge(c.id, must, c.what, a, err, refused("invalid_redirect_uri", "invalid_client_metadata"))
		if registered != nil {
			b.forget(ctx, registered)
		}
	}
	a, err := b.send(ctx, b.server.RegistrationEndpoint, "application/json", `{"redirect_uris": [`, nil)
	b.judge("AS-137", must, "a registration that is not JSON is refused with a registered code", a, err,
		refused("invalid_client_metadata", "invalid_redirect_uri", "invalid_request"))
}

// forget deletes a registration if the server supports it (RFC 7592).
func (b *bench) forget(ctx context.Context, c *app) {
	if c == nil || c.at == "" || c.token == "" {
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.at, nil)
	if err == nil {
		req.Header.Set("Authorization", "Bearer "+c.token)
		_, err = b.do(req)
	}
	if err == nil {
		c.at = ""
	}
}

// tidy deletes the client of the run.
func (b *bench) tidy(ctx context.Context) { b.forget(ctx, b.app) }

// request returns the URL of a valid authorization request with changes; nil removes a parameter.
func (b *bench) request(change url.Values) string {
	q := url.Values{
		"response_type": {"code"}, "client_id": {b.app.id}, "redirect_uri": {b.app.redirectURI}, "state": {state},
		"code_challenge": {challenge(verifier)}, "code_challenge_method": {"S256"},
	}
	if b.o.Resource != "" {
		q.Set("resource", b.o.Resource)
	}
	if slices.Contains(b.server.ScopesSupported, "openid") {
		q.Set("scope", "openid")
	}
	for name, v := range change {
		if q[name] = v; v == nil {
			delete(q, name)
		}
	}
	mark := "?"
	if strings.Contains(b.server.AuthorizationEndpoint, "?") {
		mark = "&"
	}
	return b.server.AuthorizationEndpoint + mark + q.Encode()
}

// state contains characters that break if a server encodes them twice or never.
const state = "a b+c/d=é&"

// verifier is shared by all requests. It need not be secret, because a run protects nothing.
var verifier = rand.Text() + rand.Text()

func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
