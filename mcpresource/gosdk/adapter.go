package gosdk

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Options configures an Adapter. The zero value and nil are safe defaults.
type Options struct {
	// Sessions configures the revisions with sessions, up to 2025-11-25. The adapter sets Stateless
	// and DisableLocalhostProtection. EventStore defaults to a bounded one in memory,
	// SessionTimeout to 30 minutes. The adapter prefixes the store's keys with the caller, and
	// replays events only to that caller.
	Sessions mcp.StreamableHTTPOptions
	// Stateless configures the revisions without sessions, from 2026-07-28. The adapter sets
	// Stateless, PropagateRequestCancellation and DisableLocalhostProtection.
	Stateless mcp.StreamableHTTPOptions

	// Sessionless declares that the server issues no session ids (GetSessionID returns ""), so that
	// any replica can answer any request. Without it each process learns this from the first
	// session that it opens.
	Sessionless bool

	// ShowAll lists every tool, prompt and resource to every caller, not only those that the
	// caller's scopes cover. Clients can then learn by calling which scopes they lack.
	ShowAll bool

	// State seals the requestState of multi round-trip requests for the caller, the operation and
	// its arguments. Default: a key of this process. Replicas behind one URL need a Sealer with a
	// shared key.
	State *mcpresource.Sealer
	// StateLife is how long a client may take to return a requestState. Default: 10 minutes.
	StateLife time.Duration
	// Spent stores which states were used, for Once. Default: in memory. Several replicas should
	// share one.
	Spent mcpresource.Replays

	// ToolTimeout is the maximum run time of a tool. Default: 10 minutes; negative: unlimited.
	// ToolTimeouts overrides it for some tools, by exact name.
	ToolTimeout  time.Duration
	ToolTimeouts map[string]time.Duration
	// AskTimeout is how long the server waits for a client's answer, for example to an elicitation.
	// Default: 10 minutes; negative: unlimited.
	AskTimeout time.Duration
	// MaxCalls is the maximum number of concurrent tool calls of one user. Default: 64; negative:
	// unlimited. The rate is limited by the Limits of the Guard.
	MaxCalls int

	// UncheckedInput leaves the checking of arguments to tools. Otherwise the arguments of every
	// tool are checked against its schema. That includes tools added with Server.AddTool, which the
	// SDK does not check.
	UncheckedInput bool
	// MaxResult is the maximum size of text and data in the result of a tool or prompt, in bytes.
	// Default: 10 MiB; negative: unlimited.
	MaxResult int
	// URISchemes are the allowed schemes of links in results. Default: all except those that
	// execute or hide something: javascript, vbscript and data.
	URISchemes []string
	// Tasks lets tools be called as tasks. Nil: no tool can be.
	Tasks *Tasks
	// RawOutput passes on results of tools and prompts unchanged, with terminal escape sequences,
	// control characters, any link and any size. Results are not checked against the tool's output
	// schema.
	RawOutput bool

	Logger *slog.Logger // default: discard

	interactionPoll time.Duration    // default: interactionPoll, for tests
	now             func() time.Time // default: time.Now, for tests
}

