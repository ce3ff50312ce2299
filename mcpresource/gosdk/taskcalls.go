package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

const (
	maxTaskID  = 256
	taskPage   = 50
	cursorLife = time.Hour
)

// has reports whether the revision has a method.
func (d taskDialect) has(method string) bool {
	switch method {
	case "tasks/get", "tasks/cancel":
		return d != noTasks
	case "tasks/list", "tasks/result":
		return d == coreTasks
	case "tasks/update":
		return d == extendedTasks
	}
	return false
}

// serveTask answers requests about tasks. For a missing, foreign or expired task, the response is
// the same and computed in the same way (RS-132, RS-215).
func (x *exchange) serveTask(ctx context.Context, p *taskParams) (mcp.Result, error) {
	d := x.dialect()
	switch {
	case !d.has(x.method):
		x.outcome = mcpresource.OutcomeUnknownMethod
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found."}
	case d == extendedTasks && RequireExtension(x.req, tasksExtension) != nil:
		return nil, x.undeclared()
	case x.caller == nil: // the method is public, but tasks belong to callers
		x.outcome = mcpresource.OutcomeInvalidToken
		return nil, forbidden(mcpresource.ErrNoCaller)
	case p == nil:
		p = &taskParams{}
	}
	if x.method == "tasks/list" {
		return x.listTasks(ctx, p.Cursor)
	}
	t, s, err := x.own(ctx, p.TaskID)
	if err != nil {
		return nil, err
	}
	if j := x.tasks.job(t.ID); j != nil {
		j.vouched(x.caller)
	}
	switch x.method {
	case "tasks/result":
		return x.taskOutcome(ctx, t, s)
	case "tasks/update":
		return x.updateTask(ctx, t, p)
	case "tasks/cancel":
		return x.cancelTask(ctx, t)
	}
	members := x.tasks.view(d, t, s)
	if d == extendedTasks {
		members = detail(members, s)
	}
	return d.result("complete", members), nil
}

// own returns a task of the caller, who must be allowed to call its tool (RS-186).
func (x *exchange) own(ctx context.Context, id string) (mcpresource.Task, *taskState, error) {
	if id == "" || len(id) > maxTaskID {
		return mcpresource.Task{}, nil, x.noTask(ctx, mcpresource.ErrNoTask)
	}
	t, s, err := x.tasks.read(ctx, x.tasks.owner(x.caller), id)
	if err != nil {
		return mcpresource.Task{}, nil, x.noTask(ctx, err)
	}
	if err := x.judgeTask(ctx, s); err != nil {
		return mcpresource.Task{}, nil, err
	}
	return t, s, nil
}

func (x *exchange) judgeTask(ctx context.Context, s *taskState) error {
	judge := x.guard.Authorize
	if held(x.req) {
		judge = x.guard.Recheck
	}
	op := mcpresource.Operation{Method: "tools/call", Name: s.Tool, Arguments: s.Arguments}
	if err := judge(mcpresource.Begun(ctx), op); err != nil {
		return x.refused(ctx, op, err)
	}
	return nil
}

// noTask converts an error of a store for the client.
func (x *exchange) noTask(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, mcpresource.ErrNoTask):
		x.outcome = mcpresource.OutcomeInvalidInput
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Task not found."}
	case errors.Is(err, mcpresource.ErrTasksFull):
		x.outcome = mcpresource.OutcomeLimited
		return refusalOf("Too many tasks are kept: wait until earlier ones have expired.", "error", "limited")
	}
	x.outcome = mcpresource.OutcomeUnavailable
	x.o.Logger.ErrorContext(ctx, "the store of tasks failed", "error", err)
	return refusalOf("This cannot be decided now: try again.", "error", "temporarily_unavailable")
}

// listTasks returns the tasks of the caller whose tools the caller may use.
func (x *exchange) listTasks(ctx context.Context, cursor string) (mcp.Result, error) {
	after, err := x.openCursor(cursor)
	if err != nil {
		return nil, err
	}
	owner := x.tasks.owner(x.caller)
	list, err := x.tasks.o.Store.Tasks(ctx, owner, after, taskPage+1)
	if err != nil {
		return nil, x.noTask(ctx, err)
	}
	members := map[string]any{}
	if len(list) > taskPage {
		list = list[:taskPage]
		last := list[taskPage-1]
		place := strconv.FormatInt(last.Created.UnixMilli(), 10) + " " + last.ID
		members["nextCursor"] = x.o.State.Seal(x.caller, x.method, []byte(place), cursorLife)
	}
	shown := []map[string]any{}
	for _, t := range list {
		t, s, err := x.tasks.read(ctx, owner, t.ID)
		if errors.Is(err, mcpresource.ErrNoTask) {
			continue // it just expired
		}
		if err != nil {
			return nil, x.noTask(ctx, err)
		}
		op := mcpresource.Operation{Method: "tools/call", Name: s.Tool, Arguments: s.Arguments}
		if x.guard.Authorize(mcpresource.Begun(ctx), op) == nil {
			shown = append(shown, x.tasks.view(coreTasks, t, s))
		}
	}
	members["tasks"] = shown
	return coreTasks.result("", members), nil
}

