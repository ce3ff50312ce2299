package signin

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Credentials identify this client to an authorization server.
type Credentials struct {
	ID     string `json:"client_id"`
	Secret string `json:"-"` // "" for a public client
}

// Register registers this client (RFC 7591) as a native client with a loopback redirect (CL-13).
func (c *Client) Register(ctx context.Context, s Server, redirectURI string) (Credentials, error) {
	return c.register(ctx, s, map[string]any{
		"client_name": c.Name, "redirect_uris": []string{redirectURI}, "application_type": "native",
		"grant_types": []string{oauth.GrantCode, oauth.GrantRefresh}, "response_types": []string{"code"},
		"token_endpoint_auth_method": "none",
	})
}

func (c *Client) register(ctx context.Context, s Server, client map[string]any) (Credentials, error) {
	if s.RegistrationEndpoint == "" {
		return Credentials{},
			fail(StepRegistration, "Ask the operator for a client id and pass it with --client-id.",
				"the authorization server does not let clients register themselves")
	}
	body, err := json.Marshal(client)
	if err != nil {
		return Credentials{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.RegistrationEndpoint, bytes.NewReader(body))
	if err != nil {
		return Credentials{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, answer, err := c.Do(req)
	if err != nil {
		return Credentials{}, fail(StepRegistration, "Is the authorization server reachable?", "%v", err)
	}
	var out struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK {
		return Credentials{},
			fail(StepRegistration, "Ask the operator for a client id and pass it with --client-id.",
				"registration was refused: %s", describe(resp, answer))
	}
	if err := json.Unmarshal(answer, &out); err != nil || out.ID == "" {
		return Credentials{},
			fail(StepRegistration, "The server's answer is broken.", "the answer to the registration has no client_id")
	}
	return Credentials(out), nil
}

func describe(resp *http.Response, body []byte) string {
	var e struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &e) == nil && e.Error != "" {
		return strings.TrimSuffix(fmt.Sprintf("%s: %s", e.Error, e.Description), ": ")
	}
	return resp.Status
}

// Try requests the authorization page once, like a browser without cookies. An error that concerns
// every user then shows immediately, and not as a browser that never returns.
func (c *Client) Try(ctx context.Context, r Request) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json, text/html;q=0.5")
	resp, body, err := c.Do(req)
	if err != nil {
		return fail(StepBrowser, "Is the authorization server reachable?", "%v", err)
	}
	const advice = "Does the authorization server know this MCP server? See: mcp-authd check"
	if back, err := resp.Location(); err == nil && back.Query().Get("error") != "" {
		q := back.Query()
		return fail(StepBrowser, advice, "the authorization request is refused: %s: %s", q.Get("error"),
			q.Get("error_description"))
	}
	if resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
		return fail(StepBrowser, advice, "the authorization request is refused: %s", pageText(resp, body))
	}
	return nil
}

// pageText returns the message of an error page.
func pageText(resp *http.Response, body []byte) string {
	_, notice, found := strings.Cut(string(body), `role="alert"><p><bdi>`)
	text, _, _ := strings.Cut(notice, "</bdi>")
	if !found || text == "" {
		return describe(resp, body)
	}
	return html.UnescapeString(text)
}

// Request is a pending authorization request.
type Request struct {
	URL      string
	state    string
	verifier string
}

// Authorize builds the authorization request (CL-17, CL-23). proof is the authentication that it
// requires of the user.
func (c *Client) Authorize(
	s Server, cred Credentials, redirectURI, resource string, scopes oauth.Scopes, proof Proof,
) (Request, error) {
	u, err := url.Parse(s.AuthorizationEndpoint)
	if err != nil {
		return Request{}, fail(StepBrowser, "The server's metadata is broken.", "authorization_endpoint: %v", err)
	}
	r := Request{state: rand.Text(), verifier: rand.Text() + rand.Text()} // RFC 7636 §4.1: 43 characters or more
	q := u.Query()
	for k, v := range map[string]string{
		"response_type": "code", "client_id": cred.ID, "redirect_uri": redirectURI, "state": r.state,
		"resource":       resource,
		"code_challenge": oauth.ChallengeS256(r.verifier), "code_challenge_method": oauth.S256,
		"scope":    scopes.String(),
		"dpop_jkt": c.key, // RFC 9449 §10: makes a stolen code useless without the key
	} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if scopes.Has(oauth.OfflineAccess) {
		q.Set("prompt", "consent") // OpenID Connect Core §11
	}
	proof.set(q)
	u.RawQuery = q.Encode()
	r.URL = u.String()
	return r, nil
}

