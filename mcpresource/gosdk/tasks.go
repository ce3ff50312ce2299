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

// Tasks lets tools be called as tasks, which the Go SDK does not know: the call is answered at once,
// and the client asks for its result later. Clients of 2025-11-25 say by the member task of a call that
// they want one; clients that declare the extension io.modelcontextprotocol/tasks of 2026-07-28 get one
// for every tool that is listed here. All other clients get the result of the call itself.
//
// A task belongs to the person, the application and the grant that began it. For every other caller it
// does not exist. Each request about it is judged as a call of its tool with its arguments, and so is
// the task itself while it runs: it ends when the caller may not call the tool any more.
type Tasks struct {
	// Tools are the tools that can be called as tasks, by exact name.
	Tools map[string]TaskTool
	// Store keeps the tasks. Default: mcpresource.NewMemoryTasks. A task runs in the process that was asked
	// for it. When that ends, the task fails, and results of earlier ones last as long as the store does.
	Store mcpresource.TaskStore
	// AnyGrant lets a person and application go on with their tasks under another grant, as after a new
	// consent. Without it the end of a grant puts its tasks out of reach.
	AnyGrant bool

	// TTL is how long a task is kept after it was begun, and with that how long it may run; clients of
	// 2025-11-25 may ask for another time, up to MaxTTL. Defaults: 1 hour, 24 hours.
	TTL, MaxTTL time.Duration
	// PollInterval is how often clients are told to ask. Default: 1 second.
	PollInterval time.Duration
	// Unattended is how long a task runs on after the access token of the last request about it has
	// expired; until then the token is judged again every 15 seconds. Default: 1 hour; negative: until
	// the task ends.
	Unattended time.Duration
	// MaxTasks bounds the tasks that are kept for one person. Default: 500. How many of them run at
	// once is up to Options.MaxCalls.
	MaxTasks int
	// MaxResult bounds what is kept of the result of one task, in bytes. Default: 1 MiB.
	MaxResult int

	now  func() time.Time // default: time.Now, for tests
	beat time.Duration    // default: taskBeat, for tests
}

// TaskTool says how a tool is called as a task. The zero value is a tool that can be called either way.
type TaskTool struct {
	// Required refuses calls of clients that cannot follow a task.
	Required bool
	// Late lets a call of 2026-07-28 begin as any other, so that the tool can ask its questions first:
	// it becomes a task when the tool calls Detach.
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
	taskBeats      = 4 // without a sign of life, after which a task has no process any more
)

// tasksExtension is its identifier in the capabilities of 2026-07-28.
const tasksExtension = "io.modelcontextprotocol/tasks"

// relatedTask is the member of _meta by which 2025-11-25 tells what belongs to a task.
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

// alive is until when a process is taken to be there that gives a sign of life now. Tests have beats that are
// shorter than a busy machine may pause.
func (o *Tasks) alive(now time.Time) time.Time { return now.Add(taskBeats * max(o.beat, taskBeat)) }

// taskKeeper is what an adapter with tasks has for them.
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

// register makes the methods known to the SDK, which hands them to the middleware. It fails for an SDK
// that has them itself.
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

// owner is whom a task belongs to (RS-132, RS-215). It is a digest, so that stores have nothing to compare but texts of
// one length, and none names a person.
func (k *taskKeeper) owner(p *mcpresource.Principal) string {
	grant := p.GrantID()
	if k.o.AnyGrant {
		grant = ""
	}
	return taskDigest("owner", p.Key(), grant)
}

func taskDigest(parts ...string) string {
	b, _ := json.Marshal(parts) // texts
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// taskDialect is how a request speaks of tasks.
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

// undeclared returns nil when the client has declared the extension on this very request (RS-188).
func (x *exchange) undeclared() error {
	err := RequireExtension(x.req, tasksExtension)
	if err != nil {
		x.outcome = mcpresource.OutcomeUndeclaredCapability
	}
	return err
}

// taskPlan is how a call is carried out.
type taskPlan struct {
	as    bool // as a task
	late  bool // from when the tool says so
	ttl   time.Duration
	limit time.Duration // how long the tool may run; 0: as long as the task
}

var errTaskAlone = &jsonrpc.Error{
	Code: jsonrpc.CodeMethodNotFound, Message: "This tool can be called only as a task.",
}

// planTask decides whether a call becomes a task. Since 2026-07-28 that is up to the server alone, and
// the member task of a call says nothing (RS-176).
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

// wanted is the time to live that a client of 2025-11-25 asks for, within bounds.
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
	ms := min(*p.TTL, float64(o.MaxTTL/time.Millisecond)) // before it is too large for a Duration
	return max(time.Duration(ms)*time.Millisecond, min(taskMinTTL, o.MaxTTL)), nil
}

// announce says in the answers of the SDK what it does not know of.
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

// announceTools says of each tool in a list whether it can be a task. That it cannot is the default.
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

// amended is a result with members for which the SDK's type has no place.
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