const (
	sessionTimeout = 30 * time.Minute
	stateLife      = 10 * time.Minute
	toolTimeout    = 10 * time.Minute
	askTimeout     = 10 * time.Minute
	maxCalls       = 64
	maxResult      = 10 << 20
)

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.State == nil {
		c.State, _ = mcpresource.NewSealer() // only fails for invalid keys
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.Spent == nil {
		c.Spent = newSpent(c.now)
	}
	if c.StateLife == 0 {
		c.StateLife = stateLife
	}
	if c.ToolTimeout == 0 {
		c.ToolTimeout = toolTimeout
	}
	if c.AskTimeout == 0 {
		c.AskTimeout = askTimeout
	}
	if c.MaxCalls == 0 {
		c.MaxCalls = maxCalls
	}
	if c.MaxResult == 0 {
		c.MaxResult = maxResult
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Adapter connects one guard and one server. It is safe for concurrent use.
type Adapter struct {
	guard    *mcpresource.Guard
	server   *mcp.Server
	o        Options
	sessions *sessions
	readers  *readers
	calls    *underWay
	schemas  *schemas // of arguments
	outputs  *schemas
	running  *running
	openings *openings
	remarked *remarked
	// inner is the server without the adapter's middleware. revisions returns the server's
	// revisions.
	inner     mcp.MethodHandler
	revisions func() []string
	tasks     *taskKeeper // nil without Options.Tasks
	// sessionless is set if the server issues no session ids, so that requests need none.
	sessionless atomic.Bool

	closing sync.Once
	closed  chan struct{}
}

// New connects g and s, and adds middleware to s: call it once for each server. Add middleware that
// should see the SDK's side before it, and middleware that should see the client's side after it.
// For sessions of an older revision, the latter gets an mcp.Result of the adapter if that omits
// members that the revision lacks.
func New(g *mcpresource.Guard, s *mcp.Server, o *Options) *Adapter {
	a := newAdapter(g, s, o)
	if a.tasks != nil {
		if err := a.tasks.register(s); err != nil { // a later SDK may implement tasks: then the server handles them
			a.o.Logger.Error("tools cannot be called as tasks of this adapter", "error", err)
			a.tasks = nil
		}
	}
	s.AddReceivingMiddleware(a.receive)
	s.AddSendingMiddleware(a.send)
	return a
}

func newAdapter(g *mcpresource.Guard, s *mcp.Server, o *Options) *Adapter {
	a := &Adapter{
		guard: g, server: s, o: o.withDefaults(), sessions: newSessions(g), readers: newReaders(), calls: &underWay{},
		schemas: newSchemas(), outputs: newSchemas(),
		running: newRunning(), openings: newOpenings(), remarked: newRemarked(), closed: make(chan struct{}),
	}
	a.revisions = sync.OnceValue(a.askRevisions)
	a.tasks = newTaskKeeper(a.o.Tasks)
	a.sessionless.Store(a.o.Sessionless)
	return a
}

// NewHandler returns the guarded server with its RFC 9728 documents, to be mounted at the root of a
// host. It combines New and Handler. Do not put it behind g.Register or g.Protect: a guard removes
// the token from the request, and a second guard then rejects the request. Those take the result of
// Unguarded.
func NewHandler(g *mcpresource.Guard, s *mcp.Server, o *Options) http.Handler {
	return New(g, s, o).Handler()
}

// Unguarded returns the server without the guard, for programs that mount guard and documents
// themselves. It combines New and HTTP.
func Unguarded(g *mcpresource.Guard, s *mcp.Server, o *Options) http.Handler {
	return New(g, s, o).HTTP()
}

// Handler returns the guarded server with its RFC 9728 documents.
func (a *Adapter) Handler() http.Handler { return a.guard.Handler(a.HTTP()) }

// HTTP returns the Streamable HTTP endpoint of every revision from 2025-03-26. It must be behind
// Guard.Protect: requests without a verified caller are rejected.
func (a *Adapter) HTTP() http.Handler {
	server := func(*http.Request) *mcp.Server { return a.server }

	sessions := a.o.Sessions
	sessions.Stateless = false
	// The guard checks Host and Origin. Behind a local proxy, the SDK's check would reject every
	// request.
	sessions.DisableLocalhostProtection = true
	if sessions.EventStore == nil {
		sessions.EventStore = mcp.NewMemoryEventStore(nil)
	}
	sessions.EventStore = &events{inner: sessions.EventStore, sessions: a.sessions}
	if sessions.SessionTimeout == 0 {
		sessions.SessionTimeout = sessionTimeout
	}
	modern := a.o.Stateless
	modern.Stateless = true // RS-140
	modern.DisableLocalhostProtection = true
	modern.PropagateRequestCancellation = true // 2026-07-28: closing the stream cancels (RS-164)

	return &endpoint{
		adapter:   a,
		sessions:  a.bridge(mcp.NewStreamableHTTPHandler(server, &sessions)),
		stateless: a.bridge(mcp.NewStreamableHTTPHandler(server, &modern)),
	}
}

// Close ends all tasks and listening streams: subscribers of 2026-07-28 get the final result of
// their subscription. It waits for calls and then ends the sessions. Call it before
// http.Server.Shutdown, which waits for streams but does not end them. If ctx ends first, Close
// ends the sessions and returns the error of ctx.
func (a *Adapter) Close(ctx context.Context) error {
	a.closing.Do(func() { close(a.closed) })
	if a.tasks != nil {
		if err := a.tasks.end(ctx); err != nil {
			return err
		}
	}
	unanswered := a.calls.wait(ctx)
	var all sync.WaitGroup
	for s := range a.server.Sessions() {
		if s.ID() == "" { // it lasts as long as its only request
			all.Go(func() { _ = s.Wait() })
			continue
		}
		all.Go(func() { _ = s.Close() }) // an error means that the client has gone
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	select {
	case <-ended:
		return unanswered
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *Adapter) stopping() bool {
	select {
	case <-a.closed:
		return true
	default:
		return false
	}
}

// untilClosed ends a subscription when the adapter is closed, so that its handler can return a
// result. Otherwise the SDK would drop the subscription with the session.
func (a *Adapter) untilClosed(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	returned := make(chan struct{})
	go func() {
		select {
		case <-a.closed:
			cancel()
		case <-returned:
		}
	}()
	return ctx, func() { close(returned); cancel() }
}

// send limits the time that the server waits for a client, and holds back messages that the client
// does not expect yet. It adapts messages to the session's revision.
func (a *Adapter) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if j := jobOf(ctx); j != nil && j.isTask() {
			return j.send(ctx, next, method, req)
		}
		if s, ok := req.GetSession().(*mcp.ServerSession); ok {
			if err := keepsAlive(s, method); err != nil {
				return nil, err
			}
			now, err := a.openings.hold(ctx, s, method, func() { a.sendLater(next, method, req) })
			if err != nil || !now {
				return nil, err
			}
		}
		if a.o.AskTimeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, a.o.AskTimeout)
			defer cancel()
		}
		return next(ctx, method, a.asOf(method, req))
	}
}

// sendTime is the timeout for a notification that was held back.
const sendTime = 10 * time.Second

func (a *Adapter) sendLater(next mcp.MethodHandler, method string, req mcp.Request) {
	ctx, cancel := context.WithTimeout(context.Background(), sendTime)
	defer cancel()
	if _, err := next(ctx, method, a.asOf(method, req)); err != nil {
		a.o.Logger.WarnContext(ctx, "a notification was not sent", "method", method, "error", err)
	}
}
