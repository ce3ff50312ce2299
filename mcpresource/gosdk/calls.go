package gosdk

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// report reports the outcome of a request to the audit of the guard, see Config.Calls and
// Config.CallArguments. The guard itself would only know the HTTP status, and nothing about stdio.
func (x *exchange) report(ctx context.Context, began time.Time, result mcp.Result, err error) {
	if x.caller == nil { // the guard reports public methods itself
		return
	}
	e := mcpresource.CallEvent{
		Time: began, Duration: time.Since(began), Principal: x.caller, Method: x.method, Name: x.ops[0].Name,
		Arguments: x.ops[0].Arguments, Outcome: x.outcome, Err: err,
	}
	if e.Outcome == "" {
		e.Outcome = outcome(result, err)
	}
	if err != nil && ctx.Err() != nil && x.stopping() {
		e.Outcome = mcpresource.OutcomeStopped
	}
	if e.Err != nil && e.Outcome == mcpresource.OutcomeInvalidInput && x.method == "tools/call" {
		e.Err = errInput // validation errors quote the arguments
	}
	x.guard.Report(ctx, e)
}

var errInput = errors.New("gosdk: the arguments do not fit the schema of the tool")

func outcome(result mcp.Result, err error) mcpresource.Outcome {
	if err != nil {
		return mcpresource.OutcomeError
	}
	needs, _ := result.(interface{ NeedsInput() bool })
	tool, _ := result.(*mcp.CallToolResult)
	switch {
	case needs != nil && needs.NeedsInput():
		return mcpresource.OutcomeInputRequired
	case tool != nil && tool.IsError:
		return mcpresource.OutcomeToolError
	}
	return mcpresource.OutcomeOK
}

// callTool runs a tool within the limits of Options.
func (x *exchange) callTool(ctx context.Context, call *mcp.CallToolRequest) (mcp.Result, error) {
	leave, ok := x.running.enter(x.caller.Person(), x.o.MaxCalls)
	if !ok {
		x.outcome = mcpresource.OutcomeLimited
		return nil, refusalOf("Too many calls of yours are running: wait for one to end.", "error", "limited")
	}
	limit, own := x.o.ToolTimeouts[call.Params.Name]
	if !own {
		limit = x.o.ToolTimeout
	}
	plan, err := x.planTask(call)
	if err != nil {
		leave()
		return nil, err
	}
	handed := false
	defer func() {
		if !handed {
			leave()
		}
	}()
	if !x.o.UncheckedInput {
		if bad, err := x.checkInput(ctx, call); err != nil {
			return nil, err
		} else if bad != nil && plan.as && x.dialect() == coreTasks {
			// the client expects a task
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: bad.GetError().Error()}
		} else if bad != nil {
			return bad, nil
		}
	}
	if plan.as {
		if own {
			plan.limit = limit
		}
		handed = true
		return x.callAsTask(ctx, plan, limit, leave)
	}
	var result mcp.Result
	if limit <= 0 {
		result, err = x.handle(ctx)
	} else {
		handed = true
		result, err = x.timed(ctx, limit, leave)
	}
	if err != nil {
		return nil, err
	}
	return result, x.checkOutput(ctx, call, result)
}

var errTimeout = errors.New("gosdk: the tool took too long")

// timed answers after the limit even if the tool ignores its context. Such a tool continues, and
// counts as running.
func (x *exchange) timed(ctx context.Context, limit time.Duration, leave func()) (mcp.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	type answer struct {
		result mcp.Result
		err    error
		panics bool
	}
	done := make(chan answer, 1)
	go func() {
		defer cancel()
		defer leave()
		result, err, panics := x.protected(ctx, x.handle)
		done <- answer{result, err, panics}
	}()
	late := ctx.Done()
	for {
		select {
		case a := <-done:
			if a.panics {
				x.outcome = mcpresource.OutcomePanic
			}
			return a.result, a.err
		case <-late:
			if context.Cause(ctx) == errTimeout {
				x.outcome = mcpresource.OutcomeTimeout
				return tookTooLong(limit), nil
			}
			late = nil // cancelled by the client, or just finished: the tool's result counts
		}
	}
}

func tookTooLong(limit time.Duration) *mcp.CallToolResult {
	slow := &mcp.CallToolResult{}
	slow.SetError(fmt.Errorf("the tool was stopped: it took longer than %v", limit))
	return slow
}

func (x *exchange) handle(ctx context.Context) (mcp.Result, error) {
	call := func() (mcp.Result, error) { return x.next(ctx, x.method, x.req) }
	result, err := call()
	return x.interact(ctx, result, err, call)
}

// survive calls protected for the goroutine of the exchange.
func (x *exchange) survive(ctx context.Context, do func(context.Context) (mcp.Result, error)) (mcp.Result, error) {
	result, err, panics := x.protected(ctx, do)
	if panics {
		x.outcome = mcpresource.OutcomePanic
	}
	return result, err
}

// protected recovers from a panic in a handler or policy, which would otherwise end the process:
// the SDK runs them in goroutines that net/http does not protect.
func (x *exchange) protected(
	ctx context.Context, do func(context.Context) (mcp.Result, error),
) (result mcp.Result, err error, panics bool) {
	defer func() {
		if p := recover(); p != nil {
			x.o.Logger.ErrorContext(ctx, "a handler panicked", "method", x.method, "panic", p, "stack",
				string(debug.Stack()))
			result, err, panics = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "Internal error."}, true
		}
	}()
	result, err = do(ctx)
	return result, err, false
}

// running counts the running calls of each user.
type running struct {
	mu sync.Mutex // guards n
	n  map[string]int
}

func newRunning() *running { return &running{n: map[string]int{}} }

func (r *running) enter(caller string, most int) (leave func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if most >= 0 && r.n[caller] >= most {
		return nil, false
	}
	r.n[caller]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.n[caller]--; r.n[caller] == 0 {
			delete(r.n, caller)
		}
	}, true
}
