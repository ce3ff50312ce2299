package gosdk

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// openState gives the handler the requestState that it returned an exchange ago (MCP
// 2026-07-28, "Multi Round-Trip Requests", RS-181). What the client brings is taken for nothing
// else: it must have been sealed here, for this caller, this operation and these
// arguments, not long ago. Who brings it is authenticated as ever (RS-173, SP-15).
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

// broughtState is where a request has its state, nil for a method that has none.
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

// operation is what a state is bound to. It is worked out for the few requests that
// have one.
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
		return x.method + "\x00" + x.ops[0].Name // no arguments that could be decoded are none
	}
	return string(b)
}

// canonical decodes arguments, so that a client may write them down in another order. When
// a key occurs twice every byte counts: what was decoded is not all that the tool may see.
func canonical(raw json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // large integers stay apart
	var v any
	if d.Decode(&v) != nil || !unique(raw, v) {
		return string(raw)
	}
	return v
}

// sealState seals what the handler wants back, in a copy, because a handler may return
// the same result again. Clients of older revisions never see it: for them the SDK asks
// itself, behind this middleware.
func (x *exchange) sealState(result mcp.Result) mcp.Result {
	seal := func(state string) string {
		if state == "" || !protocol.IsStateless(x.version) { // RS-73: such a client brings nothing back
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
