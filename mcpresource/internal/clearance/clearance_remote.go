// Package clearance requests approvals of tool calls from an authorization server in another
// process.
package clearance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/issuer"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Clearances requests approvals of tool calls from the authorization server. authserver.Server
// implements it, and NewClearances returns one for a server in another process.
type Clearances interface {
	// Clear requests approval for the caller of token, who is also in ctx (FromContext). A Cleared
	// answer is used up: the next request for the same demand starts a new approval. While an
	// approval is pending, the same demand gets the same answer.
	//
	// An *oauth.Error says why no approval is possible. invalid_request: the call cannot be shown;
	// its description is for the client. invalid_grant: the token is no longer active. slow_down:
	// too many calls wait. Other codes: no approval would help. Any other error, server_error and
	// temporarily_unavailable mean that the answer is not available now.
	Clear(ctx context.Context, token string, d oauth.ClearanceDemand) (oauth.Clearance, error)
}

// ClearancesConfig configures NewClearances. Issuer, ClientID and ClientSecret are required. The
// default HTTPClient follows no redirects and has a timeout of ten seconds. The default of Now is
// time.Now.
type ClearancesConfig struct {
	// Issuer is the authorization server of the callers, an mcp-authd. Their tokens are sent to no
	// other server.
	Issuer   string
	Endpoint string // its clearance_endpoint; discovered if empty
	// ClientID and ClientSecret are this resource server's own credentials, sent with HTTP Basic.
	// The client must be registered for this resource.
	ClientID, ClientSecret string
	HTTPClient             *http.Client
	Now                    func() time.Time
}

// NewClearances returns a Clearances for an authorization server in another process. It sends no
// request yet. The error names a missing member, or a URL that is not https (http on loopback).
// Clear returns an error that wraps ErrUnavailable if the server cannot be reached. It is safe for
// concurrent use, and logs nothing.
func NewClearances(c ClearancesConfig) (Clearances, error) {
	endpoint, err := issuer.NewEndpoint(issuer.EndpointConfig{
		Name:         "clearance endpoint",
		Issuer:       c.Issuer,
		Location:     c.Endpoint,
		Locate:       func(m issuer.Metadata) string { return m.Clearance },
		ClientID:     c.ClientID,
		ClientSecret: c.ClientSecret,
		Client:       c.HTTPClient,
		Timeout:      clearanceTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("mcpresource: %w", err)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &clearances{c, endpoint}, nil
}

const clearanceTimeout = 10 * time.Second

// clearances implements Clearances for an authorization server in another process.
type clearances struct {
	c        ClearancesConfig
	endpoint *issuer.Endpoint
}

// Clear implements Clearances.
func (c *clearances) Clear(ctx context.Context, bearer string, d oauth.ClearanceDemand) (oauth.Clearance, error) {
	if p, ok := token.FromContext(ctx); ok && p.Issuer != c.c.Issuer { // only its issuer may see the token
		return oauth.Clearance{}, oauth.NewError(oauth.AccessDenied, "The caller is of another authorization server.")
	}
	form := url.Values{
		"subject_token":      {bearer},
		"subject_token_type": {oauth.TokenTypeAccess},
		"resource":           {d.Resource},
		"tool":               {d.Tool},
		"by":                 {d.By},
	}
	if d.Arguments != nil {
		form.Set("arguments", string(d.Arguments))
	}
	if len(d.Approvers) > 0 {
		form.Set("approvers", strings.Join(d.Approvers, " "))
	}
	if len(d.ACR) > 0 {
		form.Set("acr_values", strings.Join(d.ACR, " "))
	}
	if d.MaxAge > 0 {
		form.Set("max_age", strconv.FormatInt(int64(d.MaxAge/time.Second), 10))
	}
	asked := c.c.Now()
	status, body, err := c.endpoint.Post(ctx, form)
	switch {
	case err != nil:
		return oauth.Clearance{}, fmt.Errorf("%w: %w", token.ErrUnavailable, err)
	case status != http.StatusOK:
		return oauth.Clearance{}, clearanceRefused(status, body)
	}
	return c.read(body, asked)
}

// read reads a response. A link must be within the issuer, because users see it as the issuer's.
func (c *clearances) read(body []byte, asked time.Time) (oauth.Clearance, error) {
	var answer struct {
		ID          string `json:"id"`
		Cleared     bool   `json:"cleared"`
		Refused     bool   `json:"refused"`
		Interaction string `json:"interaction_uri"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	switch err := json.Unmarshal(body, &answer); {
	case err != nil:
		return oauth.Clearance{}, fmt.Errorf("%w: the answer is not JSON", token.ErrUnavailable) // never quote the body
	case answer.ID == "" || answer.Cleared && answer.Refused:
		return oauth.Clearance{}, fmt.Errorf("%w: the answer says nothing", token.ErrUnavailable)
	case !answer.Cleared && !answer.Refused && !strings.HasPrefix(answer.Interaction, c.c.Issuer+"/"):
		return oauth.Clearance{}, fmt.Errorf("%w: the answer has a link elsewhere", token.ErrUnavailable)
	}
	out := oauth.Clearance{ID: answer.ID, Cleared: answer.Cleared, Refused: answer.Refused}
	if !out.Cleared && !out.Refused {
		out.URL = answer.Interaction
	}
	if answer.ExpiresIn > 0 {
		most := int64(oauth.ClearanceLifetime / time.Second)
		out.Expires = asked.Add(time.Duration(min(answer.ExpiresIn, most)) * time.Second)
	}
	return out, nil
}

// clearanceRefused reads an error response (RFC 6749 §5.2).
func clearanceRefused(status int, body []byte) error {
	var answer struct {
		Code        oauth.Code `json:"error"`
		Description string     `json:"error_description"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Code == "" {
		return fmt.Errorf("%w: the clearance endpoint answered %d", token.ErrUnavailable, status)
	}
	err := oauth.NewError(answer.Code, oauth.SafeDescription(answer.Description))
	crowded := status == http.StatusTooManyRequests && answer.Code != oauth.SlowDown
	if status >= http.StatusInternalServerError || crowded {
		return fmt.Errorf("%w: %w", token.ErrUnavailable, err)
	}
	if answer.Code == oauth.InvalidClient { // this resource server's credentials, not the caller's
		return errors.Join(token.ErrUnavailable, err)
	}
	return err
}
