package gosdk

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Reasons to end a task from outside.
var (
	errTaskCancelled = errors.New("gosdk: the task was cancelled")
	errTaskRevoked   = errors.New("gosdk: the access of the caller has ended")
	errTaskExpired   = errors.New("gosdk: the task took longer than its time to live")
	errTaskStopped   = errors.New("gosdk: the server is being stopped")
)

// job is a call that is, or may become, a task of this process.
type job struct {
	*exchange // a copy: the request is answered before the tool returns
	plan      taskPlan
	ctx       context.Context
	cancel    context.CancelCauseFunc
	over      chan struct{} // closed when the tool has returned

	begin    sync.Once
	begun    chan struct{} // closed when the call is a task
	beginErr error
	task     mcpresource.Task // set once the call is a task
	created  *taskState

	mu        sync.Mutex // guards the fields below
	caller    *mcpresource.Principal
	changed   chan struct{} // closed and replaced at each change
	questions []*question2025
	keys      map[string]bool // of questions to a client of 2026-07-28
}

type jobKey struct{}

func jobOf(ctx context.Context) *job {
	j, _ := ctx.Value(jobKey{}).(*job)
	return j
}

// Detach turns a call into a task, for tools with TaskTool.Late: the client gets its response now,
// and ctx lasts as long as the task. Call it when the rest of the work needs no answer of the user
// first. It does nothing for other calls, for example by clients without support for tasks. If it
// returns an error, there is no task, and the tool must return the error.
func Detach(ctx context.Context) error {
	j := jobOf(ctx)
	if j == nil {
		return nil
	}
	return j.detach()
}

// callAsTask answers a call once it is a task or has a result, but at the latest after limit.
func (x *exchange) callAsTask(ctx context.Context, plan taskPlan, limit time.Duration, leave func()) (mcp.Result,
	error) {
	own := *x
	j := &job{
		exchange: &own, plan: plan, over: make(chan struct{}), begun: make(chan struct{}), caller: x.caller,
		changed: make(chan struct{}), keys: map[string]bool{},
	}
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	j.cancel = cancel
	j.ctx = context.WithValue(run, jobKey{}, j)
	if !plan.late {
		if err := j.detach(); err != nil {
			cancel(err)
			leave()
			x.outcome = own.outcome
			return nil, err
		}
	}
	disconnected := context.AfterFunc(ctx, func() {
		if !j.isTask() {
			cancel(context.Cause(ctx))
		}
	})
	if limit > 0 && (plan.late || plan.limit > 0) {
		slow := time.AfterFunc(limit, func() {
			if plan.limit > 0 || !j.isTask() {
				j.stop(errTimeout)
			}
		})
		context.AfterFunc(j.ctx, func() { slow.Stop() })
	}
	type answer struct {
		result  mcp.Result
		err     error
		outcome mcpresource.Outcome
	}
	done := make(chan answer, 1)
	go func() {
		defer cancel(nil)
		defer leave()
		defer close(j.over)
		began := x.tasks.o.now()
		result, err := j.rounds()
		if j.isTask() {
			_, _ = j.survive(j.ctx, func(context.Context) (mcp.Result, error) { // it checks the tool's result
				j.finish(began, result, err)
				return nil, nil
			})
			return
		}
		done <- answer{result, err, j.outcome}
	}()
	late := j.ctx.Done()
	for {
		select {
		case <-j.begun:
			disconnected()
			x.outcome = mcpresource.OutcomeTask
			return j.createdTask(), nil
		case a := <-done:
			disconnected()
			x.outcome = a.outcome
			return a.result, a.err
		case <-late:
			if late = nil; errors.Is(context.Cause(j.ctx), errTimeout) && !j.isTask() {
				x.outcome = mcpresource.OutcomeTimeout
				return tookTooLong(limit), nil
			}
		}
	}
}

// createdTask returns the response to a call that became a task.
func (j *job) createdTask() mcp.Result {
	d := j.dialect()
	members := j.tasks.view(d, j.task, j.created)
	if d == coreTasks {
		members = map[string]any{"task": members}
	}
	return d.result("task", members)
}

func (j *job) isTask() bool {
	select {
	case <-j.begun:
		return true
	default:
		return false
	}
}

// detach stores the task before the client learns of it (RS-188).
func (j *job) detach() error {
	j.begin.Do(func() {
		if j.beginErr = j.keep(); j.beginErr == nil {
			close(j.begun)
		}
	})
	return j.beginErr
}

