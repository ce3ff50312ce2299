// Package discovery finds the authorization server of an MCP server according to MCP 2026-07-28,
// with fallbacks for earlier revisions. It reports the result or the error of each step.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/foreign"
	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Error describes the step that failed, the reason, and a remedy.
type Error struct {
	Step   string `json:"step"`
	Why    string `json:"error"`
	Advice string `json:"advice,omitempty"`
	// Temporary means that the step may succeed later without any change.
	Temporary bool `json:"-"`
}

// Error implements error.
func (e *Error) Error() string { return e.Step + ": " + e.Why }

// Fail returns an *Error.
func Fail(step, advice, format string, args ...any) error {
	e := &Error{Step: step, Why: fmt.Sprintf(format, args...), Advice: advice}
	for _, a := range args {
		if err, ok := a.(error); ok {
			e.Temporary = e.Temporary || errors.As(err, new(passing))
		}
	}
	return e
}

// passing is the error of a server that is unreachable or has failed.
type passing struct{ error }

// These are the steps, in order.
const (
	StepChallenge = "challenge"
	StepResource  = "resource"
	StepMetadata  = "metadata"
)

// MaxBody limits the bytes read of a response body.
const MaxBody = 512 << 10

// Client sends the HTTP requests of every step. Use New to create one.
type Client struct{ http *http.Client }

// New returns a client with a timeout of 15 seconds per request. It does not follow redirects, so
// that metadata and tokens come from the requested server. A nil transport means
// http.DefaultTransport.
func New(transport http.RoundTripper) *Client {
	return &Client{&http.Client{
		Transport:     transport,
		Timeout:       15 * time.Second,
		CheckRedirect: NoRedirect,
	}}
}

// NoRedirect makes the client return a redirect as the response. Following it would send a token to
// another server (CL-26).
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Do sends a request and reads the body, up to MaxBody bytes.
func (c *Client) Do(req *http.Request) (*http.Response, []byte, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // callers add the URL
		}
		return nil, nil, passing{err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	if err == nil && len(body) > MaxBody {
		err = fmt.Errorf("the answer is larger than %d bytes", MaxBody)
	}
	return resp, body, err
}

// GetJSON reads a metadata document. found is false if the server responds that the document does
// not exist.
func (c *Client) GetJSON(ctx context.Context, location string, out any) (found bool, err error) {
	if err := CheckURL(location); err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set(mcp.HeaderVersion, mcp.Rev20260728)
	resp, body, err := c.Do(req)
	switch {
	case err != nil:
		return false, fmt.Errorf("%s: %w", location, err)
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		return false, nil
	case resp.StatusCode != http.StatusOK:
		return false, passing{fmt.Errorf("%s answered %s", location, resp.Status)}
	}
	if err := foreign.Metadata(body, out); err != nil {
		return false, fmt.Errorf("%s is not a JSON object", location)
	}
	return true, nil
}

// CheckURL accepts https, and http on loopback. Any other URL would send tokens unencrypted or is
// not a web address (CL-31, SP-25).
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("%q is not a URL", raw)
	case u.Scheme == "https", u.Scheme == "http" && oauth.IsLoopbackHost(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%s is neither https nor on this machine", raw)
}

// Challenge is the response of an MCP server to a request without a token.
type Challenge struct {
	Status           int          `json:"status"`
	ResourceMetadata string       `json:"resource_metadata,omitempty"`
	Scope            oauth.Scopes `json:"scope,omitempty"`
}

// Challenge sends a request without a token to the MCP server and reads its challenge (MCP
// "Protected Resource Metadata Discovery").
func (c *Client) Challenge(ctx context.Context, mcpURL string) (Challenge, error) {
	if err := CheckURL(mcpURL); err != nil {
		return Challenge{}, Fail(StepChallenge, "Give the https URL of an MCP server.", "%v", err)
	}
	resp, err := c.post(ctx, mcpURL, initialize, nil)
	if err == nil && succeeded(resp) { // some servers require a token only for later requests
		var listed *http.Response
		if listed, err = c.list(ctx, mcpURL, resp); err == nil && listed.StatusCode == http.StatusUnauthorized {
			resp = listed
		}
	}
	switch {
	case err != nil:
		return Challenge{},
			Fail(StepChallenge, "Is the server running, and is the URL right?", "%s cannot be reached: %v", mcpURL, err)
	case succeeded(resp):
		return Challenge{},
			Fail(StepChallenge, "Put a guard in front of it if it should be protected.",
				"%s answered %s without a token, and asked for none to list its tools: it is not protected", mcpURL,
				resp.Status)
	case resp.StatusCode != http.StatusUnauthorized:
		return Challenge{},
			Fail(StepChallenge, "Check the path of the URL: MCP endpoints often end with /mcp.",
				"%s answered %s, want 401", mcpURL, resp.Status)
	}
	return readChallenge(resp)
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + mcp.Rev20251125 +
		`","capabilities":{},"clientInfo":{"name":"mcp-authd","version":"1"}}}`
	listTools = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
)

func succeeded(resp *http.Response) bool { return resp.StatusCode >= 200 && resp.StatusCode < 300 }

