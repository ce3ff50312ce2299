package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
)

// tasks configures the tools that the suite calls as tasks. The SDK does not support tasks, so its
// fixture lacks these tools. The suite determines their names and behavior.
func tasks() *gosdk.Tasks {
	return &gosdk.Tasks{
		PollInterval: 100 * time.Millisecond,
		Tools: map[string]gosdk.TaskTool{
			"slow_compute":        {},
			"confirm_delete":      {},
			"multi_input":         {},
			"protocol_error_job":  {},
			"failing_job":         {Required: true},
			"test_tool_with_task": {Required: true, Late: true},
		},
	}
}

var anyObject = json.RawMessage(`{"type":"object"}`)

// addTools adds the tools of the tasks scenarios to the fixture.
func addTools(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{Name: "greet", Description: "Greets by name."},
		func(_ context.Context, _ *mcp.CallToolRequest, in struct {
			Name string `json:"name"`
		}) (*mcp.CallToolResult, any, error) {
			return text("Hello, " + in.Name + "!"), nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "slow_compute", Description: "Takes its time."},
		func(ctx context.Context, _ *mcp.CallToolRequest, in struct {
			Seconds float64 `json:"seconds"`
			Label   string  `json:"label,omitempty"`
		}) (*mcp.CallToolResult, any, error) {
			select {
			case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
				return text("computed " + in.Label), nil, nil
			case <-ctx.Done():
				return nil, nil, context.Cause(ctx)
			}
		})
	for name, h := range map[string]mcp.ToolHandler{
		"failing_job":         func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return failed(), nil },
		"protocol_error_job":  breaks,
		"confirm_delete":      asks("confirm"),
		"multi_input":         asks("name", "confirm"),
		"test_tool_with_task": asksFirst,
	} {
		s.AddTool(&mcp.Tool{Name: name, Description: "For the scenarios of tasks.", InputSchema: anyObject}, h)
	}
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func failed() *mcp.CallToolResult {
	r := &mcp.CallToolResult{}
	r.SetError(errors.New("the job failed"))
	return r
}

func breaks(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the job broke"}
}

func question(about string) *mcp.ElicitParams {
	schema := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)
	return &mcp.ElicitParams{Message: about + "?", RequestedSchema: schema}
}

// asks returns a tool that asks all questions at once, as a task.
func asks(about ...string) mcp.ToolHandler {
	return func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if len(r.Params.InputResponses) == len(about) {
			return text("confirmed"), nil
		}
		questions := mcp.InputRequestMap{}
		for _, a := range about {
			questions[a] = question(a)
		}
		return &mcp.CallToolResult{InputRequests: questions}, nil
	}
}

// asksFirst asks before it becomes a task.
func asksFirst(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a, ok := r.Params.InputResponses["user_name"].(*mcp.ElicitResult)
	if !ok {
		return &mcp.CallToolResult{
			InputRequests: mcp.InputRequestMap{"user_name": question("your name")}, RequestState: "asked"}, nil
	}
	if err := gosdk.Detach(ctx); err != nil {
		return nil, err
	}
	return text(fmt.Sprint("Hello, ", a.Content["name"])), nil
}
