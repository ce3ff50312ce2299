//lint:file-ignore SA1019 sampling and roots are part of the revisions before 2026-07-28 (SEP-2577)

package gosdk

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// declared rejects a result that asks the client for something it did not declare in this request
// (MCP 2026-07-28, "Multi Round-Trip Requests", RS-180). The error names the missing capability
// (RS-141). For older revisions, the SDK checks this itself.
func (x *exchange) declared(result mcp.Result) error {
	asks := questions(result)
	if !protocol.IsStateless(x.version) || len(asks) == 0 {
		return nil
	}
	has, _ := x.req.GetParams().GetMeta()[mcp.MetaKeyClientCapabilities].(map[string]any)
	missing := map[string]map[string]struct{}{}
	for _, q := range asks {
		capability, member := needed(q)
		if capability == "" || offers(has, capability, member) {
			continue
		}
		if missing[capability] == nil {
			missing[capability] = map[string]struct{}{}
		}
		if member != "" {
			missing[capability][member] = struct{}{}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	x.outcome = mcpresource.OutcomeUndeclaredCapability
	data, err := json.Marshal(map[string]any{"requiredCapabilities": missing})
	if err != nil {
		return err
	}
	return &jsonrpc.Error{
		Code: mcp.CodeMissingRequiredClientCapabilities, Data: data,
		Message: "The client has not declared a capability that this needs.",
	}
}

// questions returns the input requests in a result.
func questions(result mcp.Result) mcp.InputRequestMap {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		return r.InputRequests
	case *inputRequired:
		return r.InputRequests
	case *mcp.GetPromptResult:
		return r.InputRequests
	case *mcp.ReadResourceResult:
		return r.InputRequests
	}
	return nil
}

// needed returns the capability, and possibly its member, that a question requires.
func needed(question mcp.InputRequest) (capability, member string) {
	switch q := question.(type) {
	case *mcp.ElicitParams:
		if q.Mode == "url" {
			return "elicitation", "url"
		}
		return "elicitation", "form"
	case *mcp.CreateMessageParams:
		return "sampling", ""
	case *mcp.CreateMessageWithToolsParams:
		return "sampling", "tools"
	case *mcp.ListRootsParams:
		return "roots", ""
	}
	return "", ""
}

// offers reports whether decoded capabilities contain a capability. Elicitation without a mode
// means form.
func offers(has map[string]any, capability, member string) bool {
	of, ok := has[capability].(map[string]any)
	if !ok || member == "" {
		return ok
	}
	_, ok = of[member]
	return ok || member == "form" && len(of) == 0
}

// RequireExtension returns nil if the client declared an extension, such as
// "io.modelcontextprotocol/ui". It must do so in this request, or for revisions up to 2025-11-25 at
// initialize; declarations in earlier requests do not count. A tool, prompt or resource that
// depends on the extension returns the error unchanged. It tells the client what is missing (MCP
// 2026-07-28, "Extensions", RS-174). A handler that can work without the extension should do so
// instead.
func RequireExtension(r mcp.Request, name string) error {
	if _, ok := extensions(r)[name]; ok {
		return nil
	}
	data, err := json.Marshal(map[string]any{
		"requiredCapabilities": map[string]any{"extensions": map[string]any{name: struct{}{}}},
	})
	if err != nil {
		return err
	}
	return &jsonrpc.Error{
		Code: mcp.CodeMissingRequiredClientCapabilities, Data: data,
		Message: "The client has not declared an extension that this needs.",
	}
}

func extensions(r mcp.Request) map[string]any {
	if protocol.IsStateless(metaVersion(r.GetParams())) {
		has, _ := r.GetParams().GetMeta()[mcp.MetaKeyClientCapabilities].(map[string]any)
		own, _ := has["extensions"].(map[string]any)
		return own
	}
	s, ok := r.GetSession().(*mcp.ServerSession)
	if !ok {
		return nil
	}
	if p := s.InitializeParams(); p != nil && p.Capabilities != nil {
		return p.Capabilities.Extensions
	}
	return nil
}
