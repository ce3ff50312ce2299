package adminmcp

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/internal/strictjson"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
)

// isTool reports whether an operation is a tool. Operations that show or take a secret are not.
func isTool(v admin.Verb) bool { return !v.Spec().Secret && !admin.TakesSecret(v) }

// toolName returns the name of an operation as one word: user_set_role.
func toolName(s admin.Spec) string { return strings.NewReplacer(" ", "_", "-", "_").Replace(s.Name) }

// allowName is the tool that an assistant calls to request admin:write. The guard does the work:
// without the scope it refuses the call, and tells the client what to request from the user.
const allowName = "allow_changes"

func (s *Server) addTools(to *mcp.Server) {
	for _, v := range admin.All() {
		if isTool(v) {
			to.AddTool(s.toolOf(v), s.operation(v))
		}
	}
	to.AddTool(whyTool(), s.why)
	to.AddTool(allowTool(), s.allow)
}

// toolOf describes an operation. The description contains no untrusted text.
func (s *Server) toolOf(v admin.Verb) *mcp.Tool {
	spec := v.Spec()
	text := spec.Summary + "."
	if spec.Details != "" {
		text += " " + strings.Join(strings.Fields(spec.Details), " ")
	}
	if spec.Changes() {
		text += " Changes the server: the person has to have signed in a short while ago."
	}
	out := api.Schema(v.Output(), false)
	proposal := api.Schema(reflect.TypeFor[admin.Proposal](), false)
	switch always, sometimes := s.c.Service.NeedsTwo(spec); {
	case always:
		text += " Another administrator has to accept it: the result is the proposal."
		out = proposal
	case sometimes:
		text += " What touches an account with a role, or gives rights, another administrator has to accept: " +
			"the result is then the proposal."
		out = either(out, proposal)
	}
	out["description"] = untrusted
	return &mcp.Tool{
		Name: toolName(spec), Title: spec.Summary, Description: text,
		InputSchema: api.Schema(v.Input(), true), OutputSchema: out, Annotations: hints(spec),
	}
}

// either returns the schema of an object that matches one of two schemas. References in them start
// at its root.
func either(a, b map[string]any) map[string]any {
	defs := map[string]any{}
	for _, s := range []map[string]any{a, b} {
		own := reflect.ValueOf(s["$defs"])
		if own.Kind() == reflect.Map {
			for _, name := range own.MapKeys() {
				defs[name.String()] = own.MapIndex(name).Interface()
			}
		}
		delete(s, "$defs")
	}
	return map[string]any{"type": "object", "anyOf": []any{a, b}, "$defs": defs}
}

// hints tell a client when to ask the user first.
func hints(s admin.Spec) *mcp.ToolAnnotations {
	destructive, open := s.Changes() && (s.Fresh || s.Method == "DELETE"), false
	return &mcp.ToolAnnotations{
		Title: s.Summary, ReadOnlyHint: !s.Changes(), DestructiveHint: &destructive,
		IdempotentHint: s.Method != "POST", OpenWorldHint: &open,
	}
}

// operation runs an operation for the caller of a request.
func (s *Server) operation(v admin.Verb) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		actor, _, err := s.caller(ctx)
		if err != nil {
			return s.failed(ctx, err)
		}
		in, out := reflect.New(v.Input()), reflect.New(v.Output())
		if err := read(r.Params.Arguments, in.Interface()); err != nil {
			return s.failed(ctx, err)
		}
		err = s.c.Service.As(actor).Call(ctx, v, in.Interface(), out.Interface())
		if proposed := (*admin.ProposedError)(nil); errors.As(err, &proposed) {
			return resultOf("Proposed: another administrator has to accept it.", proposed.Proposal)
		}
		if err != nil {
			return s.failed(ctx, err)
		}
		return resultOf("Done.", out.Interface())
	}
}

var errArguments = errors.New("adminmcp: the arguments do not fit")

// read parses arguments that match the schema of the tool.
func read(arguments json.RawMessage, in any) error {
	if len(arguments) == 0 {
		return nil
	}
	if err := strictjson.Decode(arguments, in, strictjson.Limits{}); err != nil {
		return errors.Join(errArguments, err)
	}
	return nil
}

// Allowed is the output of the tool that requests admin:write.
type Allowed struct {
	Minutes int `json:"minutes" jsonschema:"how long changes are allowed after the sign-in, in minutes"`
}

func allowTool() *mcp.Tool {
	no := false
	return &mcp.Tool{
		Name: allowName, Title: "Ask the person to allow changes",
		Description: "Call this before a change that the person wants and no listed tool makes: their application then " +
			"has them sign in and allow changes for a few minutes. List the tools again afterwards. Changes nothing itself.",
		InputSchema:  api.Schema(reflect.TypeFor[admin.None](), true),
		OutputSchema: api.Schema(reflect.TypeFor[Allowed](), false),
		Annotations: &mcp.ToolAnnotations{
			Title: "Ask the person to allow changes", DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &no,
		},
	}
}

// allow runs only with admin:write.
func (s *Server) allow(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return resultOf("Done.", &Allowed{int(s.c.Service.FreshFor.Minutes())})
}

// failed returns the error of a tool. Internal errors are only logged.
func (s *Server) failed(ctx context.Context, err error) (*mcp.CallToolResult, error) {
	var stale *admin.StaleError
	switch {
	case errors.As(err, &stale): // became stale after the guard's check
		return nil, gosdk.Refusal(&mcpresource.AuthenticationError{
			Required: mcpresource.Authentication{MaxAge: stale.MaxAge},
		})
	case errors.Is(err, api.ErrNoRole):
		return refused("The person has no role here any more.", nil), nil
	}
	for _, known := range []struct {
		err  error
		text string
	}{
		{admin.ErrForbidden, "The role of the person may not do this."},
		{admin.ErrNotFound, "There is no such thing."},
		{admin.ErrConflict, "Something stands in the way."},
		{admin.ErrInvalid, "The input cannot be used."},
		{admin.ErrUnavailable, "Nothing was done. Try again later."},
		{admin.ErrInterrupted, "The database was busy. A part may have been done: look before you try again."},
		{admin.ErrUnkept, "Something was done that is not in the audit log yet. Look before you try again."},
		{errArguments, "The arguments do not fit the schema of the tool."},
	} {
		if errors.Is(err, known.err) {
			return refused(known.text, err), nil
		}
	}
	if ctx.Err() == nil {
		s.c.Log.ErrorContext(ctx, "a tool of the admin MCP server has failed", "error", err)
	}
	return refused("The server has failed. The reason is in its log.", nil), nil
}
