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

// Options adjust an Adapter. The zero value, and nil, are safe defaults.
type Options struct {
	// Sessions configures the era up to 2025-11-25. Stateless and DisableLocalhostProtection are
	// set for it; EventStore defaults to a bounded one in memory, SessionTimeout to 30 minutes.
	// Whatever the store, its keys begin with the caller, and events are replayed only to that
	// caller.
	Sessions mcp.StreamableHTTPOptions
	// Stateless configures the era from 2026-07-28. Stateless,
	// PropagateRequestCancellation and DisableLocalhostProtection are set for it.
	Stateless mcp.StreamableHTTPOptions

	// Sessionless says that the server hands out no session ids (GetSessionID returns ""), so that any
	// replica answers any request. Without it each process learns that from the first session it opens.
	Sessionless bool

	// ShowAll lists every tool, prompt and resource to every caller instead of those
	// the caller's scopes cover. A client can then find out by calling what further
	// scope it needs.
	ShowAll bool

	// State seals the requestState of multi round-trip requests for the caller, the
	// operation and its arguments. Default: a key of this process; several replicas
	// behind one URL need a Sealer with a key that they share.
	State *mcpresource.Sealer
	// StateLife is how long a client may take to bring a requestState back.
	// Default: 10 minutes.
	StateLife time.Duration
	// Spent remembers which states have been used, for Once. Default: in memory, which several
	// replicas want to share.
	Spent mcpresource.Replays

	// ToolTimeout is how long a tool may run. Default: 10 minutes; negative: without end.
	// ToolTimeouts has other values for some tools, by exact name.
	ToolTimeout  time.Duration
	ToolTimeouts map[string]time.Duration
	// AskTimeout is how long the server waits for a client that it has asked something,
	// such as an elicitation. Default: 10 minutes; negative: without end.
	AskTimeout time.Duration
	// MaxCalls bounds the tool calls of one person that run at once. Default: 64;
	// negative: any number. How often is up to the Limits of the Guard.
	MaxCalls int

	// UncheckedInput leaves it to tools to check their arguments. Otherwise those of
	// every tool are checked against its schema, also of tools that were added with
	// Server.AddTool, for which the SDK checks nothing.
	UncheckedInput bool
	// MaxResult bounds the text and data of a result of a tool or prompt, in bytes.
	// Default: 10 MiB; negative: any size.
	MaxResult int
	// URISchemes are the schemes that links in results may have. Default: all but those
	// that run something or hide it: javascript, vbscript and data.
	URISchemes []string
	// Tasks lets tools be called as tasks; nil: none can.
	Tasks *Tasks
	// RawOutput lets the results of tools and prompts pass as they are: with terminal
	// escape sequences, control characters, any link and any size, whatever the output
	// schema of the tool says.
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
		c.State, _ = mcpresource.NewSealer() // fails for keys alone
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

// Adapter joins one guard and one server. It is safe for concurrent use.
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
	// inner is the server without the middleware of the adapter, and revisions are those it has.
	inner     mcp.MethodHandler
	revisions func() []string
	tasks     *taskKeeper // nil without Options.Tasks
	// sessionless is set when the server hands out no session ids, so that none can be
	// asked for.
	sessionless atomic.Bool

	closing sync.Once
	closed  chan struct{}
}

// New joins g and s, to which it adds middleware: call it once for a server, after
// adding middleware that should see what the SDK does, and before any that should see
// what clients do: for sessions of an older revision those see a mcp.Result of the adapter's
// where it left out what the revision does not have.
func New(g *mcpresource.Guard, s *mcp.Server, o *Options) *Adapter {
	a := newAdapter(g, s, o)
	if a.tasks != nil {
		if err := a.tasks.register(s); err != nil { // a later SDK has tasks of its own: they are the server's
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

// NewHandler returns the guarded server with its RFC 9728 documents, ready to mount at
// the root of a host: New and Handler in one. Do not put it behind g.Register or g.Protect:
// the guard takes the token out of the request, and a second one refuses it. Those take
// Unguarded.
func NewHandler(g *mcpresource.Guard, s *mcp.Server, o *Options) http.Handler {
	return New(g, s, o).Handler()
}

// Unguarded returns the server without the guard in front, for programs that mount
// guard and documents themselves: New and HTTP in one.
func Unguarded(g *mcpresource.Guard, s *mcp.Server, o *Options) http.Handler {
	return New(g, s, o).HTTP()
}

// Handler returns the guarded server with its RFC 9728 documents.
func (a *Adapter) Handler() http.Handler { return a.guard.Handler(a.HTTP()) }

// HTTP returns the Streamable HTTP endpoint of every revision from 2025-03-26. It must
// stand behind Guard.Protect: a request without a verified caller is refused.
func (a *Adapter) HTTP() http.Handler {
	server := func(*http.Request) *mcp.Server { return a.server }

	sessions := a.o.Sessions
	sessions.Stateless = false
	// the guard owns Host and Origin; behind a local proxy the SDK's check would refuse every
	// request
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

// Close ends every task and every stream that listens: subscribers of 2026-07-28
// get the result that ends their subscription. Calls are waited for, then sessions end. Call it
// before http.Server.Shutdown, which waits for streams and does not end them. It
// returns when all have ended, or ends the sessions and returns the error of ctx.
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
		if s.ID() == "" { // it lasts as long as its one request
			all.Go(func() { _ = s.Wait() })
			continue
		}
		all.Go(func() { _ = s.Close() }) // whose client has gone needs no goodbye
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

// stopping reports whether Close has been called.
func (a *Adapter) stopping() bool {
	select {
	case <-a.closed:
		return true
	default:
		return false
	}
}

// untilClosed ends a subscription when the adapter is closed, so that its handler
// returns a result; the SDK would drop that with the session.
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

// send bounds the time that the server waits for a client, sends nothing that the client does not
// expect yet, and tells each session what its revision has.
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

// sendTime is how long a notification that was kept may take.
const sendTime = 10 * time.Second

func (a *Adapter) sendLater(next mcp.MethodHandler, method string, req mcp.Request) {
	ctx, cancel := context.WithTimeout(context.Background(), sendTime)
	defer cancel()
	if _, err := next(ctx, method, a.asOf(method, req)); err != nil {
		a.o.Logger.WarnContext(ctx, "a notification was not sent", "method", method, "error", err)
	}
}
