package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/internal/strictjson"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

const (
	taskKept  = 7 * 24 * time.Hour // how long the owner of a task is stored
	taskMost  = 1000               // per user and MCP server
	maxTaskID = 1 << 10
)

var errNoTask = &taskError{Fault{Status: http.StatusOK, Code: mcp.CodeInvalidParams, Message: "Task not found."}}

// taskError is the response to a request about a task, sent instead of the MCP server's.
type taskError struct{ Fault }

// Error implements error.
func (e *taskError) Error() string { return e.Message }

// asked holds the fields of a request that concern tasks. Member names are compared exactly:
// decoders differ in whether they ignore case.
type asked struct {
	id     json.RawMessage
	method string
	params strictjson.Members
}

// judgeTasks refuses requests about tasks of other callers as if the tasks did not exist (RS-132,
// RS-215). It notes whether the response may announce a new task.
func (u *Upstream) judgeTasks(r *http.Request, x *exchange, body []byte) error {
	if r.Method != http.MethodPost {
		x.begins = true // the server may resend an earlier answer
		return nil
	}
	if !bytes.Contains(body, []byte("task")) && !bytes.Contains(body, []byte(`\u`)) {
		return nil
	}
	all, err := requests(body)
	if err != nil {
		return &taskError{Fault{
			Status: http.StatusBadRequest, Code: mcp.CodeInvalidRequest, Message: "Invalid request.",
		}}
	}
	for _, m := range all {
		switch {
		case m.method == "tools/call":
			if x.begins = true; len(all) == 1 {
				x.call = m.id
			}
			var name string
			_ = json.Unmarshal(m.params.Get("name"), &name) // without a name it is not a call
			x.tools = append(x.tools, name)
		case m.method == "subscriptions/listen", strings.HasPrefix(m.method, "tasks/") && m.method != "tasks/list":
			for _, id := range m.tasks() {
				if !u.ownsTask(r.Context(), x, id) {
					refused := *errNoTask
					refused.ID = m.id
					return &refused
				}
			}
		}
	}
	return nil
}

// tasks returns the task ids in a request. An unreadable id becomes "", which no caller owns.
func (m asked) tasks() (ids []string) {
	if m.method == "subscriptions/listen" {
		notifications, err := object(m.params.Get("notifications"))
		for _, n := range notifications {
			if strictjson.Same(n.Name, "taskIds") && err == nil {
				err = json.Unmarshal(n.Value, &ids)
			}
		}
		if err != nil && m.params.Get("notifications") != nil {
			return []string{""}
		}
		return ids
	}
	var id string
	if json.Unmarshal(m.params.Get("taskId"), &id) != nil {
		id = ""
	}
	return []string{id}
}

