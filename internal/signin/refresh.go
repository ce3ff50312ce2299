package signin

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// errRefused means that the server no longer accepts a refresh token.
var errRefused = errors.New("signin: refused")

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
	case resp.StatusCode == http.StatusBadRequest, resp.StatusCode == http.StatusUnauthorized:
		return oauth.TokenResponse{}, errRefused
	case resp.StatusCode != http.StatusOK:
		return oauth.TokenResponse{},
			fail(StepToken, "Try again later.", "the refresh was refused: %s", describe(resp, body))
	}
	return c.readToken(body)
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