// list requests the tools, in the session that initialize may have begun. It ends that session.
func (c *Client) list(ctx context.Context, mcpURL string, begun *http.Response) (*http.Response, error) {
	header := http.Header{mcp.HeaderVersion: {mcp.Rev20251125}}
	if session := begun.Header.Get(mcp.HeaderSession); session != "" {
		header.Set(mcp.HeaderSession, session)
		defer c.end(ctx, mcpURL, header)
	}
	return c.post(ctx, mcpURL, listTools, header)
}

// end ends a session. A server that refuses this ends the session by itself.
func (c *Client) end(ctx context.Context, mcpURL string, header http.Header) {
	if req, err := http.NewRequestWithContext(ctx, http.MethodDelete, mcpURL, nil); err == nil {
		req.Header = header
		_, _, _ = c.Do(req)
	}
}

func (c *Client) post(ctx context.Context, mcpURL, body string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, mcpURL, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream") // CL-32
	resp, _, err := c.Do(req)
	return resp, err
}

func readChallenge(resp *http.Response) (Challenge, error) {
	out := Challenge{Status: resp.StatusCode}
	list, err := oauth.ParseChallenges(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return out, Fail(StepChallenge, "The server, or a proxy before it, sends a broken header.",
			"WWW-Authenticate is not well-formed: %q", resp.Header.Values("WWW-Authenticate"))
	}
	for _, ch := range list {
		if strings.EqualFold(ch.Scheme, "Bearer") {
			out.ResourceMetadata, out.Scope = ch.Params["resource_metadata"], oauth.ParseScopes(ch.Params["scope"])
			break
		}
	}
	return out, nil
}

// Resource is the metadata of a protected resource.
type Resource struct {
	metadata.ProtectedResource
	Location string `json:"-"` // URL of the document; "": the server has none
}

// Resource reads the RFC 9728 document. It tries the URL of the challenge, or else the
// path-inserted location and then the root (CL-02). The document must be about mcpURL (CL-03).
// Otherwise an attacker could choose its authorization server.
func (c *Client) Resource(ctx context.Context, mcpURL string, ch Challenge) (Resource, error) {
	origin := Origin(mcpURL)
	places := []string{metadata.ProtectedResourceURL(mcpURL), origin + metadata.ProtectedResourceWellKnown}
	if ch.ResourceMetadata != "" {
		places = []string{ch.ResourceMetadata}
	}
	for _, place := range places {
		var r Resource
		found, err := c.GetJSON(ctx, place, &r.ProtectedResource)
		if err != nil {
			return r, Fail(StepResource, "The document must be reachable for clients without a token.", "%v", err)
		}
		if !found {
			continue
		}
		r.Location = place
		if !matches(r.ProtectedResource.Resource, mcpURL) {
			return r, Fail(StepResource, "Set the resource of the server to the very URL that people are given.",
				"%s is about %q and not about %s", place, r.ProtectedResource.Resource, mcpURL)
		}
		return r, nil
	}
	if ch.ResourceMetadata != "" {
		return Resource{},
			Fail(StepResource, "The challenge points to a document that does not exist.",
				"there is no document at %s", ch.ResourceMetadata)
	}
	return Resource{}, nil // before 2025-06-18, the server's origin was the authorization server
}

func matches(resource, mcpURL string) bool {
	a, err := oauth.CanonicalResource(resource)
	b, err2 := oauth.CanonicalResource(mcpURL)
	return err == nil && err2 == nil && (a == b || a == oauth.ResourceOrigin(b))
}

// Origin returns scheme, host and port of a URL. It returns other text unchanged.
func Origin(raw string) string {
	canonical, err := oauth.CanonicalResource(raw)
	if err != nil {
		return raw
	}
	return oauth.ResourceOrigin(canonical)
}

// Issuers returns the authorization servers that may issue tokens for a resource, in order of
// preference (RFC 9728 §7.6, CL-09). Without a document it is the server's own origin (MCP
// 2025-03-26).
func Issuers(mcpURL string, r Resource) ([]string, error) {
	switch {
	case len(r.AuthorizationServers) > 0:
		return r.AuthorizationServers, nil
	case r.Location != "":
		return nil, Fail(StepMetadata, "Name the issuer in authorization_servers.", "%s names no authorization server",
			r.Location)
	}
	return []string{Origin(mcpURL)}, nil
}

// Server reads the metadata of the authorization server, trying locations in the order of CL-04.
// The issuer in the metadata must be identical to issuer (CL-05). found is false if there is no
// metadata.
func (c *Client) Server(ctx context.Context, issuer string) (s metadata.AuthorizationServer, found bool, err error) {
	for _, path := range metadata.AuthorizationServerPaths(issuer) {
		if strings.HasSuffix(path, "/") && !strings.HasSuffix(issuer, "/") {
			continue
		}
		found, err := c.GetJSON(ctx, Origin(issuer)+path, &s)
		switch {
		case err != nil:
			return s, false,
				Fail(StepMetadata, "Is the authorization server running, and reachable from here?", "%v", err)
		case !found:
			continue
		case s.Issuer != issuer: // SP-18
			return s, true, Fail(StepMetadata, "Clients compare the issuer byte for byte; make both the same.",
				"the metadata of %s names the issuer %q", issuer, s.Issuer)
		}
		return s, true, CheckURL(s.TokenEndpoint)
	}
	return s, false, nil
}
