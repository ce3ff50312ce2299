package signin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Finding is the result of one check.
type Finding struct {
	Level       string `json:"level"` // ok, warning, fail
	Requirement string `json:"requirement,omitempty"`
	What        string `json:"what"`
	Advice      string `json:"advice,omitempty"`
}

// checker collects findings.
type checker struct {
	*Client
	url      string
	findings []Finding
}

func (c *checker) ok(id, what string, args ...any) {
	c.findings = append(c.findings, Finding{"ok", id, fmt.Sprintf(what, args...), ""})
}

func (c *checker) bad(level, id, advice, what string, args ...any) {
	c.findings = append(c.findings, Finding{level, id, fmt.Sprintf(what, args...), advice})
}

// want adds a finding: ok if good is true, and a failure otherwise.
func (c *checker) want(good bool, id, advice, what string, args ...any) {
	if good {
		c.ok(id, what, args...)
		return
	}
	c.bad("fail", id, advice, "expected: "+what, args...)
}

// Check checks a protected MCP server from outside, without signing in.
func (c *Client) Check(ctx context.Context, mcpURL string) []Finding {
	k := &checker{Client: c, url: mcpURL}
	ch, err := c.Challenge(ctx, mcpURL)
	if err != nil {
		k.failed("RS-14", err)
		return k.findings
	}
	k.refusals(ctx, ch)
	r, err := c.Resource(ctx, mcpURL, ch)
	if err != nil {
		k.failed("RS-03", err)
		return k.findings
	}
	k.document(ctx, r)
	s, err := c.Metadata(ctx, mcpURL, r)
	if err != nil {
		k.failed("AS-20", err)
		return k.findings
	}
	k.server(ctx, s)
	k.fits(s, ch, r)
	return k.findings
}

// fits checks that the scopes and the resource of the MCP server are known to its authorization
// server. Otherwise users sign in repeatedly without success.
func (c *checker) fits(s Server, ch discovery.Challenge, r discovery.Resource) {
	if s.ResourceScopes == nil {
		return // the optional field is missing
	}
	var known []string
	ok := false
	for uri, scopes := range s.ResourceScopes {
		canonical, err := oauth.CanonicalResource(c.url)
		if own, err2 := oauth.CanonicalResource(uri); err == nil && err2 == nil && own == canonical {
			known, ok = scopes, true
		}
	}
	c.want(ok, "AS-105", "Add it there: mcp-authd resource add "+c.url,
		"the authorization server knows this MCP server, %s", c.url)
	if !ok {
		return
	}
	asked := oauth.Scopes(ch.Scope).Union(oauth.Scopes(r.ScopesSupported)).Without(oauth.Scopes{oauth.OfflineAccess})
	unknown := asked.Without(oauth.Scopes(known))
	c.want(len(unknown) == 0, "AS-111",
		fmt.Sprintf("It has %q. Add %q there, or correct the rules of the MCP server.", oauth.Scopes(known).String(),
			unknown.String()),
		"the authorization server has each scope that the MCP server asks for (%s)", asked)
}

func (c *checker) failed(id string, err error) {
	advice := ""
	if e, ok := err.(*discovery.Error); ok {
		advice = e.Advice
	}
	c.bad("fail", id, advice, "%v", err)
}

// refusals checks the server's error responses.
func (c *checker) refusals(ctx context.Context, ch discovery.Challenge) {
	c.want(ch.ResourceMetadata != "", "RS-16",
		"Send resource_metadata in WWW-Authenticate; a proxy may have removed the header.",
		"the 401 names its resource_metadata")
	if len(ch.Scope) > 0 {
		c.ok("RS-17", "the 401 names the scope to ask for: %s", ch.Scope)
	} else {
		c.bad("warning", "RS-17", "Name the scopes that a client should ask for first.", "the 401 names no scope")
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodDelete} {
		status, _ := c.ask(ctx, method, c.url, nil)
		c.want(status == http.StatusUnauthorized, "RS-14",
			"Refuse before looking at the method: some clients begin with it.", "%s without a token is 401 (got %d)",
			method, status)
	}
	status, params := c.ask(ctx, http.MethodPost, c.url, http.Header{"Authorization": {"Bearer not-a-token"}})
	c.want(status == http.StatusUnauthorized && params["error"] == string(oauth.InvalidToken), "RS-18",
		"Answer a bad token with 401 and error=\"invalid_token\".", "a bad token is 401 invalid_token (got %d %s)",
		status, params["error"])
	status, _ = c.ask(ctx, http.MethodPost, c.url, http.Header{"Authorization": {"Bearer"}})
	c.want(status == http.StatusBadRequest || status == http.StatusUnauthorized, "RS-22",
		"Refuse a malformed Authorization header.", "a malformed Authorization header is refused (got %d)", status)
	sep := "?"
	if strings.Contains(c.url, "?") {
		sep = "&"
	}
	status, _ = c.ask(ctx, http.MethodPost, c.url+sep+"access_token=not-a-token", nil)
	c.want(status == http.StatusUnauthorized, "RS-25", "Do not look for tokens in the query.",
		"a token in the query is not looked at (got %d)", status)
	status, _ = c.ask(ctx, http.MethodPost, c.url, http.Header{"Origin": {"https://evil.example"}})
	c.want(status == http.StatusForbidden, "RS-59",
		"Refuse foreign origins with 403, or web pages can reach the server (DNS rebinding).",
		"a foreign Origin is 403 (got %d)", status)
}

