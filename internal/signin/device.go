package signin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// DeviceRequest is a pending device authorization request (RFC 8628 §3.2).
type DeviceRequest struct {
	Code      string `json:"device_code"`
	UserCode  string `json:"user_code"`
	URI       string `json:"verification_uri"`
	Complete  string `json:"verification_uri_complete"`
	ExpiresIn int64  `json:"expires_in"`
	Interval  int64  `json:"interval"`
}

// RegisterDevice registers this client for the device authorization grant.
func (c *Client) RegisterDevice(ctx context.Context, s Server) (Credentials, error) {
	return c.register(ctx, s, map[string]any{
		"client_name": c.Name, "application_type": "native",
		"grant_types":                []string{oauth.GrantDeviceCode, oauth.GrantRefresh},
		"token_endpoint_auth_method": "none",
	})
}

// BeginDevice requests codes for a device. proof is the authentication that the approving user must
// provide.
func (c *Client) BeginDevice(
	ctx context.Context, s Server, cred Credentials, resource string, scopes oauth.Scopes, proof Proof,
) (r DeviceRequest, err error) {
	if s.DeviceAuthorizationEndpoint == "" {
		return r, fail(StepDevice, "Leave --device out, and open the URL in a browser on this computer.",
			"the authorization server does not offer the device authorization grant")
	}
	if err := discovery.CheckURL(s.DeviceAuthorizationEndpoint); err != nil {
		return r, fail(StepDevice, "The server's metadata is broken.", "device_authorization_endpoint: %v", err)
	}
	form := url.Values{"client_id": {cred.ID}, "resource": {resource}}
	if len(scopes) > 0 {
		form.Set("scope", scopes.String())
	}
	proof.set(form)
	resp, body, err := c.post(ctx, s, StepDevice, s.DeviceAuthorizationEndpoint, cred, form)
	switch {
	case err != nil:
		return r, err
	case resp.StatusCode != http.StatusOK:
		return r, fail(StepDevice, "May this client use the device authorization grant?", "the request is refused: %s",
			describe(resp, body))
	}
	if err := json.Unmarshal(body, &r); err != nil || r.Code == "" || r.UserCode == "" ||
		discovery.CheckURL(r.URI) != nil {
		return r, fail(StepDevice, "The server's answer is broken.", "the answer lacks a code or the address to type it at")
	}
	if r.Interval <= 0 {
		r.Interval = 5 // RFC 8628 §3.2
	}
	return r, nil
}

// AwaitDevice polls until the user has decided (RFC 8628 §3.5).
func (c *Client) AwaitDevice(
	ctx context.Context, s Server, cred Credentials, r DeviceRequest, resource string,
) (oauth.TokenResponse, error) {
	wait := time.Duration(r.Interval) * time.Second
	for {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return oauth.TokenResponse{}, fail(StepDevice, "Run the command again, or give more time with --timeout.",
				"the request was not approved in time")
		}
		resp, body, err := c.post(ctx, s, StepToken, s.TokenEndpoint, cred, url.Values{
			"grant_type": {oauth.GrantDeviceCode}, "device_code": {r.Code}, "client_id": {cred.ID},
			"resource": {resource},
		})
		if err != nil {
			wait *= 2 // RFC 8628 §3.5: poll less often after a connection error
			continue
		}
		if resp.StatusCode == http.StatusOK {
			return c.readToken(body)
		}
		code := codeOf(body)
		switch code {
		case oauth.AuthorizationPending:
		case oauth.SlowDown:
			wait += 5 * time.Second
		default:
			return oauth.TokenResponse{}, fail(StepDevice, advise(string(code)), "%s", describe(resp, body))
		}
	}
}