func advise(code string) string {
	if code == string(oauth.AccessDenied) {
		return "Nothing was approved. Run the command again to approve it, or to sign in with another account."
	}
	return "The authorization server refused the request."
}

// Token exchanges the code for a token.
func (c *Client) Token(
	ctx context.Context, s Server, cred Credentials, r Request, redirectURI, resource, code string,
) (oauth.TokenResponse, error) {
	resp, body, err := c.post(ctx, s, StepToken, s.TokenEndpoint, cred, url.Values{
		"grant_type": {oauth.GrantCode}, "code": {code}, "redirect_uri": {redirectURI},
		"code_verifier": {r.verifier},
		"client_id":     {cred.ID}, "resource": {resource},
	})
	switch {
	case err != nil:
		return oauth.TokenResponse{}, err
	case resp.StatusCode != http.StatusOK:
		return oauth.TokenResponse{},
			fail(StepToken, "The authorization server refused the code.", "%s", describe(resp, body))
	}
	return c.readToken(body)
}

// post posts a form to an endpoint of the authorization server, with the client's credentials.
func (c *Client) post(
	ctx context.Context, s Server, step, endpoint string, cred Credentials, form url.Values,
) (*http.Response, []byte, error) {
	inBody := slices.Contains(s.TokenAuthMethods, "client_secret_post")
	if cred.Secret != "" && inBody {
		form.Set("client_secret", cred.Secret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, nil, fail(step, "The server's metadata is broken.", "%v", err)
	}
	if cred.Secret != "" && !inBody {
		req.SetBasicAuth(url.QueryEscape(cred.ID), url.QueryEscape(cred.Secret)) // RFC 6749 §2.3.1
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	to := c.Client
	if endpoint == s.TokenEndpoint {
		to = c.tokens
	}
	resp, body, err := to.Do(req)
	if err != nil {
		return nil, nil, fail(step, "Is the authorization server reachable?", "%v", err)
	}
	return resp, body, nil
}

// readToken parses a response of the token endpoint with status 200.
func (c *Client) readToken(body []byte) (token oauth.TokenResponse, err error) {
	broken := parseToken(body, &token)
	switch {
	case broken != nil:
		return token, fail(StepToken, "The server's answer is broken.", "the token answer %v", broken)
	case strings.EqualFold(token.TokenType, "DPoP") && c.key != "":
		token.TokenType = "DPoP"
		return token, nil
	case c.key != "":
		return token, fail(StepToken, "Does the authorization server support DPoP? See: mcp-authd check",
			"the token is not bound to the key")
	case strings.EqualFold(token.TokenType, "Bearer"):
		token.TokenType = "Bearer"
		return token, nil
	}
	return token, fail(StepToken, "The server's answer is broken.",
		"the token answer has the token_type %.40q, which must be Bearer", token.TokenType)
}

// parseToken parses a token response (RFC 6749 §5.1). Its errors name the member, but never contain
// a value.
func parseToken(body []byte, token *oauth.TokenResponse) error {
	err := json.Unmarshal(body, token)
	var wrong *json.UnmarshalTypeError
	var refused struct {
		Error any `json:"error"`
	}
	_ = json.Unmarshal(body, &refused) // stays empty unless the body is an object
	form, _ := url.ParseQuery(string(body))
	switch {
	case refused.Error != nil:
		odd := &http.Response{Status: "its error is not a string"}
		return fmt.Errorf("with status 200 is an error: %s", describe(odd, body))
	case errors.As(err, &wrong) && wrong.Field != "":
		kind, _, _ := strings.Cut(wrong.Value, " ")
		return fmt.Errorf("has the member %s as a JSON %s, which must be a %s", wrong.Field, kind, jsonType(wrong.Type))
	case err != nil && form.Has("access_token"):
		return errors.New("is a form, and must be JSON")
	case err != nil:
		return errors.New("is not a JSON object")
	case token.AccessToken == "":
		return errors.New("has no access_token")
	case token.TokenType == "":
		return errors.New("has no token_type, which must be Bearer")
	}
	return nil
}

// jsonType returns the JSON type of a Go type.
func jsonType(t reflect.Type) string {
	if t.Kind() == reflect.Int64 {
		return "whole number"
	}
	return t.Kind().String()
}
