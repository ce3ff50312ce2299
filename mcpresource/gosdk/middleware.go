package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// exchange is the state of one request in the adapter.
type exchange struct {
	*Adapter
	next    mcp.MethodHandler
	method  string
	req     mcp.Request
	caller  *mcpresource.Principal // nil for a public method
	version string                 // the revision of the request
	ops     []mcpresource.Operation
	tool    *mcp.Tool           // the called tool, nil until it was looked up
	sealed  string              // the requestState as received, or ""
	outcome mcpresource.Outcome // "" until decided
}

// receive checks the scope of every call again, as decoded by the SDK, and filters lists for the
// caller. It rejects requests without a caller unless the policy makes the method public. If a
// tool, prompt or resource fails because the user must first visit a page
// (mcpresource.InteractionRequiredError), the client asks the user.
func (a *Adapter) receive(next mcp.MethodHandler) mcp.MethodHandler {
	a.inner = next
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		began := time.Now()
		x := &exchange{Adapter: a, next: next, method: method, req: req, ops: operations(method, req)}
		x.caller, _ = Principal(req)
		x.version = a.version(req)
		// If this request has no caller, the context must not have one either: the SDK may have
		// added the caller that opened the session.
		ctx = mcpresource.NewContext(ctx, x.caller)
		mcpresource.TakeCalls(ctx)
		result, err := x.survive(ctx, x.opening(x.serve))
		if err != nil {
			result, err = nil, x.coded(err)
		}
		x.report(ctx, began, result, err)
		return x.asOf(result), err
	}
}

// opening tracks the opening of a session.
func (x *exchange) opening(serve func(context.Context) (mcp.Result, error)) func(context.Context) (mcp.Result, error) {
	s, ok := x.req.GetSession().(*mcp.ServerSession)
	if !ok || x.method != "initialize" && x.method != "notifications/initialized" {
		return serve
	}
	return func(ctx context.Context) (result mcp.Result, err error) {
		if x.method == "initialize" {
			done := x.openings.begin(s)
			defer func() { done(err != nil) }()
		}
		result, err = serve(ctx)
		if x.method == "notifications/initialized" && err == nil {
			x.openings.complete(s)
		}
		return result, err
	}
}

// serve runs all checks on the request and all filters on the result.
func (x *exchange) serve(ctx context.Context) (mcp.Result, error) {
	if err := x.admit(ctx); err != nil {
		return nil, err
	}
	if held(x.req) { // the guard has counted HTTP requests already
		release, err := x.guard.Admit(ctx, x.ops[0])
		if err != nil {
			x.outcome = mcpresource.OutcomeLimited
			return nil, refusalOf("Too many requests.", "error", "limited")
		}
		defer release()
	}
	if err := x.openState(); err != nil {
		return nil, err
	}
	ctx = x.withOnce(ctx)
	if x.method == "subscriptions/listen" {
		if x.tasks != nil && carried(x.req).listens {
			if err := x.undeclared(); err != nil {
				return nil, err
			}
		}
		var returned func()
		ctx, returned = x.untilClosed(ctx)
		defer returned()
	}
	var result mcp.Result
	var err error
	if call, ok := x.req.(*mcp.CallToolRequest); ok && call.Params != nil {
		result, err = x.callTool(ctx, call)
	} else if about, ok := x.req.GetParams().(*taskParams); ok && x.tasks != nil {
		result, err = x.serveTask(ctx, about)
	} else {
		result, err = x.handle(ctx)
	}
	if err != nil || result == nil {
		return nil, err
	}
	if opened, ok := result.(*mcp.InitializeResult); ok {
		x.sessions.negotiated(x.req.GetSession().ID(), opened.ProtocolVersion)
	}
	if !x.o.ShowAll {
		filter(ctx, x.guard, result)
	}
	private(result)
	x.remark(ctx, result)
	if err := x.declared(result); err != nil {
		return nil, err
	}
	if result, err = x.clean(result); err != nil {
		return nil, err
	}
	return x.announce(x.sealState(result)), nil
}

// admit runs all checks before the handler, for retries as for first calls (RS-185).
func (x *exchange) admit(ctx context.Context) error {
	judge := x.guard.Authorize
	if held(x.req) {
		judge = x.guard.Recheck
	}
	for _, op := range x.ops {
		if err := judge(ctx, op); err != nil {
			return x.refused(ctx, op, err)
		}
	}
	if p, ok := x.req.GetParams().(*mcp.InitializeParams); ok && p != nil {
		if refused := x.opensNone(p.ProtocolVersion); refused != nil {
			return refused
		}
	}
	return x.advertised(ctx)
}

func (x *exchange) refused(ctx context.Context, op mcpresource.Operation, err error) error {
	switch {
	case errors.Is(err, mcpresource.ErrUnavailable):
		x.outcome = mcpresource.OutcomeUnavailable
	case errors.Is(err, mcpresource.ErrInvalidToken), errors.Is(err, mcpresource.ErrNoCaller):
		x.outcome = mcpresource.OutcomeInvalidToken
	case errors.Is(err, mcpresource.ErrForbidden):
		x.outcome = mcpresource.OutcomeForbidden
	case errors.As(err, new(*mcpresource.AuthenticationError)):
		x.outcome = mcpresource.OutcomeInsufficientAuthentication
	case errors.As(err, new(*mcpresource.ClearanceError)):
		x.outcome = mcpresource.OutcomeClearanceRefused
	case errors.Is(err, mcpresource.ErrResourceURI):
		x.outcome = mcpresource.OutcomeInvalidInput
	default:
		x.outcome = mcpresource.OutcomeInsufficientScope
	}
	out := forbidden(err)
	return x.referred(out, x.guard.Refer(ctx, op, x.outcome, out.Message, err))
}

// referred adds the reference (OB-02) and the data of SEP-2643 (RS-214) to an error.
func (x *exchange) referred(e *jsonrpc.Error, reference string) error {
	data, denial := map[string]any{}, x.guard.Denial(x.outcome, reference)
	if reference == "" && denial == nil || len(e.Data) > 0 && json.Unmarshal(e.Data, &data) != nil {
		return e
	}
	if reference != "" {
		data["reference"], e.Message = reference, e.Message+" Reference: "+reference+"."
	}
	if denial != nil {
		data["authorization"] = denial
	}
	e.Data, _ = json.Marshal(data) // strings always encode
	return e
}

// version returns the revision of a request. It is stated in the request, else negotiated by its
// session, else known to the SDK, which uses the client's requested version.
func (a *Adapter) version(req mcp.Request) string {
	if own := metaVersion(req.GetParams()); protocol.IsStateless(own) {
		return own
	}
	if s := req.GetSession(); s != nil {
		if v := a.sessions.version(s.ID()); v != "" {
			return v
		}
	}
	v := ""
	if r, ok := req.(interface{ ProtocolVersion() string }); ok {
		v = r.ProtocolVersion()
	}
	if v == "" || protocol.IsStateless(v) || !slices.Contains(mcp.SupportedProtocolVersions(), v) {
		return protocol.Rev20251125 // as initialize then answers
	}
	return v
}

func metaVersion(p mcp.Params) string {
	if v := reflect.ValueOf(p); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return ""
	}
	v, _ := p.GetMeta()[mcp.MetaKeyProtocolVersion].(string)
	return v
}
