package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/gateway/lists"
	"github.com/mcp-authd/mcp-authd/internal/mcp"
)

// sink receives the messages that belong to a call. The last message is final. An abandoned call
// ends with a nil frame.
type sink interface {
	deliver(f *frame, final bool)
}

// peer receives the program's messages outside of calls, and learns when the program ends.
type peer interface {
	ask(f frame) // a request to the client
	note(f frame)
	answered(method string, f frame) // a response, before the call's sink gets it
	lost()                           // the program has ended
}

// link sends calls to a program and distributes its messages. It replaces request ids with its own
// numbers, because several clients may use the same ids. It also replaces progress tokens if
// several clients share the program.
type link struct {
	c      *Config
	peer   peer
	shared bool
	ready  chan struct{} // closed when proc is set
	proc   *process
	onEnd  func() // called first when the program has ended
	onWord func() // called at the program's first answer
	// probe is set while the gateway only asks which revision the program speaks. A program that
	// ends because of that has not failed.
	probe atomic.Bool
	spoke atomic.Bool // it has answered a request

	mu    sync.Mutex // guards the fields below
	last  int64
	calls map[int64]*call
	left  *bounded.Map[int64, any] // scopes of abandoned calls that were not answered
	over  bool
}

// call is a request that the program has not answered.
type call struct {
	n      int64
	id     json.RawMessage // as the client sent it
	token  json.RawMessage // progress token, as the client sent it
	method string
	person string // the user who waits; "" for the gateway
	scope  any    // owner of the id
	out    sink
	logs   bool // the request asks for log messages (2026-07-28)
}

var errPending = errors.New("too many requests wait for an answer")

func newLink(c *Config, shared bool) *link {
	return &link{
		c: c, shared: shared, ready: make(chan struct{}), calls: map[int64]*call{},
		left: bounded.NewShared[int64](c.MaxPending, c.Now, func(scope any) any { return scope }),
	}
}

func (l *link) start(env []string, to peer) (err error) {
	l.peer = to
	l.proc, err = start(l.c, env, l)
	close(l.ready)
	return err
}

// call sends a request for a user, or the gateway's own request if person is "". All messages about
// the call go to out.
func (l *link) call(f frame, person string, scope any, out sink) (*call, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
		return nil, errEnded
	case len(l.calls) >= l.c.MaxPending, l.c.Shared && person != "" && l.callsOf(person) >= max(l.c.MaxPending/4, 1):
		return nil, errPending // one user must not block the others
	}
	l.last++
	c := &call{n: l.last, id: f.ID, method: f.Method, person: person, scope: scope, out: out,
		token: at(f.Params, "_meta", "progressToken"), logs: at(f.Params, "_meta", mcp.MetaLogLevel) != nil}
	f.ID = c.number()
	if l.shared && c.token != nil {
		f.Params = with(f.Params, c.number(), "_meta", "progressToken")
	}
	if err := l.proc.send(f); err != nil {
		return nil, err
	}
	l.calls[c.n] = c
	return c, nil
}

// callsOf counts the calls of a user. The caller holds mu.
func (l *link) callsOf(person string) (n int) {
	for _, c := range l.calls {
		if c.person == person {
			n++
		}
	}
	return n
}

// abandon records a call that no client waits for, if later messages about it could reach another
// caller. The caller holds mu.
func (l *link) abandon(c *call) {
	delete(l.calls, c.n)
	if l.c.Shared {
		l.left.Put(c.n, c.scope, time.Time{})
	}
}

// abandoned reports whether the program has not answered an abandoned call of another scope.
func (l *link) abandoned(scope any) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left.Len() > l.left.Count(scope, time.Time{})
}

func (c *call) number() json.RawMessage { return strconv.AppendInt(nil, c.n, 10) }

// send sends a message that needs no answer.
func (l *link) send(f frame) error { return l.proc.send(f) }

// cancel informs the program that its client no longer waits (MCP, Cancellation). The program need
// not answer then, so the gateway does not wait for an answer.
func (l *link) cancel(f frame, scope any) {
	id := at(f.Params, "requestId")
	l.mu.Lock()
	var found *call
	for _, c := range l.calls {
		if c.scope == scope && same(c.id, id) && c.method != "initialize" {
			found = c
		}
	}
	if found != nil {
		l.abandon(found)
	}
	l.mu.Unlock()
	if found == nil {
		return // it has been answered
	}
	f.Params = with(f.Params, found.number(), "requestId")
	_ = l.proc.send(f) // fails if the program has ended or does not read
	found.out.deliver(nil, true)
}

