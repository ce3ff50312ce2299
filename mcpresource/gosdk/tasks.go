package gosdk

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Tasks lets tools be called as tasks, which the Go SDK does not support: the call is answered at
// once, and the client gets its result later. Clients of 2025-11-25 request a task with the member
// task of a call. Clients that declare the extension io.modelcontextprotocol/tasks of 2026-07-28
// get one for every tool listed here. Other clients get the result of the call.
//
// A task belongs to the user, the application and the grant that started it. For other callers it
// does not exist. Each request about it is checked like a call of its tool with its arguments. The
// task itself is checked in the same way while it runs: it ends when the caller may no longer call
// the tool.
type Tasks struct {
	// Tools lists the tools that can be called as tasks, by exact name.
	Tools map[string]TaskTool
	// Store stores the tasks. Default: mcpresource.NewMemoryTasks. A task runs in the process that
	// received the call. When that process ends, the task fails. Results of completed tasks last as
	// long as the store.
	Store mcpresource.TaskStore
	// AnyGrant lets a user and application access their tasks with another grant, for example after
	// a new consent. Otherwise the tasks of a grant become inaccessible when it ends.
	AnyGrant bool

	// TTL is how long a task is kept after its start, and also its maximum run time. Clients of
	// 2025-11-25 may request another time, up to MaxTTL. Defaults: 1 hour, 24 hours.
	TTL, MaxTTL time.Duration
	// PollInterval is the poll interval suggested to clients. Default: 1 second.
	PollInterval time.Duration
	// Unattended is how long a task continues after the token of the last request about it has
	// expired. Until the token expires, it is validated again every 15 seconds. Default: 1 hour;
	// negative: until the task ends.
	Unattended time.Duration
	// MaxTasks is the maximum number of stored tasks of one user. Default: 500. Options.MaxCalls
	// limits how many run at once.
	MaxTasks int
	// MaxResult is the maximum size of a stored result, in bytes. Default: 1 MiB.
	MaxResult int

	now  func() time.Time // default: time.Now, for tests
	beat time.Duration    // default: taskBeat, for tests
}

// TaskTool configures a tool for calls as a task. The zero value allows calls with and without a
// task.
type TaskTool struct {
	// Required rejects calls of clients that do not support tasks.
	Required bool
	// Late starts a call of 2026-07-28 like any other, so that the tool can ask its questions
	// first. It becomes a task when the tool calls Detach.
	Late bool
}

const (
	taskTTL        = time.Hour
	taskMaxTTL     = 24 * time.Hour
	taskMinTTL     = time.Second
	taskPoll       = time.Second
	taskUnattended = time.Hour
	taskMost       = 500
	taskMaxResult  = 1 << 20
	taskBeat       = 15 * time.Second
	taskBeats      = 4 // missed beats after which a task's process counts as gone
)

// tasksExtension is the identifier of tasks in the capabilities of 2026-07-28.
const tasksExtension = "io.modelcontextprotocol/tasks"

// relatedTask is the member of _meta that names the task of a message in 2025-11-25.
const relatedTask = "io.modelcontextprotocol/related-task"

func (o *Tasks) withDefaults() Tasks {
	c := *o
	for _, d := range []struct {
		value *time.Duration
		or    time.Duration
	}{
		{&c.TTL, taskTTL}, {&c.MaxTTL, max(taskMaxTTL, c.TTL)}, {&c.PollInterval, taskPoll},
		{&c.Unattended, taskUnattended}, {&c.beat, taskBeat},
	} {
		if *d.value == 0 {
			*d.value = d.or
		}
	}
	if c.MaxTasks <= 0 {
		c.MaxTasks = taskMost
	}
	if c.MaxResult <= 0 {
		c.MaxResult = taskMaxResult
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.Store == nil {
		c.Store = mcpresource.NewMemoryTasks(0, c.now)
	}
	return c
}

// alive returns the time until which a process with a beat now counts as running. In tests, beats
// can be shorter than the pauses of a busy machine.
func (o *Tasks) alive(now time.Time) time.Time { return now.Add(taskBeats * max(o.beat, taskBeat)) }

// taskKeeper holds the task state of an adapter.
type taskKeeper struct {
	o Tasks

	mu   sync.Mutex // guards jobs
	jobs map[string]*job
}

func newTaskKeeper(o *Tasks) *taskKeeper {
	if o == nil {
		return nil
	}
	return &taskKeeper{o: o.withDefaults(), jobs: map[string]*job{}}
}

// register registers the methods with the SDK, which passes them to the middleware. It returns an
// error if the SDK already has them.
func (k *taskKeeper) register(s *mcp.Server) error {
	unknown := func(context.Context, *mcp.ServerSession, *taskParams) (*taskResult, error) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found."}
	}
	for _, method := range []string{"tasks/get", "tasks/list", "tasks/result", "tasks/update", "tasks/cancel"} {
		if err := mcp.AddReceivingCustomMethod(s, method, unknown); err != nil {
			return err
		}
	}
	return nil
}

// owner returns the owner of p's tasks (RS-132, RS-215). It is a digest, so that stores compare
// texts of equal length and contain no names of users.
func (k *taskKeeper) owner(p *mcpresource.Principal) string {
	grant := p.GrantID()
	if k.o.AnyGrant {
		grant = ""
	}
	return taskDigest("owner", p.Key(), grant)
}

