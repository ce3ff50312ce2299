package gosdk

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/internal/strictjson"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// openState restores the requestState that the handler returned in the previous round (MCP
// 2026-07-28, "Multi Round-Trip Requests", RS-181). The client's value must have been sealed here
// for this caller, operation and arguments, within StateLife. The caller is authenticated as usual
// (RS-173, SP-15).
func (x *exchange) openState() error {
	state := x.broughtState()
	if state == nil || *state == "" {
		return nil
	}
	x.sealed = *state
	opened, err := x.o.State.Open(x.caller, x.operation(), x.sealed)
	if err != nil {
		x.outcome = mcpresource.OutcomeInvalidState
		return &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidParams, Message: "requestState is not valid: start again without it.",
		}
	}
	*state = string(opened)
	return nil
}

// broughtState returns a pointer to the requestState of a request, or nil for a method without one.
func (x *exchange) broughtState() *string {
	switch p := x.req.GetParams().(type) {
	case *mcp.CallToolParamsRaw:
		if p != nil {
			return &p.RequestState
		}
	case *mcp.GetPromptParams:
		if p != nil {
			return &p.RequestState
		}
	case *mcp.ReadResourceParams:
		if p != nil {
			return &p.RequestState
		}
	}
	return nil
}

// operation returns the data that a state is bound to. It is computed only for requests with a
// state.
func (x *exchange) operation() string {
	var arguments any
	switch p := x.req.GetParams().(type) {
	case *mcp.CallToolParamsRaw:
		arguments = canonical(p.Arguments)
	case *mcp.GetPromptParams:
		arguments = p.Arguments
	}
	b, err := json.Marshal([]any{x.method, x.ops[0].Name, arguments}) // sorts the members of objects
	if err != nil {
		return x.method + "\x00" + x.ops[0].Name // arguments that cannot be decoded
	}
	return string(b)
}

// canonical decodes arguments, so that a client may send them in another order. With a repeated key
// it returns the raw text, because the tool may see more than the decoded value.
func canonical(raw json.RawMessage) any {
	v, err := strictjson.Value(raw, strictjson.Limits{Depth: maxDepth, Names: strictjson.Exact})
	if err != nil {
		return string(raw)
	}
	return v
}

// sealState seals the handler's state, in a copy, because a handler may return the same result
// again. Clients of older revisions never get it: for them the SDK asks the question itself, behind
// this middleware.
func (x *exchange) sealState(result mcp.Result) mcp.Result {
	seal := func(state string) string {
		if state == "" || !protocol.IsStateless(x.version) { // RS-73: such a client cannot return it
			return ""
		}
		return x.o.State.Seal(x.caller, x.operation(), []byte(state), x.o.StateLife)
	}
	switch r := result.(type) {
	case *mcp.CallToolResult:
		own := *r
		own.RequestState = seal(r.RequestState)
		return &own
	case *inputRequired:
		own := *r.CallToolResult
		own.RequestState = seal(r.RequestState)
		return &inputRequired{&own}
	case *mcp.GetPromptResult:
		own := *r
		own.RequestState = seal(r.RequestState)
		return &own
	case *mcp.ReadResourceResult:
		own := *r
		own.RequestState = seal(r.RequestState)
		return &own
	}
	return result
}
