package gosdk

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// operations returns the operations of a decoded request for the policy: first its own method, then
// those that it implies.
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
		if p != nil && p.Arguments != nil {
			op.Arguments, _ = json.Marshal(p.Arguments) // strings
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

// completed uses the members and not the type, as the guard does.
func completed(ref *mcp.CompleteReference) (ops []mcpresource.Operation) {
	if ref != nil && ref.Name != "" {
		ops = append(ops, mcpresource.Operation{Method: "prompts/get", Name: ref.Name})
	}
	if ref != nil && ref.URI != "" {
		ops = append(ops, mcpresource.Operation{Method: "resources/read", Name: ref.URI})
	}
	return ops
}

// filter removes entries that the caller of this request may not use from a list, independently of
// earlier calls (RS-54). The slices are new for each call.
func filter(ctx context.Context, g *mcpresource.Guard, result mcp.Result) {
	hidden := func(method, name string) bool {
		return !g.Covers(ctx, mcpresource.Operation{Method: method, Name: name})
	}
	switch r := result.(type) {
	case *mcp.ListToolsResult:
		r.Tools = slices.DeleteFunc(r.Tools, func(t *mcp.Tool) bool { return hidden("tools/call", t.Name) })
	case *mcp.ListPromptsResult:
		r.Prompts = slices.DeleteFunc(r.Prompts, func(p *mcp.Prompt) bool { return hidden("prompts/get", p.Name) })
	case *mcp.ListResourcesResult:
		r.Resources = slices.DeleteFunc(r.Resources,
			func(s *mcp.Resource) bool { return hidden("resources/read", s.URI) })
	case *mcp.ListResourceTemplatesResult:
		r.ResourceTemplates = slices.DeleteFunc(r.ResourceTemplates,
			func(s *mcp.ResourceTemplate) bool { return hidden("resources/read", s.URITemplate) })
	}
}

// private marks results that depend on the caller as not shareable by caches (RS-57), on every page
// (RS-58). With the SDK's default, public, one user could get another user's list.
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