// ask sends a request and returns the status, or 0 without a response, and the parameters of a
// bearer challenge.
func (c *checker) ask(ctx context.Context, method, target string, header http.Header) (int, map[string]string) {
	req, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return 0, nil
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, _, err := c.Do(req)
	if err != nil {
		return 0, nil
	}
	list, _ := oauth.ParseChallenges(resp.Header.Values("WWW-Authenticate"))
	for _, ch := range list {
		if strings.EqualFold(ch.Scheme, "Bearer") {
			return resp.StatusCode, ch.Params
		}
	}
	return resp.StatusCode, nil
}

func (c *checker) document(ctx context.Context, r discovery.Resource) {
	if r.Location == "" {
		c.bad("fail", "RS-01", "Publish the RFC 9728 document; clients since MCP 2025-06-18 need it.",
			"there is no protected resource metadata")
		return
	}
	c.ok("RS-01", "the protected resource metadata is at %s", r.Location)
	c.want(r.ProtectedResource.Resource == c.url, "RS-03",
		"Make resource the very URL that people are given; several clients compare bytes.",
		"its resource is %s, byte for byte", c.url)
	c.want(len(r.AuthorizationServers) == 1, "RS-02", "Name exactly one; most clients read the first only.",
		"it names one authorization server (got %d)", len(r.AuthorizationServers))
	var again metadata.ProtectedResource
	found, _ := c.GetJSON(ctx, metadata.ProtectedResourceURL(c.url), &again)
	c.want(found, "RS-04", "Serve it at the path-inserted location too; not every client reads the header.",
		"it is at the well-known location as well")
	for _, s := range r.ScopesSupported {
		if s == oauth.OfflineAccess {
			c.bad("warning", "RS-09", "offline_access belongs to the authorization server.",
				"scopes_supported lists offline_access")
		}
	}
}

func (c *checker) server(ctx context.Context, s Server) {
	if s.Legacy {
		c.bad("warning", "AS-14", "Publish RFC 8414 metadata.", "the authorization server publishes no metadata")
		return
	}
	c.ok("AS-20", "the authorization server is %s, and says so", s.Issuer)
	c.ok("AS-24", "it supports PKCE with S256")
	if s.AuthorizationResponseIss {
		c.ok("AS-67", "it names itself in authorization responses (iss)")
	} else {
		c.bad("warning", "AS-67", "Send iss and advertise it: several clients insist.",
			"it does not name itself in authorization responses")
	}
	switch {
	case s.RegistrationEndpoint != "" && s.ClientIDMetadataDocument:
		c.ok("AS-131", "clients can register themselves, or use metadata documents")
	case s.RegistrationEndpoint != "":
		c.ok("AS-131", "clients can register themselves")
	case s.ClientIDMetadataDocument:
		c.ok("AS-131", "clients can use metadata documents")
	default:
		c.bad("warning", "AS-131", "Most clients need one of the two. Any other needs a client id from you.",
			"clients can neither register themselves nor use metadata documents")
	}
	if s.JWKSURI == "" {
		c.bad("warning", "AS-32", "Without keys, resource servers must introspect every token.", "it publishes no keys")
		return
	}
	var keys struct{ Keys []json.RawMessage }
	found, err := c.GetJSON(ctx, s.JWKSURI, &keys)
	c.want(found && err == nil && len(keys.Keys) > 0, "AS-32", "Publish the signing keys.",
		"its keys are at %s (%d found)", s.JWKSURI, len(keys.Keys))
}