// requests returns the JSON-RPC requests of a body: one, or all of a batch.
func requests(body []byte) (out []asked, err error) {
	raw := []json.RawMessage{body}
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		if err := json.Unmarshal(body, &raw); err != nil {
			return nil, err
		}
	}
	for _, text := range raw {
		members, err := object(text)
		if err != nil {
			return nil, err
		}
		m := asked{id: members.Get("id")}
		if raw := members.Get("method"); raw != nil {
			err = json.Unmarshal(raw, &m.method)
		}
		if raw := members.Get("params"); raw != nil && raw[0] == '{' && err == nil {
			m.params, err = object(raw)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// object splits a JSON object. It refuses member names that differ only in case, because decoders
// disagree about them.
func object(text []byte) (strictjson.Members, error) {
	if len(text) == 0 {
		return nil, nil
	}
	if !utf8.Valid(text) || !json.Valid(text) {
		return nil, strictjson.ErrSyntax
	}
	return strictjson.Split(text, strictjson.Folded)
}

// taskOwner returns the key of a caller's tasks, derived from user, application and grant.
func taskOwner(p *mcpresource.Principal) string { return taskDigest("owner", p.Key(), p.GrantID()) }

func taskDigest(parts ...string) string {
	b, _ := json.Marshal(parts) // cannot fail: only strings
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// boundTask is the stored state of a task.
type boundTask struct {
	Tools []string `json:"tools"` // one of these tools began it
}

// ownsTask reports whether the caller owns a task and may still call its tool.
func (u *Upstream) ownsTask(ctx context.Context, x *exchange, id string) bool {
	may, _ := u.findTask(ctx, x, id)
	return may
}

// findTask returns the result of ownsTask, and whether the caller is known to own the task. The
// caller may have lost access to its tool.
func (u *Upstream) findTask(ctx context.Context, x *exchange, id string) (may, known bool) {
	if x.principal == nil || id == "" || len(id) > maxTaskID {
		return false, false
	}
	t, err := u.c.Tasks.Task(ctx, taskOwner(x.principal), id)
	var state boundTask
	if err == nil {
		err = json.Unmarshal(t.State, &state)
	}
	if err != nil {
		if !errors.Is(err, mcpresource.ErrNoTask) {
			u.c.Logger.ErrorContext(ctx, "the store of tasks failed", "resource", u.c.Resource, "error", err)
		}
		return false, false
	}
	may = u.c.May == nil || !slices.ContainsFunc(state.Tools, func(tool string) bool { return !u.c.May(ctx, tool) })
	return may, true
}

// bindTask stores the caller as owner of a task that the request out has begun, before the response
// reaches the caller. If that fails, no caller gets the task and it is cancelled.
func (u *Upstream) bindTask(out *http.Request, x *exchange, id string) bool {
	ctx := out.Context()
	if x.principal == nil || id == "" || len(id) > maxTaskID {
		return false
	}
	may, known := u.findTask(ctx, x, id)
	if may {
		return true // the server resends an earlier answer
	}
	state, _ := json.Marshal(boundTask{x.tools}) // cannot fail: only strings
	now := u.c.Now().Truncate(time.Millisecond)
	err := u.c.Tasks.CreateTask(ctx, mcpresource.Task{
		ID: id, Owner: taskOwner(x.principal), Person: taskDigest("person", x.principal.Person()),
		Created: now, Expires: now.Add(taskKept), State: state,
	}, taskMost)
	if err != nil {
		u.c.Logger.WarnContext(ctx, "a task could not be kept", "resource", u.c.Resource, "error", err)
	}
	x.unbound = err
	if err != nil && !known && u.lost(ctx, x, id) {
		u.cancelTask(out, id)
	}
	return err == nil
}

// lost reports whether a task that could not be stored is out of reach of every caller.
func (u *Upstream) lost(ctx context.Context, x *exchange, id string) bool {
	if errors.Is(x.unbound, mcpresource.ErrTasksFull) {
		_, err := u.c.Tasks.Task(ctx, taskOwner(x.principal), id)
		return errors.Is(err, mcpresource.ErrNoTask)
	}
	// The store has failed, but may still have saved the task. A single call is answered with an
	// error, so its task is lost. A resent answer may contain a task that the caller owns. A caller
	// who has gone has seen no answer and may ask for it again.
	return len(x.call) > 0 && ctx.Err() == nil
}

// instead returns a function that makes the error for a call whose task could not be bound to the
// caller. It returns nil if the call that began the task is unknown.
func (x *exchange) instead() func() []byte {
	if len(x.call) == 0 {
		return nil
	}
	return func() []byte {
		f := Fault{Code: mcp.CodeInternal, ID: x.call, Message: "The MCP server's answer about a task cannot be used."}
		switch {
		case errors.Is(x.unbound, mcpresource.ErrTasksFull):
			f.Code, f.Message = mcp.CodeRefused, "Too many tasks are kept: wait until earlier ones have expired."
			f.Data = map[string]string{"error": "limited"}
		case x.unbound != nil:
			f.Code, f.Message = mcp.CodeRefused, "This cannot be decided now: try again."
			f.Data = map[string]string{"error": "temporarily_unavailable"}
		}
		return f.Encode()
	}
}