// drop cancels the calls of a scope whose client has gone.
func (l *link) drop(scope any, reason string) {
	l.mu.Lock()
	var gone []*call
	for _, c := range l.calls {
		if c.scope == scope {
			gone = append(gone, c)
			l.abandon(c)
		}
	}
	l.mu.Unlock()
	for _, c := range gone {
		params, _ := json.Marshal(map[string]any{"requestId": c.n, "reason": reason}) // cannot fail
		_ = l.proc.send(frame{Method: "notifications/cancelled", Params: params})     // the program may have ended
		c.out.deliver(nil, true)
	}
}

// youngest returns the newest call that matches, or nil.
func (l *link) youngest(match func(*call) bool) (last *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if match(c) && (last == nil || c.n > last.n) {
			last = c
		}
	}
	return last
}

// receive implements receiver. It skips a line that is not a message: many programs print a
// greeting, for example, and this must not end the conversation.
func (l *link) receive(line []byte) {
	<-l.ready // the program may answer before start returns
	if !l.spoke.Load() {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	frames, _, err := decode(line)
	if err != nil {
		l.c.Logger.Warn("the MCP server has written something to its standard output that is not a message", "text",
			string(line[:min(len(line), 200)]))
		return
	}
	for _, f := range frames {
		switch {
		case f.isAnswer():
			l.answer(f)
		case f.isCall():
			l.peer.ask(f)
		default:
			l.note(f)
		}
	}
}

// byteOrderMark may precede the output of a Windows program.
var byteOrderMark = []byte("\xef\xbb\xbf")

func (l *link) answer(f frame) {
	n, err := strconv.ParseInt(string(f.ID), 10, 64)
	if err != nil {
		return
	}
	l.mu.Lock()
	c := l.calls[n]
	delete(l.calls, n)
	l.left.Drop(n)
	l.mu.Unlock()
	if !l.spoke.Swap(true) {
		l.onWord()
	}
	if c == nil {
		return // it was cancelled
	}
	if at(f.Result, "_meta", mcp.MetaSubscription) != nil {
		f.Result = with(f.Result, c.id, "_meta", mcp.MetaSubscription)
	}
	f.ID, f.list = c.id, lists.Of(c.method) != lists.None
	l.peer.answered(c.method, f)
	c.out.deliver(&f, true)
}

// note handles a notification. It finds the call that the notification names.
func (l *link) note(f frame) {
	if id := at(f.Params, "_meta", mcp.MetaSubscription); id != nil {
		if c := l.find(func(c *call) bool { return same(c.number(), id) }); c != nil {
			f.Params = with(f.Params, c.id, "_meta", mcp.MetaSubscription)
			c.out.deliver(&f, false)
			return
		}
	}
	if f.Method != "notifications/progress" {
		l.peer.note(f)
		return
	}
	token := at(f.Params, "progressToken")
	c := l.find(func(c *call) bool {
		if l.shared {
			return same(c.number(), token)
		}
		return same(c.token, token)
	})
	if c == nil {
		return // the call has ended
	}
	if l.shared {
		f.Params = with(f.Params, c.token, "progressToken")
	}
	c.out.deliver(&f, false)
}

func (l *link) find(is func(*call) bool) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if is(c) {
			return c
		}
	}
	return nil
}

// tooLarge implements receiver. It fails all calls, because the message's call is unknown.
func (l *link) tooLarge() { l.fail("The answer of the MCP server is too large.") }

// ended implements receiver.
func (l *link) ended(*process) {
	<-l.ready
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.onEnd()
	l.fail("The MCP server has ended.")
	l.peer.lost()
}

// fail answers every call with an error, oldest first.
func (l *link) fail(why string) {
	l.mu.Lock()
	calls := make([]*call, 0, len(l.calls))
	for _, c := range l.calls {
		calls = append(calls, c)
	}
	clear(l.calls)
	l.mu.Unlock()
	slices.SortFunc(calls, func(a, b *call) int { return int(a.n - b.n) })
	for _, c := range calls {
		f := failure(c.id, mcp.CodeInternal, why)
		l.peer.answered(c.method, f)
		c.out.deliver(&f, true)
	}
}

func (l *link) close() { l.proc.stop() }
