package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// The JSON-RPC codes of refusals. That of an authorization error is outside the
// range that MCP allocates.
const (
	codeForbidden     = -32000
	codeInvalidParams = -32602
)

// Middleware checks the scope of every call once more, on what the SDK decoded, and
// filters lists by what the caller may use. It refuses whatever it cannot attribute
// to a caller, unless the policy leaves the method open. A tool, prompt or resource that
// fails because the person has to visit a page first (mcpresource.InteractionRequiredError)
// makes the client ask the person to.
func Middleware(g *mcpresource.Guard, o *Options) mcp.Middleware {
	if o == nil {
		o = &Options{}
	}
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			p, _ := Principal(req)
			// Without a caller in this request there is none in the context either: what
			// stands there may be the one who opened the session.
			ctx = mcpresource.NewContext(ctx, p)
			for _, op := range operations(method, req) {
				if err := g.Authorize(ctx, op); err != nil {
					return nil, forbidden(err)
				}
			}
			call := func() (mcp.Result, error) { return next(ctx, method, req) }
			result, err := call()
			result, err = o.interact(ctx, req, result, err, call)
			if err != nil || result == nil {
				return result, err
			}
			if !o.ShowAll {
				filter(ctx, g, result)
			}
			private(result)
			return result, nil
		}
	}
}

// operations says what a decoded request does, in the terms of the policy: first its
// own method, then what that amounts to.
func operations(method string, req mcp.Request) []mcpresource.Operation {
	op := mcpresource.Operation{Method: method}
	var more []mcpresource.Operation
	switch p := req.GetParams().(type) {
	case *mcp.CallToolParamsRaw:
		if p != nil {
			op.Name, op.Arguments = p.Name, p.Arguments
		}
	case *mcp.GetPromptParams:
		if p != nil {
			op.Name = p.Name
		}
	case *mcp.ReadResourceParams:
		if p != nil {
			op.Name = p.URI
		}
	case *mcp.SubscribeParams:
		if p != nil {
			op.Name = p.URI
		}
	case *mcp.UnsubscribeParams:
		if p != nil {
			op.Name = p.URI
		}
	case *mcp.CompleteParams:
		if p != nil {
			more = completed(p.Ref)
		}
	case *mcp.SubscriptionsListenParams:
		if p != nil && p.Notifications != nil {
			for _, uri := range p.Notifications.ResourceSubscriptions {
				more = append(more, mcpresource.Operation{Method: "resources/subscribe", Name: uri})
			}
		}
	}
	return append([]mcpresource.Operation{op}, more...)
}

// completed goes by the members and not by the type, as the guard does.
func completed(ref *mcp.CompleteReference) (ops []mcpresource.Operation) {
	if ref != nil && ref.Name != "" {
		ops = append(ops, mcpresource.Operation{Method: "prompts/get", Name: ref.Name})
	}
	if ref != nil && ref.URI != "" {
		ops = append(ops, mcpresource.Operation{Method: "resources/read", Name: ref.URI})
	}
	return ops
}

// forbidden is the JSON-RPC form of a refusal.
func forbidden(err error) error {
	if errors.Is(err, mcpresource.ErrResourceURI) {
		return &jsonrpc.Error{Code: codeInvalidParams, Message: "The resource URI is not in its canonical form."}
	}
	data := map[string]string{"error": "invalid_token"}
	message := "Authentication is required."
	var scope *mcpresource.ScopeError
	if errors.As(err, &scope) {
		data = map[string]string{"error": "insufficient_scope", "scope": strings.Join(scope.Required, " ")}
		message = "This operation needs more scope."
	}
	raw, _ := json.Marshal(data) // a map of strings always encodes
	return &jsonrpc.Error{Code: codeForbidden, Message: message, Data: raw}
}

// filter leaves in a list what the caller may use. The slices are fresh for each call.
func filter(ctx context.Context, g *mcpresource.Guard, result mcp.Result) {
	hidden := func(method, name string) bool {
		return g.Authorize(ctx, mcpresource.Operation{Method: method, Name: name}) != nil
	}
	switch r := result.(type) {
	case *mcp.ListToolsResult:
		r.Tools = slices.DeleteFunc(r.Tools, func(t *mcp.Tool) bool { return hidden("tools/call", t.Name) })
	case *mcp.ListPromptsResult:
		r.Prompts = slices.DeleteFunc(r.Prompts, func(p *mcp.Prompt) bool { return hidden("prompts/get", p.Name) })
	case *mcp.ListResourcesResult:
		r.Resources = slices.DeleteFunc(r.Resources, func(s *mcp.Resource) bool { return hidden("resources/read", s.URI) })
	case *mcp.ListResourceTemplatesResult:
		r.ResourceTemplates = slices.DeleteFunc(r.ResourceTemplates, func(s *mcp.ResourceTemplate) bool { return hidden("resources/read", s.URITemplate) })
	}
}

// private marks what depends on the caller as not to be shared by caches. The SDK's
// default is public, which would let one person's list be served to another.
func private(result mcp.Result) {
	switch r := result.(type) {
	case *mcp.ListToolsResult:
		r.CacheScope = "private"
	case *mcp.ListPromptsResult:
		r.CacheScope = "private"
	case *mcp.ListResourcesResult:
		r.CacheScope = "private"
	case *mcp.ListResourceTemplatesResult:
		r.CacheScope = "private"
	case *mcp.ReadResourceResult:
		r.CacheScope = "private"
	case *mcp.DiscoverResult:
		r.CacheScope = "private"
	}
}
