package gosdk

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/internal/strictjson"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// checkInput checks the arguments of a call against the schema of its tool. The SDK only does that
// for tools added with mcp.AddTool, which cannot be detected here. Up to 2025-06-18, invalid
// arguments are a protocol error. Since then they are a result, which the model can learn from
// (SEP-1303, RS-77, RS-192).
func (x *exchange) checkInput(ctx context.Context, call *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	x.tool = x.find(ctx, call)
	tool := x.tool
	if tool == nil {
		return nil, nil // the SDK reports the unknown tool
	}
	schema, err := x.schemas.of(tool, tool.InputSchema)
	if err != nil {
		x.outcome = mcpresource.OutcomeError
		x.o.Logger.ErrorContext(ctx, "the input schema of a tool cannot be used", "tool", tool.Name, "error", err)
		return nil, &jsonrpc.Error{
			Code: jsonrpc.CodeInternalError,
			Message: fmt.Sprintf(
				"The input schema of %q cannot be used: it has to be JSON Schema 2020-12 without references to elsewhere.",
				tool.Name,
			),
		}
	}
	err = validate(schema, call.Params.Arguments)
	if err == nil {
		return nil, nil
	}
	x.outcome = mcpresource.OutcomeInvalidInput
	if x.version <= protocol.Rev20250618 {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "validating \"arguments\": " + err.Error()}
	}
	bad := &mcp.CallToolResult{}
	bad.SetError(fmt.Errorf("validating \"arguments\": %w", err))
	return bad, nil
}

// validate treats missing arguments and defaults like the SDK.
func validate(schema *jsonschema.Resolved, raw json.RawMessage) error {
	arguments := map[string]any{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &arguments); err != nil {
			return fmt.Errorf("they have to be an object")
		}
	}
	if arguments == nil { // null
		arguments = map[string]any{}
	}
	if len(raw) > 0 {
		if err := unambiguous(raw); err != nil {
			return err
		}
	}
	var v any = arguments
	if err := schema.ApplyDefaults(&v); err != nil {
		return err
	}
	return schema.Validate(v)
}

// maxDepth is the maximum nesting of arguments. The guard permits no deeper messages.
const maxDepth = 200

// unambiguous returns an error for arguments in which an object has a repeated key. The tool might
// see the first value, or a mix of both.
func unambiguous(raw json.RawMessage) error {
	return strictjson.Check(raw, strictjson.Limits{Depth: maxDepth, Names: strictjson.Exact})
}

// find returns the tool of a call. It requests the server's tool list, because the server has no
// method for one tool. The list is not cached: tools may be replaced at any time.
func (x *exchange) find(ctx context.Context, call *mcp.CallToolRequest) *mcp.Tool {
	for cursor := ""; ; {
		result, err := x.next(ctx, "tools/list",
			&mcp.ListToolsRequest{
				Session: call.Session, Params: &mcp.ListToolsParams{Cursor: cursor}, Extra: call.Extra,
			})
		list, ok := result.(*mcp.ListToolsResult)
		if err != nil || !ok {
			return nil
		}
		for _, tool := range list.Tools {
			if tool.Name == call.Params.Name {
				return tool
			}
		}
		if cursor = list.NextCursor; cursor == "" {
			return nil
		}
	}
}

// maxSchemas is the maximum number of cached schemas, because servers may replace tools.
const maxSchemas = 1000

// schemas caches the resolved schemas of tools, for arguments or results. A tool must not be
// modified after it was added.
type schemas struct {
	mu     sync.Mutex // guards byTool
	byTool map[*mcp.Tool]*readySchema
}

type readySchema struct {
	schema *jsonschema.Resolved
	err    error
}

func newSchemas() *schemas { return &schemas{byTool: map[*mcp.Tool]*readySchema{}} }

func (s *schemas) of(tool *mcp.Tool, schema any) (*jsonschema.Resolved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ready := s.byTool[tool]; ready != nil {
		return ready.schema, ready.err
	}
	if len(s.byTool) >= maxSchemas {
		clear(s.byTool)
	}
	ready := &readySchema{}
	ready.schema, ready.err = resolve(schema)
	s.byTool[tool] = ready
	return ready.schema, ready.err
}

// resolve resolves a copy of the schema. It fetches nothing: an external reference is an error
// (RS-172).
func resolve(schema any) (*jsonschema.Resolved, error) {
	b, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var own jsonschema.Schema
	if err := json.Unmarshal(b, &own); err != nil {
		return nil, err
	}
	return own.Resolve(nil)
}
