package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// ErrRefused means that the server no longer accepts a refresh token.
var ErrRefused = errors.New("signin: refused")

// Refresh gets a token with a refresh token (RFC 6749 §6).
func (c *Client) Refresh(
	ctx context.Context, s Server, cred Credentials, refresh, resource string,
) (oauth.TokenResponse, error) {
	resp, body, err := c.post(ctx, s, StepToken, s.TokenEndpoint, cred, url.Values{
		"grant_type": {oauth.GrantRefresh}, "refresh_token": {refresh}, "client_id": {cred.ID}, "resource": {resource},
	})
	switch {
	case err != nil:
		return oauth.TokenResponse{}, err
	case codeOf(body) == oauth.InvalidDPoPProof:
		return oauth.TokenResponse{}, fail(StepToken, ClockAdvice(resp.Header, c.now()), "%s", describe(resp, body))
	case resp.StatusCode == http.StatusBadRequest, resp.StatusCode == http.StatusUnauthorized:
		return oauth.TokenResponse{}, ErrRefused
	case resp.StatusCode != http.StatusOK:
		return oauth.TokenResponse{},
			fail(StepToken, "Try again later.", "the refresh was refused: %s", describe(resp, body))
	}
	return c.readToken(body)
}

// codeOf returns the error code of a response, or "".
func codeOf(body []byte) oauth.Code {
	var e struct {
		Code oauth.Code `json:"error"`
	}
	_ = json.Unmarshal(body, &e) // without JSON, there is no code
	return e.Code
}

// ClockAdvice compares the clock of a server with this computer's. A token or a proof seems expired,
// or not yet valid, if they differ.
func ClockAdvice(answer http.Header, now time.Time) string {
	const most = 30 * time.Second
	at, err := http.ParseTime(answer.Get("Date"))
	if apart := now.Sub(at).Round(time.Second); err == nil && apart.Abs() > most {
		way := "ahead of"
		if apart < 0 {
			way = "behind"
		}
		return fmt.Sprintf("Set the clocks: this computer is %s %s the server.", apart.Abs(), way)
	}
	return "Do the clocks of the MCP server and its authorization server agree?"
}

// Revoke revokes a token and its grant (RFC 7009).
func (c *Client) Revoke(ctx context.Context, s Server, cred Credentials, token string) error {
	if s.RevocationEndpoint == "" {
		return fail(StepToken, "Disconnect the application on your account page.", "the server revokes no tokens")
	}
	resp, body, err := c.post(ctx, s, StepToken, s.RevocationEndpoint, cred, url.Values{
		"token": {token}, "client_id": {cred.ID},
	})
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusUnauthorized: // the client was removed, and with it all of its tokens
		return nil
	case resp.StatusCode != http.StatusOK:
		return fail(StepToken, "Disconnect the application on your account page.", "the token was not revoked: %s",
			describe(resp, body))
	}
	return nil
}
