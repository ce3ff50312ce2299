package gosdk

import (
	"context"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// coded returns an error with the code of the revision. An error without a code is an internal
// error; the SDK would send code 0.
func (x *exchange) coded(err error) error {
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) {
		if strings.HasPrefix(err.Error(), "JSON RPC not handled") {
			return err // the SDK converts it to -32601
		}
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	code := rpc.Code
	switch {
	case protocol.IsStateless(x.version) && code == protocol.CodeResourceNotFound:
		code = jsonrpc.CodeInvalidParams
	case protocol.IsStateless(x.version) && code == protocol.CodeURLElicitationNeeded:
		code = jsonrpc.CodeInternalError // this revision asks in a result instead
	case !protocol.IsStateless(x.version) && x.method == "resources/read" && missing(rpc):
		code = protocol.CodeResourceNotFound
	}
	if code == rpc.Code {
		return err
	}
	return &jsonrpc.Error{Code: code, Message: err.Error(), Data: rpc.Data}
}

// missing reports whether e is mcp.ResourceNotFoundError.
func missing(e *jsonrpc.Error) bool {
	known, ok := mcp.ResourceNotFoundError("").(*jsonrpc.Error)
	return ok && e.Code == known.Code && e.Message == known.Message
}

// advertised rejects methods of features that the server does not have (MCP 2026-07-28, server
// features, "Capabilities", RS-136). The SDK answers them with empty lists, which older clients may
// rely on.
func (x *exchange) advertised(ctx context.Context) error {
	feature, _, _ := strings.Cut(x.method, "/")
	if !protocol.IsStateless(x.version) ||
		feature != "prompts" && feature != "resources" && feature != "completion" && x.method != "tools/list" {
		return nil
	}
	s, ok := x.req.GetSession().(*mcp.ServerSession)
	if !ok {
		return nil
	}
	result, err := x.next(ctx, "server/discover",
		&mcp.ServerRequest[*mcp.DiscoverParams]{Session: s, Params: &mcp.DiscoverParams{}, Extra: x.req.GetExtra()})
	d, ok := result.(*mcp.DiscoverResult)
	if err != nil || !ok || d.Capabilities == nil {
		return nil // the features are unknown
	}
	has := map[string]bool{
		"prompts": d.Capabilities.Prompts != nil, "resources": d.Capabilities.Resources != nil,
		"completion": d.Capabilities.Completions != nil, "tools": d.Capabilities.Tools != nil,
	}
	if has[feature] {
		return nil
	}
	x.outcome = mcpresource.OutcomeUnknownMethod
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "This server has no " + feature + "."}
}
