// Package mcpguard connects a server of github.com/mark3labs/mcp-go to the guard of package
// mcpresource in front of it. Lists show only entries that the caller may use, and each call is
// checked again, as decoded by mcp-go. It is an example to copy, and has no releases.
package mcpguard

import (
	"context"
	"errors"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// errRefused is all that a client learns here. The guard has already sent a challenge to clients
// that lack a scope. A client that gets this far has found two parsers that differ.
var errRefused = errors.New("this operation is not permitted")

// With makes a server check calls with g. hooks are the server's hooks, and may be nil. mcp-go has
// filters for tools and prompts; lists of resources are filtered with a hook.
func With(g *mcpresource.Guard, hooks *server.Hooks) server.ServerOption {
	if hooks == nil {
		hooks = &server.Hooks{}
	}
	a := asks{g}
	hooks.AddAfterListResources(a.resources)
	hooks.AddAfterListResourceTemplates(a.templates)
	options := []server.ServerOption{
		server.WithHooks(hooks),
		server.WithToolFilter(a.tools), server.WithToolHandlerMiddleware(a.call),
		server.WithPromptFilter(a.prompts), server.WithPromptHandlerMiddleware(a.prompt),
		server.WithResourceHandlerMiddleware(a.read),
	}
	return func(s *server.MCPServer) {
		for _, apply := range options {
			apply(s)
		}
	}
}

type asks struct{ guard *mcpresource.Guard }

func (a asks) covers(ctx context.Context, method mcp.MCPMethod, name string) bool {
	return a.guard.Covers(ctx, mcpresource.Operation{Method: string(method), Name: name})
}

// allowed checks a call. ctx belongs to the current request, even in a session.
func (a asks) allowed(ctx context.Context, op mcpresource.Operation) error {
	if a.guard.Authorize(ctx, op) != nil {
		return errRefused
	}
	return nil
}

func (a asks) tools(ctx context.Context, all []mcp.Tool) []mcp.Tool {
	return slices.DeleteFunc(slices.Clone(all), func(t mcp.Tool) bool { return !a.covers(ctx, mcp.MethodToolsCall, t.Name) })
}

func (a asks) call(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		op := mcpresource.Operation{Method: string(mcp.MethodToolsCall), Name: r.Params.Name, Arguments: r.Params.RawArguments}
		if err := a.allowed(ctx, op); err != nil {
			return nil, err
		}
		return next(ctx, r)
	}
}

func (a asks) prompts(ctx context.Context, all []mcp.Prompt) []mcp.Prompt {
	return slices.DeleteFunc(slices.Clone(all), func(p mcp.Prompt) bool { return !a.covers(ctx, mcp.MethodPromptsGet, p.Name) })
}

func (a asks) prompt(next server.PromptHandlerFunc) server.PromptHandlerFunc {
	return func(ctx context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if err := a.allowed(ctx, mcpresource.Operation{Method: string(mcp.MethodPromptsGet), Name: r.Params.Name}); err != nil {
			return nil, err
		}
		return next(ctx, r)
	}
}

func (a asks) resources(ctx context.Context, _ any, _ *mcp.ListResourcesRequest, result *mcp.ListResourcesResult) {
	result.Resources = slices.DeleteFunc(slices.Clone(result.Resources), func(r mcp.Resource) bool {
		return !a.covers(ctx, mcp.MethodResourcesRead, r.URI)
	})
}

// templates shows a template to callers who may read its URI as written.
func (a asks) templates(ctx context.Context, _ any, _ *mcp.ListResourceTemplatesRequest, result *mcp.ListResourceTemplatesResult) {
	result.ResourceTemplates = slices.DeleteFunc(slices.Clone(result.ResourceTemplates), func(t mcp.ResourceTemplate) bool {
		return t.URITemplate == nil || !a.covers(ctx, mcp.MethodResourcesRead, t.URITemplate.Raw())
	})
}

func (a asks) read(next server.ResourceHandlerFunc) server.ResourceHandlerFunc {
	return func(ctx context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		if err := a.allowed(ctx, mcpresource.Operation{Method: string(mcp.MethodResourcesRead), Name: r.Params.URI}); err != nil {
			return nil, err
		}
		return next(ctx, r)
	}
}
