package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Statuses of tasks, the same in both revisions.
const (
	taskWorking   = "working"
	taskInput     = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

type taskState struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Status    string          `json:"status"`
	Message   string          `json:"message,omitempty"`
	Updated   time.Time       `json:"updated"`
	// Alive is the time until which the process of the task counts as running.
	Alive time.Time `json:"alive"`
	// Asks are the open questions for tasks/update, and Answers the client's answers.
	Asks    map[string]json.RawMessage `json:"asks,omitempty"`
	Answers map[string]json.RawMessage `json:"answers,omitempty"`
	// Result is the tool's result, and ToolError states whether the tool failed. Error is set if
	// the task itself failed.
	Result    json.RawMessage `json:"result,omitempty"`
	ToolError bool            `json:"tool_error,omitempty"`
	Error     *taskError      `json:"error,omitempty"`
}

// taskError is a JSON-RPC error as sent.
type taskError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (s *taskState) ended() bool {
	return s.Status == taskCompleted || s.Status == taskFailed || s.Status == taskCancelled
}

// fail ends a running task with an error.
func (s *taskState) fail(e *jsonrpc.Error) {
	s.Status, s.Message, s.Error = taskFailed, e.Message, &taskError{e.Code, e.Message, e.Data}
	s.Asks, s.Answers = nil, nil
}

func (s *taskState) cancel(why string) {
	s.Status, s.Message, s.Asks, s.Answers = taskCancelled, why, nil, nil
}

// read returns a task of owner. If its process has gone, the task has failed.
func (k *taskKeeper) read(ctx context.Context, owner, id string) (mcpresource.Task, *taskState, error) {
	return k.update(ctx, owner, id, func(s *taskState) bool {
		if s.ended() || !k.o.now().After(s.Alive) {
			return false
		}
		s.fail(errTaskLost)
		return true
	})
}

var (
	errTaskLost = &jsonrpc.Error{
		Code:    jsonrpc.CodeInternalError,
		Message: "The server that carried out the task was stopped, and no other can go on where it was: begin again.",
	}
	errTaskContended = errors.New("gosdk: a task is changed too often")
)

const taskTries = 50 // of a change; a try only fails because another one succeeded

// update changes the state of a task. It retries until change returns false or the store accepts
// the change, and returns the current task.
func (k *taskKeeper) update(
	ctx context.Context, owner, id string, change func(*taskState) bool,
) (mcpresource.Task, *taskState, error) {
	for range taskTries {
		t, err := k.o.Store.Task(ctx, owner, id)
		if err != nil {
			return mcpresource.Task{}, nil, err
		}
		s := &taskState{}
		if err := json.Unmarshal(t.State, s); err != nil {
			return mcpresource.Task{}, nil, fmt.Errorf("gosdk: the state of a task: %w", err)
		}
		before := s.Status
		if !change(s) {
			return t, s, nil
		}
		if s.Status != before {
			s.Updated = k.o.now()
		}
		if t.State, err = json.Marshal(s); err != nil {
			return mcpresource.Task{}, nil, fmt.Errorf("gosdk: the state of a task: %w", err)
		}
		switch err := k.o.Store.ChangeTask(ctx, t); {
		case errors.Is(err, mcpresource.ErrTaskChanged):
			continue
		case err != nil:
			return mcpresource.Task{}, nil, err
		}
		k.changed(id)
		return t, s, nil
	}
	return mcpresource.Task{}, nil, errTaskContended
}

// changed wakes waiting goroutines of this process. Other processes poll the store.
func (k *taskKeeper) changed(id string) {
	if j := k.job(id); j != nil {
		j.wakeAll()
	}
}

func (k *taskKeeper) job(id string) *job {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.jobs[id]
}

// view returns a task for clients, for tasks/get, tasks/cancel and lists. Up to 2025-11-25 a tool's
// failure makes its task fail, and since then it does not.
func (k *taskKeeper) view(d taskDialect, t mcpresource.Task, s *taskState) map[string]any {
	ttl, poll := t.Expires.Sub(t.Created).Milliseconds(), k.o.PollInterval.Milliseconds()
	m := map[string]any{
		"taskId": t.ID, "status": s.Status, "createdAt": taskTime(t.Created), "lastUpdatedAt": taskTime(s.Updated),
	}
	if s.Message != "" {
		m["statusMessage"] = s.Message
	}
	if d == coreTasks {
		m["ttl"], m["pollInterval"] = ttl, poll
		if s.ToolError {
			m["status"] = taskFailed
		}
		return m
	}
	m["ttlMs"], m["pollIntervalMs"] = ttl, poll
	return m
}

// detail adds members that only tasks/get of the extension returns (RS-216).
func detail(m map[string]any, s *taskState) map[string]any {
	switch s.Status {
	case taskInput:
		asks := s.Asks
		if asks == nil {
			asks = map[string]json.RawMessage{} // they are asked on the stream of a session
		}
		m["inputRequests"] = asks
	case taskCompleted:
		m["result"] = s.Result
	case taskFailed:
		m["error"] = s.Error
	}
	return m
}

func taskTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// taskParams holds the params of all task methods.
type taskParams struct {
	mcp.ParamsBase
	TaskID         string                     `json:"taskId"`
	Cursor         string                     `json:"cursor"`
	InputResponses map[string]json.RawMessage `json:"inputResponses"`
}

// taskResult is the result of a task method, or of a call that became a task.
type taskResult struct {
	mcp.ResultBase
	members map[string]any
}

// MarshalJSON implements json.Marshaler.
func (r *taskResult) MarshalJSON() ([]byte, error) {
	m := maps.Clone(r.members)
	if len(r.Meta) > 0 {
		m["_meta"] = r.Meta
	}
	return json.Marshal(m)
}

// result returns members as a result of the revision.
func (d taskDialect) result(kind string, members map[string]any) *taskResult {
	if d == extendedTasks {
		members["resultType"] = kind
	}
	return &taskResult{members: members}
}
