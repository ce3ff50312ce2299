package adminmcp

import (
	"context"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// listed removes the tools from a list that the caller's role and scopes do not permit. The tool
// that requests admin:write is listed for callers whose role could use it and whose token lacks it.
func (s *Server) listed(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, r)
		list, ok := result.(*mcp.ListToolsResult)
		if err != nil || !ok {
			return result, err
		}
		actor, p, err := s.caller(ctx)
		if err != nil {
			return nil, err
		}
		shown := *list
		changes := mayChange(p.Scopes) && s.proved(actor)
		shown.Tools = slices.DeleteFunc(slices.Clone(list.Tools), func(t *mcp.Tool) bool {
			return !show(t.Name, actor.Role, changes)
		})
		return &shown, nil
	}
}

func (s *Server) proved(a admin.Actor) bool {
	return s.c.Service.Now().Sub(a.Proved) <= s.c.Service.FreshFor
}

func show(tool string, r admin.Role, changes bool) bool {
	switch tool {
	case whyName:
		return admin.AttemptList.Spec().Permits(r)
	case allowName:
		if !changes {
			for _, spec := range specs() {
				if spec.Changes() && spec.Permits(r) {
					return true
				}
			}
		}
		return false
	}
	spec, ok := specs()[tool]
	return ok && spec.Permits(r) && (changes || !spec.Changes())
}

// specs returns the operations that are tools, by tool name. It is cached because each tool call
// needs it.
var specs = sync.OnceValue(func() map[string]admin.Spec {
	out := map[string]admin.Spec{}
	for _, v := range admin.All() {
		if isTool(v) {
			out[toolName(v.Spec())] = v.Spec()
		}
	}
	return out
})
