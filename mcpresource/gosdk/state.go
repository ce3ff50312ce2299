package gosdk

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// openState gives the handler the requestState that it returned an exchange ago (MCP
// 2026-07-28, "Multi Round-Trip Requests"). What the client brings is taken for nothing
// else: it must have been sealed here, for this caller, this operation and these
// arguments, not long ago. It returns what the state is bound to, "" where there is none.
func (x *exchange) openState() (operation string, err error) {
	var state *string
	var arguments any
	name := ""
	switch p := x.req.GetParams().(type) {
	case *mcp.CallToolParamsRaw:
		if p != nil {
			state, name, arguments = &p.RequestState, p.Name, canonical(p.Arguments)
		}
	case *mcp.GetPromptParams:
		if p != nil {
			state, name, arguments = &p.RequestState, p.Name, p.Arguments
		}
	case *mcp.ReadResourceParams:
		if p != nil {
			state, name = &p.RequestState, p.URI
		}
	}
	if state == nil {
		return "", nil
	}
	b, err := json.Marshal([]any{x.method, name, arguments}) // sorts the members of objects
	if err != nil {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "The arguments are malformed."}
	}
	operation = string(b)
	if *state == "" {
		return operation, nil
	}
	opened, err := x.o.State.Open(x.caller, operation, *state)
	if err != nil {
		x.outcome = "invalid_state"
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState is not valid: start again without it."}
	}
	*state = string(opened)
	return operation, nil
}

// canonical decodes arguments, so that a client may write them down in another order.
func canonical(raw json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // large integers stay apart
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	return v
}

// sealState seals what the handler wants back, in a copy, because a handler may return
// the same result again. Clients of older revisions never see it: for them the SDK asks
// itself, behind this middleware.
func (x *exchange) sealState(result mcp.Result, operation string) mcp.Result {
	seal := func(state string) string {
		if state == "" {
			return ""
		}
		return x.o.State.Seal(x.caller, operation, []byte(state), x.o.StateLife)
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
