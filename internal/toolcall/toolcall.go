// Package toolcall lists the tools of an MCP server and calls one of them with the official SDK.
package toolcall

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/internal/signin"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Tools holds the names of a server's tools, and the result of the call if one was made.
type Tools struct {
	Names  []string `json:"tools"`
	Result any      `json:"result,omitempty"`
}

// Call is a tool to call after listing. If Tool is "", no tool is called.
type Call struct {
	Tool string
	Args Arguments
}

// Make connects with the official SDK client, lists the tools and makes the call. It sends requests
// through present, which adds the token. If another sign-in can resolve a refusal, the error is a
// *signin.NeedMore.
func Make(ctx context.Context, mcpURL string, present http.RoundTripper, call Call) (Tools, error) {
	seen := &watcher{next: present}
	// A redirect would send the token to another server (CL-26).
	own := &http.Client{Transport: seen, CheckRedirect: discovery.NoRedirect}
	client := mcp.NewClient(&mcp.Implementation{Name: "mcp-authd", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: mcpURL, HTTPClient: own, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err != nil {
		return Tools{}, seen.explain(err)
	}
	defer session.Close()
	var out Tools
	var schema any // of the tool to call; nil: it is not listed, perhaps because it requires more scopes
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return out, seen.explain(err)
		}
		out.Names = append(out.Names, tool.Name)
		if tool.Name == call.Tool {
			schema = tool.InputSchema
		}
	}
	if call.Tool == "" {
		return out, nil
	}
	arguments, err := call.Args.of(schema)
	if err != nil {
		return out, discovery.Fail(signin.StepTools, "Signing in worked; the tool was not called.", "%v", err)
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: call.Tool, Arguments: arguments})
	if err != nil {
		return out, seen.explain(err)
	}
	out.Result = result.StructuredContent
	if out.Result == nil {
		out.Result = result.Content
	}
	if result.IsError {
		return out, discovery.Fail(signin.StepTools, "The tool says so; sign-in worked.",
			"%s answered with an error: %s", call.Tool, textOf(result))
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

// watcher keeps the last refusal, because the SDK reports only its status.
type watcher struct {
	next http.RoundTripper

	mu      sync.Mutex // guards the fields below
	status  int
	refusal []oauth.Challenge
}

// RoundTrip implements http.RoundTripper.
func (b *watcher) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
		list, _ := oauth.ParseChallenges(resp.Header.Values("WWW-Authenticate"))
		b.mu.Lock()
		b.status, b.refusal = resp.StatusCode, list
		b.mu.Unlock()
	}
	return resp, err
}

func (b *watcher) explain(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ch := range b.refusal {
		if more, ok := signin.Needed(ch); ok {
			more.Text = said(err)
			return &more
		}
	}
	if b.status == http.StatusUnauthorized {
		return discovery.Fail(signin.StepTools,
			"The MCP server does not accept the token of its own authorization server: compare its issuer and resource.",
			"the MCP server answered 401 to the new token")
	}
	var own *discovery.Error
	if errors.As(err, &own) {
		return err
	}
	if text := said(err); text != "" && b.status == http.StatusForbidden {
		return discovery.Fail(signin.StepTools, "Signing in worked; the MCP server refuses the call.", "%s", text)
	}
	return discovery.Fail(signin.StepTools, "Signing in worked; the MCP server itself failed.", "%v", err)
}

// said returns the message of an MCP server's error, or "".
func said(err error) string {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return ""
}
