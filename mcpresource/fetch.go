package mcpresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	fetchTimeout = 5 * time.Second
	maxDocument  = 512 << 10 // bytes of a metadata document or key set
)

// defaultClient follows no redirects: metadata and keys live where they are said to.
func defaultClient(c *http.Client) *http.Client {
	if c != nil {
		return c
	}
	return &http.Client{
		Timeout:       fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fetchJSON reads a bounded JSON document.
func fetchJSON(ctx context.Context, c *http.Client, location string, out any) error {
	resp, body, err := fetch(ctx, c, location, maxDocument, http.Header{"Accept": {"application/json"}})
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answered %s", location, resp.Status)
	}
	return json.Unmarshal(body, out)
}

// fetch reads what is at a location, of at most limit bytes. The body of the response
// is closed.
func fetch(ctx context.Context, c *http.Client, location string, limit int64, h http.Header) (*http.Response, []byte, error) {
	if err := checkEndpoint(location); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header = h
	resp, err := c.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, nil, err
	case int64(len(body)) > limit:
		return nil, nil, fmt.Errorf("%s is larger than %d bytes", location, limit)
	}
	return resp, body, nil
}

// checkEndpoint admits https anywhere and http on loopback only.
func checkEndpoint(location string) error {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && oauth.IsLoopbackHost(u.Hostname())) {
		return fmt.Errorf("%q is not an https URL (http is for localhost only)", location)
	}
	return nil
}

// serverMetadata is what we need of an authorization server's metadata.
type serverMetadata struct {
	Issuer        string              `json:"issuer"`
	Token         string              `json:"token_endpoint"`
	JWKSURI       string              `json:"jwks_uri"`
	Introspection string              `json:"introspection_endpoint"`
	Scopes        map[string][]string `json:"protected_resource_scopes"` // of mcp-authd
}

// scopesOf is what mcp-authd says about a resource. That protected_resources does not name one
// says nothing: servers may leave some out of it (RFC 9728 §4).
func (m serverMetadata) scopesOf(resource string) (scopes []string, known bool, err error) {
	if m.Scopes == nil {
		return nil, false, errors.ErrUnsupported
	}
	for uri, scopes := range m.Scopes {
		if canonical, err := oauth.CanonicalResource(uri); err == nil && canonical == resource {
			return scopes, true, nil
		}
	}
	return nil, false, nil
}

// discover reads the metadata of an issuer, at the locations and in the order that
// MCP names for clients. The issuer in it must be the very string asked for (RFC 8414
// §3.3), or another server could speak in its name.
func discover(ctx context.Context, c *http.Client, issuer string) (serverMetadata, error) {
	origin := oauth.ResourceOrigin(issuer)
	var errs []error
	for _, path := range metadata.AuthorizationServerPaths(issuer) {
		var m serverMetadata
		if err := fetchJSON(ctx, c, origin+path, &m); err != nil {
			errs = append(errs, err)
			continue
		}
		if m.Issuer != issuer {
			errs = append(errs, fmt.Errorf("%s%s names the issuer %q", origin, path, m.Issuer))
			continue
		}
		return m, nil
	}
	return serverMetadata{}, fmt.Errorf("no metadata of issuer %q: %w", issuer, errors.Join(errs...))
}
