// Package client uses a running authorization server as its clients and users do: it discovers,
// registers, signs in through the forms, and requests tokens.
package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

const redirect = "http://127.0.0.1:1/callback" // unused; the response is read from the Location header

// Config configures a Client.
type Config struct {
	Issuer      string // on loopback
	Connections int    // concurrent

	// ID and Secret are the credentials of a confidential client. They may be empty.
	ID, Secret string
}

// Client is a public client that has discovered a server and registered with it. It is safe for
// concurrent use.
type Client struct {
	Metadata Metadata

	config Config
	http   *http.Client
	id     string
}

// Metadata holds the used members of the RFC 8414 document.
type Metadata struct {
	Authorize  string `json:"authorization_endpoint"`
	Token      string `json:"token_endpoint"`
	Register   string `json:"registration_endpoint"`
	Introspect string `json:"introspection_endpoint"`
	JWKS       string `json:"jwks_uri"`
}

// MetadataURL returns the metadata URL of an issuer without a path.
func MetadataURL(issuer string) string {
	return strings.TrimSuffix(issuer, "/") + "/.well-known/oauth-authorization-server"
}

// New discovers the server and registers. It refuses an issuer that is not on loopback.
func New(config Config) (*Client, error) {
	u, err := url.Parse(config.Issuer)
	if err != nil || !oauth.IsLoopbackHost(u.Hostname()) {
		return nil, fmt.Errorf("the issuer %q is not on loopback; this tool loads nothing else", config.Issuer)
	}
	c := &Client{config: config, http: &http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{
			MaxIdleConnsPerHost: config.Connections,
			MaxConnsPerHost:     config.Connections,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if err := c.GetJSON(MetadataURL(config.Issuer), &c.Metadata); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	c.id, err = c.Register()
	return c, err
}

// Issuer returns the issuer of the server.
func (c *Client) Issuer() string { return c.config.Issuer }

// Register registers a public client, and returns its ID.
func (c *Client) Register() (string, error) {
	body, err := json.Marshal(map[string]any{
		"client_name": "load", "redirect_uris": []string{redirect}, "token_endpoint_auth_method": "none",
	})
	if err != nil {
		return "", err
	}
	resp, err := c.http.Post(c.Metadata.Register, "application/json", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	var out struct {
		ClientID string `json:"client_id"`
	}
	err = decode(resp, http.StatusCreated, &out)
	return out.ClientID, err
}

// GetJSON decodes a document into out. If out is nil, it discards the document.
func (c *Client) GetJSON(target string, out any) error {
	resp, err := c.http.Get(target)
	if err != nil {
		return err
	}
	return decode(resp, http.StatusOK, out)
}

func decode(resp *http.Response, want int, out any) error {
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != want {
		return fmt.Errorf("status %d: %.200s", resp.StatusCode, body)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(body, out)
}

// MachineToken requests a token for the confidential client itself.
func (c *Client) MachineToken() (oauth.TokenResponse, error) {
	return c.token(url.Values{"grant_type": {"client_credentials"}}, true)
}

// Refresh uses a refresh token of the public client.
func (c *Client) Refresh(token string) (oauth.TokenResponse, error) {
	return c.token(url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {c.id},
	}, false)
}

// Introspect returns an error unless the token is active. It authenticates as the confidential
// client.
func (c *Client) Introspect(token string) error {
	body, err := c.post(c.Metadata.Introspect, url.Values{"token": {token}}, true)
	if err == nil && !bytes.Contains(body, []byte(`"active":true`)) {
		err = fmt.Errorf("not active: %s", body)
	}
	return err
}

func (c *Client) token(form url.Values, asMachine bool) (oauth.TokenResponse, error) {
	var reply oauth.TokenResponse
	body, err := c.post(c.Metadata.Token, form, asMachine)
	if err == nil {
		err = json.Unmarshal(body, &reply)
	}
	return reply, err
}

func (c *Client) post(endpoint string, form url.Values, asMachine bool) ([]byte, error) {
	req, err := http.NewRequest(http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if asMachine {
		req.SetBasicAuth(c.config.ID, c.config.Secret)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", resp.StatusCode, body)
	}
	return body, err
}