func taskDigest(parts ...string) string {
	b, _ := json.Marshal(parts) // strings always encode
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// taskDialect is the form of tasks in a revision.
type taskDialect int

const (
	noTasks       taskDialect = iota
	coreTasks                 // of 2025-11-25
	extendedTasks             // of the extension, since 2026-07-28
)

func (x *exchange) dialect() taskDialect {
	switch {
	case x.tasks == nil:
		return noTasks
	case protocol.IsStateless(x.version):
		return extendedTasks
	case x.version == protocol.Rev20251125:
		return coreTasks
	}
	return noTasks
}

// undeclared returns nil if the client declared the extension in this request (RS-188).
func (x *exchange) undeclared() error {
	err := RequireExtension(x.req, tasksExtension)
	if err != nil {
		x.outcome = mcpresource.OutcomeUndeclaredCapability
	}
	return err
}

// taskPlan states how to run a call.
type taskPlan struct {
	as    bool // as a task
	late  bool // once the tool calls Detach
	ttl   time.Duration
	limit time.Duration // of the tool; 0: as long as the task
}

var errTaskAlone = &jsonrpc.Error{
	Code: jsonrpc.CodeMethodNotFound, Message: "This tool can be called only as a task.",
}

// planTask decides whether a call becomes a task. Since 2026-07-28 only the server decides that,
// and the call's member task is ignored (RS-176).
func (x *exchange) planTask(call *mcp.CallToolRequest) (taskPlan, error) {
	if x.tasks == nil {
		return taskPlan{}, nil
	}
	tool, can := x.tasks.o.Tools[call.Params.Name]
	asked := carried(x.req).task
	switch x.dialect() {
	case extendedTasks:
		missing := RequireExtension(x.req, tasksExtension)
		switch {
		case can && x.caller != nil && missing == nil:
			return taskPlan{as: true, late: tool.Late, ttl: x.tasks.o.TTL}, nil
		case tool.Required && missing == nil:
			x.outcome = mcpresource.OutcomeInvalidToken
			return taskPlan{}, forbidden(mcpresource.ErrNoCaller)
		case tool.Required:
			return taskPlan{}, x.undeclared()
		}
		return taskPlan{}, nil
	case coreTasks:
		if asked == nil || x.caller == nil {
			break
		}
		if !can {
			return taskPlan{}, &jsonrpc.Error{
				Code: jsonrpc.CodeMethodNotFound, Message: "This tool cannot be called as a task.",
			}
		}
		ttl, err := x.tasks.o.wanted(asked)
		return taskPlan{as: true, ttl: ttl}, err
	case noTasks:
	}
	if tool.Required {
		return taskPlan{}, errTaskAlone
	}
	return taskPlan{}, nil
}

// wanted returns the time to live that a client of 2025-11-25 requests, within limits.
func (o *Tasks) wanted(task json.RawMessage) (time.Duration, error) {
	var p struct {
		TTL *float64 `json:"ttl"`
	}
	if err := json.Unmarshal(task, &p); err != nil {
		return 0, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "task has to be an object, and ttl a number."}
	}
	if p.TTL == nil {
		return o.TTL, nil
	}
	ms := min(*p.TTL, float64(o.MaxTTL/time.Millisecond)) // avoids an overflow of Duration
	return max(time.Duration(ms)*time.Millisecond, min(taskMinTTL, o.MaxTTL)), nil
}

// announce adds task support to results of the SDK, which does not know of it.
func (x *exchange) announce(result mcp.Result) mcp.Result {
	if x.tasks == nil {
		return result
	}
	switch r := result.(type) {
	case *mcp.DiscoverResult:
		own := *r
		capabilities := mcp.ServerCapabilities{}
		if r.Capabilities != nil {
			capabilities = *r.Capabilities
		}
		capabilities.Extensions = map[string]any{tasksExtension: struct{}{}}
		if r.Capabilities != nil {
			for name, settings := range r.Capabilities.Extensions {
				capabilities.Extensions[name] = settings
			}
		}
		own.Capabilities = &capabilities
		return &own
	case *mcp.InitializeResult:
		if r.ProtocolVersion == protocol.Rev20251125 {
			return amended{r, announceCore}
		}
	case *mcp.ListToolsResult:
		if x.dialect() == coreTasks {
			return amended{r, x.tasks.announceTools}
		}
	}
	return result
}

func announceCore(result map[string]json.RawMessage) error {
	capabilities := map[string]json.RawMessage{}
	if raw := result["capabilities"]; raw != nil {
		if err := json.Unmarshal(raw, &capabilities); err != nil {
			return err
		}
	}
	capabilities["tasks"] = json.RawMessage(`{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`)
	raw, err := json.Marshal(capabilities)
	result["capabilities"] = raw
	return err
}

// announceTools sets the task support of each tool in a list. The default is no support.
func (k *taskKeeper) announceTools(result map[string]json.RawMessage) error {
	var tools []map[string]json.RawMessage
	if err := json.Unmarshal(result["tools"], &tools); err != nil {
		return err
	}
	for _, t := range tools {
		var name string
		if err := json.Unmarshal(t["name"], &name); err != nil {
			return err
		}
		switch tool, can := k.o.Tools[name]; {
		case can && tool.Required:
			t["execution"] = json.RawMessage(`{"taskSupport":"required"}`)
		case can:
			t["execution"] = json.RawMessage(`{"taskSupport":"optional"}`)
		}
	}
	raw, err := json.Marshal(tools)
	result["tools"] = raw
	return err
}

// amended is a result with additional members that the SDK's type lacks.
type amended struct {
	mcp.Result
	amend func(map[string]json.RawMessage) error
}

// MarshalJSON implements json.Marshaler.
func (r amended) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(r.Result)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	if err := r.amend(members); err != nil {
		return nil, errors.Join(errors.New("gosdk: announcing tasks"), err)
	}
	return json.Marshal(members)
}