func (j *job) keep() error {
	k := j.tasks
	now := k.o.now().Truncate(time.Millisecond)
	s := &taskState{
		Tool: j.ops[0].Name, Arguments: j.ops[0].Arguments, Status: taskWorking, Updated: now,
		Alive: k.o.alive(now),
	}
	state, err := json.Marshal(s)
	if err != nil {
		return err
	}
	t := mcpresource.Task{
		ID: rand.Text(), Owner: k.owner(j.exchange.caller), Person: taskDigest("person", j.exchange.caller.Person()),
		Created: now, Expires: now.Add(j.plan.ttl), State: state,
	}
	if err := k.o.Store.CreateTask(j.ctx, t, k.o.MaxTasks); err != nil {
		return j.noTask(j.ctx, err)
	}
	j.task, j.created = t, s
	k.mu.Lock()
	k.jobs[t.ID] = j
	k.mu.Unlock()
	go j.watch()
	return nil
}

// record changes the state of a task that has not ended, even during cancellation.
func (j *job) record(change func(*taskState)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(j.ctx), taskWrite)
	defer cancel()
	over := false
	_, _, err := j.tasks.update(ctx, j.task.Owner, j.task.ID, func(s *taskState) bool {
		if over = s.ended(); !over {
			change(s)
		}
		return !over
	})
	if over || errors.Is(err, mcpresource.ErrNoTask) {
		return errTaskCancelled
	}
	return err
}

const taskWrite = 10 * time.Second

// finish stores the result of the task. It tries three times if the store fails. After that the
// task counts as lost once its process has sent no sign of life for a minute.
func (j *job) finish(began time.Time, result mcp.Result, err error) {
	defer j.forget()
	if !j.stopped(context.Cause(j.ctx)) {
		for range 3 {
			failed := j.record(func(s *taskState) {
				if err == nil {
					err = j.outcomeIs(s, result)
				}
				if err != nil {
					var rpc *jsonrpc.Error
					if !errors.As(j.coded(err), &rpc) {
						rpc = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "Internal error."}
					}
					s.fail(rpc)
				}
			})
			if errors.Is(failed, mcpresource.ErrTasksFull) { // no room for the result
				err = &jsonrpc.Error{
					Code:    jsonrpc.CodeInternalError,
					Message: "The result of the task could not be kept: ask for less.",
				}
				continue
			}
			if failed == nil || errors.Is(failed, errTaskCancelled) {
				break
			}
			j.o.Logger.ErrorContext(j.ctx, "the store of tasks failed", "error", failed)
		}
	}
	j.report(context.WithoutCancel(j.ctx), began, result, err)
}

// stopped reports whether a task was ended from outside, which is already recorded.
func (j *job) stopped(cause error) bool {
	for _, why := range []error{errTaskCancelled, errTaskRevoked, errTaskExpired, errTaskStopped, errTimeout} {
		if errors.Is(cause, why) {
			j.outcome = mcpresource.OutcomeEnded
			if why == errTimeout {
				j.outcome = mcpresource.OutcomeTimeout
			}
			return true
		}
	}
	return false
}

func (j *job) forget() {
	j.tasks.mu.Lock()
	delete(j.tasks.jobs, j.task.ID)
	j.tasks.mu.Unlock()
	j.wakeAll()
}

// outcomeIs stores the tool's result in the state, in the form for the client.
func (j *job) outcomeIs(s *taskState, result mcp.Result) error {
	cleaned, err := j.clean(result)
	if err != nil {
		return err
	}
	r, ok := cleaned.(*mcp.CallToolResult)
	if !ok || r == nil {
		return fmt.Errorf("gosdk: the tool returned %T", result)
	}
	// without the fields that the SDK sets for one revision
	kept := &mcp.CallToolResult{
		Meta: r.Meta, Content: r.Content, StructuredContent: r.StructuredContent, IsError: r.IsError,
	}
	raw, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	if len(raw) > j.tasks.o.MaxResult {
		j.outcome = mcpresource.OutcomeTooLarge
		large := &mcp.CallToolResult{}
		large.SetError(fmt.Errorf("the result has %d bytes, more than the %d that are kept of a task: ask for less",
			len(raw), j.tasks.o.MaxResult))
		r = large
		if raw, err = json.Marshal(large); err != nil {
			return err
		}
	}
	s.Status, s.Message, s.Asks, s.Answers = taskCompleted, "", nil, nil
	s.Result, s.ToolError = raw, r.IsError
	return nil
}

// woken returns a channel that is closed at the task's next change in this process.
func (j *job) woken() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changed
}

func (j *job) wakeAll() {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.changed)
	j.changed = make(chan struct{})
}

// end stops the tasks of this process, and waits for their tools.
func (k *taskKeeper) end(ctx context.Context) error {
	k.mu.Lock()
	all := make([]*job, 0, len(k.jobs))
	for _, j := range k.jobs {
		all = append(all, j)
	}
	k.mu.Unlock()
	for _, j := range all {
		j.stop(errTaskStopped)
	}
	for _, j := range all {
		select {
		case <-j.over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
