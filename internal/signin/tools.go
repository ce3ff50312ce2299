package signin

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Tools are the names of a server's tools, and the result of a call if one was made.
type Tools struct {
	Names  []string `json:"tools"`
	Result any      `json:"result,omitempty"`
}

// NeedScopes is a 403 that names the scopes an operation needs: the sign-in is to be
// repeated with them (MCP "Step-Up Authorization Flow").
type NeedScopes struct{ Scopes oauth.Scopes }

// Error implements error.
func (e *NeedScopes) Error() string { return "more scope is needed: " + e.Scopes.String() }

// Call is a tool to call after listing; Tool "" calls none.
type Call struct {
	Tool string
	Args map[string]any
}

// Tools connects with the official SDK client, lists the tools and makes the call.
func (c *Client) Tools(ctx context.Context, mcpURL, token string, call Call) (Tools, error) {
	bearer := &bearerTransport{token: token, next: http.DefaultTransport}
	// A redirect would take the token to a server that it is not for (CL-26).
	own := &http.Client{Transport: bearer, CheckRedirect: discovery.NoRedirect}
	client := mcp.NewClient(&mcp.Implementation{Name: "mcp-authd", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: mcpURL, HTTPClient: own, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err != nil {
		return Tools{}, bearer.explain(err)
	}
	defer session.Close()
	var out Tools
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return out, bearer.explain(err)
		}
		out.Names = append(out.Names, tool.Name)
	}
	if call.Tool == "" {
		return out, nil
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: call.Tool, Arguments: call.Args})
	if err != nil {
		return out, bearer.explain(err)
	}
	out.Result = result.StructuredContent
	if out.Result == nil {
		out.Result = result.Content
	}
	if result.IsError {
		return out, fail(StepTools, "The tool says so; sign-in worked.", "%s answered with an error: %s", call.Tool,
			textOf(result))
	}
	return out, nil
}

func textOf(r *mcp.CallToolResult) string {
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			return t.Text
		}
	}
	return "no text"
}

// bearerTransport adds the token to requests for the one server, and keeps the last
// refusal, because the SDK passes on its status only.
type bearerTransport struct {
	token string
	next  http.RoundTripper

	mu      sync.Mutex // guards what follows
	status  int
	refusal []oauth.Challenge
}

// RoundTrip implements http.RoundTripper.
func (b *bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token) // CL-25
	resp, err := b.next.RoundTrip(r)
	if err == nil && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
		list, _ := oauth.ParseChallenges(resp.Header.Values("WWW-Authenticate"))
		b.mu.Lock()
		b.status, b.refusal = resp.StatusCode, list
		b.mu.Unlock()
	}
	return resp, err
}

func (b *bearerTransport) explain(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ch := range b.refusal {
		if ch.Params["error"] == string(oauth.InsufficientScope) {
			return &NeedScopes{oauth.ParseScopes(ch.Params["scope"])}
		}
	}
	if b.status == http.StatusUnauthorized {
		return fail(StepTools,
			"The MCP server does not accept the token of its own authorization server: compare its issuer and resource.",
			"the MCP server answered 401 to the new token")
	}
	var own *discovery.Error
	if errors.As(err, &own) {
		return err
	}
	return fail(StepTools, "Signing in worked; the MCP server itself failed.", "%v", err)
}
