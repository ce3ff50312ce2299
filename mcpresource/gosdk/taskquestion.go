package gosdk

import (
	"context"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// question2025 is a question of a task of 2025-11-25. It is sent on the stream of the request in
// which the client waits for the task's result.
type question2025 struct {
	method string
	params mcp.Params
	next   mcp.MethodHandler
	answer chan said
}

type said struct {
	result mcp.Result
	err    error
}

// send handles a message from a task's tool to its client. A client of 2026-07-28 only gets the
// state of the task. Other clients get messages that name the task, on any open stream.
func (j *job) send(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) (mcp.Result, error) {
	notification := strings.HasPrefix(method, "notifications/")
	if j.dialect() != coreTasks {
		if notification {
			return nil, nil
		}
		return next(ctx, method, req)
	}
	params := related(req.GetParams(), j.task.ID)
	if notification {
		s, ok := req.GetSession().(*mcp.ServerSession)
		if !ok {
			return nil, nil
		}
		own := &mcp.ServerRequest[mcp.Params]{Session: s, Params: params, Extra: req.GetExtra()}
		return next(ofNoRequest{ctx}, method, j.Adapter.asOf(method, own))
	}
	return j.inquire(ctx, &question2025{method: method, params: params, next: next, answer: make(chan said, 1)})
}

// inquire waits until the client has requested the result and has answered.
func (j *job) inquire(ctx context.Context, q *question2025) (mcp.Result, error) {
	if err := j.record(func(s *taskState) { s.Status = taskInput }); err != nil {
		return nil, err
	}
	j.mu.Lock()
	j.questions = append(j.questions, q)
	j.mu.Unlock()
	j.wakeAll()
	var a said
	select {
	case a = <-q.answer:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if j.unasked() {
		if err := j.record(func(s *taskState) { s.Status = taskWorking }); err != nil {
			return nil, err
		}
	}
	return a.result, a.err
}

func (j *job) unasked() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.questions) == 0
}

// nextQuestion removes and returns a question, so that it is asked once.
func (j *job) nextQuestion() *question2025 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.questions) == 0 {
		return nil
	}
	q := j.questions[0]
	j.questions = j.questions[1:]
	return q
}

// put asks the client in the session of x, which waits for the result of the task. If the client
// leaves, the next request for the result gets the question.
func (j *job) put(ctx context.Context, x *exchange, q *question2025) {
	s, ok := x.req.GetSession().(*mcp.ServerSession)
	if !ok {
		return
	}
	own := &mcp.ServerRequest[mcp.Params]{Session: s, Params: q.params, Extra: x.req.GetExtra()}
	asking := ctx
	if x.o.AskTimeout > 0 {
		var cancel context.CancelFunc
		asking, cancel = context.WithTimeout(ctx, x.o.AskTimeout)
		defer cancel()
	}
	result, err := q.next(asking, q.method, x.Adapter.asOf(q.method, own))
	if err != nil && ctx.Err() != nil {
		j.mu.Lock()
		j.questions = append([]*question2025{q}, j.questions...)
		j.mu.Unlock()
		j.wakeAll()
		return
	}
	q.answer <- said{result, err}
}

// related returns a copy of params that names the task.
func related(p mcp.Params, id string) mcp.Params {
	v := reflect.ValueOf(p)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return p
	}
	copied := reflect.New(v.Elem().Type())
	copied.Elem().Set(v.Elem())
	own, ok := copied.Interface().(mcp.Params)
	if !ok {
		return p
	}
	meta := map[string]any{relatedTask: map[string]any{"taskId": id}}
	for name, value := range p.GetMeta() {
		if name != relatedTask {
			meta[name] = value
		}
	}
	own.SetMeta(meta)
	return own
}

// ofNoRequest is a context without a request. With it the SDK sends on the stream of the session,
// because the stream of the call was closed with its response.
type ofNoRequest struct{ context.Context }

// Value implements context.Context.
func (ofNoRequest) Value(any) any { return nil }