// openCursor returns the task before a page.
func (x *exchange) openCursor(cursor string) (mcpresource.Task, error) {
	if cursor == "" {
		return mcpresource.Task{}, nil
	}
	place, err := x.o.State.Open(x.caller, x.method, cursor)
	at, id, ok := strings.Cut(string(place), " ")
	ms, bad := strconv.ParseInt(at, 10, 64)
	if err != nil || !ok || bad != nil {
		x.outcome = mcpresource.OutcomeInvalidInput
		return mcpresource.Task{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "The cursor is not valid: start again without it."}
	}
	return mcpresource.Task{ID: id, Created: time.UnixMilli(ms)}, nil
}

// cancelTask cancels a task. In 2025-11-25 it returns the task, or an error if the task has ended.
// Since then a cancellation is only a request, which is acknowledged.
func (x *exchange) cancelTask(ctx context.Context, t mcpresource.Task) (mcp.Result, error) {
	late := ""
	t, s, err := x.tasks.update(ctx, t.Owner, t.ID, func(s *taskState) bool {
		if s.ended() {
			late = s.Status
			if s.ToolError {
				late = taskFailed
			}
			return false
		}
		s.cancel("The task was cancelled by request.")
		late = ""
		return true
	})
	if err != nil {
		return nil, x.noTask(ctx, err)
	}
	if j := x.tasks.job(t.ID); j != nil && late == "" {
		j.cancel(errTaskCancelled)
	}
	switch d := x.dialect(); {
	case d == extendedTasks:
		return d.result("complete", map[string]any{}), nil
	case late != "":
		x.outcome = mcpresource.OutcomeInvalidInput
		return nil, &jsonrpc.Error{
			Code:    jsonrpc.CodeInvalidParams,
			Message: "The task cannot be cancelled: its status is " + late + " already.",
		}
	default:
		return d.result("", x.tasks.view(d, t, s)), nil
	}
}

// updateTask accepts answers to the questions of a task. It ignores answers to other questions, and
// later answers to the same question.
func (x *exchange) updateTask(ctx context.Context, t mcpresource.Task, p *taskParams) (mcp.Result, error) {
	var wrong error
	_, _, err := x.tasks.update(ctx, t.Owner, t.ID, func(s *taskState) bool {
		answers := map[string]json.RawMessage{}
		for key := range s.Asks {
			if answer, ok := p.InputResponses[key]; ok {
				answers[key] = answer
			}
		}
		if _, wrong = decodeAnswers(answers); wrong != nil || len(answers) == 0 {
			return false
		}
		if s.Answers == nil {
			s.Answers = map[string]json.RawMessage{}
		}
		for key := range answers {
			s.Answers[key] = answers[key]
			delete(s.Asks, key)
		}
		if len(s.Asks) == 0 {
			s.Status = taskWorking
		}
		return true
	})
	switch {
	case wrong != nil:
		x.outcome = mcpresource.OutcomeInvalidInput
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "inputResponses: " + wrong.Error() + "."}
	case err != nil:
		return nil, x.noTask(ctx, err)
	}
	return extendedTasks.result("complete", map[string]any{}), nil
}

// taskOutcome waits for the end of a task, as 2025-11-25 requires, and forwards the tool's
// questions to the client meanwhile.
func (x *exchange) taskOutcome(ctx context.Context, t mcpresource.Task, s *taskState) (mcp.Result, error) {
	leave, ok := x.running.enter(x.caller.Person(), x.o.MaxCalls)
	if !ok {
		x.outcome = mcpresource.OutcomeLimited
		return nil, refusalOf("Too many calls of yours are running: wait for one to end.", "error", "limited")
	}
	defer leave()
	tick := time.NewTicker(x.tasks.o.PollInterval)
	defer tick.Stop()
	for !s.ended() {
		j := x.tasks.job(t.ID)
		var woken <-chan struct{}
		if j != nil {
			woken = j.woken() // before reading, so that no change is missed
			if q := j.nextQuestion(); q != nil {
				j.put(ctx, x, q)
				continue
			}
		}
		var err error
		if t, s, err = x.tasks.read(ctx, t.Owner, t.ID); err != nil {
			return nil, x.noTask(ctx, err)
		}
		if s.ended() {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		case <-woken:
		}
	}
	if err := x.judgeTask(ctx, s); err != nil { // the first check may have been long ago
		return nil, err
	}
	return x.ended(t, s)
}

// ended returns the result of a task that has ended: the tool's result or error.
func (x *exchange) ended(t mcpresource.Task, s *taskState) (mcp.Result, error) {
	meta := mcp.Meta{relatedTask: map[string]any{"taskId": t.ID}}
	switch s.Status {
	case taskFailed:
		return nil, &jsonrpc.Error{Code: s.Error.Code, Message: s.Error.Message, Data: s.Error.Data}
	case taskCancelled:
		return nil, refusalOf(s.Message, "error", "cancelled")
	}
	var r mcp.CallToolResult
	if err := json.Unmarshal(s.Result, &r); err != nil {
		return nil, err
	}
	for name, value := range r.Meta {
		if name != relatedTask {
			meta[name] = value
		}
	}
	r.Meta = meta
	return &r, nil
}

func decodeAnswers(raw map[string]json.RawMessage) (mcp.InputResponseMap, error) {
	b, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	var out mcp.InputResponseMap
	return out, json.Unmarshal(b, &out)
}
