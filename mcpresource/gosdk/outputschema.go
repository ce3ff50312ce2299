package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// checkOutput rejects a result that does not match the output schema of its tool, because clients
// rely on it (MCP from 2025-06-18, "Tools", RS-126). The SDK checks this only for tools added with
// mcp.AddTool. Failures and questions have no structured content, and clients of older revisions
// get no schema.
func (x *exchange) checkOutput(ctx context.Context, call *mcp.CallToolRequest, result mcp.Result) error {
	r, ok := result.(*mcp.CallToolResult)
	if !ok || r == nil || r.IsError || r.NeedsInput() || x.o.RawOutput || x.version < protocol.Rev20250618 {
		return nil
	}
	if x.tool == nil {
		x.tool = x.find(ctx, call)
	}
	if x.tool == nil || x.tool.OutputSchema == nil {
		return nil
	}
	schema, err := x.outputs.of(x.tool, x.tool.OutputSchema)
	if err == nil {
		err = fits(schema, r.StructuredContent)
	}
	if err == nil {
		return nil
	}
	x.outcome = mcpresource.OutcomeError
	x.o.Logger.ErrorContext(ctx, "a result does not fit the output schema of its tool", "tool", x.tool.Name, "error", err)
	return &jsonrpc.Error{
		Code:    jsonrpc.CodeInternalError,
		Message: fmt.Sprintf("The result of %q does not fit its output schema.", x.tool.Name),
	}
}

func fits(schema *jsonschema.Resolved, structured any) error {
	if structured == nil {
		return errors.New("it has no structured content")
	}
	raw, err := json.Marshal(structured)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	return schema.Validate(v)
}
