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

// sink takes the messages that belong to a call. The last one is final; a call that is
// given up ends with none, nil.
type sink interface {
	deliver(f *frame, final bool)
}

// peer takes what the program says outside of any call, and hears when it ends.
type peer interface {
	ask(f frame)                     // a request to the client
	note(f frame)                    // a notification
	answered(method string, f frame) // a response, before the call's own sink has it
	lost()                           // the program has ended
}

// link carries calls to a program and what it says back. Ids are exchanged for numbers
// of our own, since several clients may use the same; progress tokens are exchanged
// where several share the program.
type link struct {
	c      *Config
	peer   peer
	shared bool
	ready  chan struct{} // closed when proc is set
	proc   *process
	onEnd  func() // called first when the program has ended
	onWord func() // called with its first answer
	// probe is set while it is only asked what it speaks: a program that ends over that has
	// not failed.
	probe atomic.Bool
	spoke atomic.Bool // it has answered something

	mu    sync.Mutex // guards the rest
	last  int64
	calls map[int64]*call
	left  *bounded.Map[int64, any] // scopes of calls that were given up and not answered
	over  bool
}

// call is a request that the program has not answered.
type call struct {
	n      int64
	id     json.RawMessage // as its client knows it
	token  json.RawMessage // of its progress, as its client knows it
	method string
	person string // who waits; "" for the gateway
	scope  any    // whose id it is
	out    sink
	logs   bool // asks for log messages (2026-07-28)
}

var errPending = errors.New("too many requests wait for an answer")

func newLink(c *Config, shared bool) *link {
	return &link{
		c: c, shared: shared, ready: make(chan struct{}), calls: map[int64]*call{},
		left: bounded.NewShared[int64](c.MaxPending, c.Now, func(scope any) any { return scope }),
	}
}

// start runs the program.
func (l *link) start(env []string, to peer) (err error) {
	l.peer = to
	l.proc, err = start(l.c, env, l)
	close(l.ready)
	return err
}

// call sends a request of a person, "" for the gateway's own; what comes of it goes to out.
func (l *link) call(f frame, person string, scope any, out sink) (*call, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
		return nil, errEnded
	case len(l.calls) >= l.c.MaxPending, l.c.Shared && person != "" && l.callsOf(person) >= max(l.c.MaxPending/4, 1):
		return nil, errPending // one person cannot keep the others waiting
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

// callsOf counts the calls of a person. mu is held.
func (l *link) callsOf(person string) (n int) {
	for _, c := range l.calls {
		if c.person == person {
			n++
		}
	}
	return n
}

// abandon remembers a call that no client waits for any more, where what the program still
// says about it could reach another caller. mu is held.
func (l *link) abandon(c *call) {
	delete(l.calls, c.n)
	if l.c.Shared {
		l.left.Put(c.n, c.scope, time.Time{})
	}
}

// abandoned reports whether a call of another scope was given up that the program has
// not answered.
func (l *link) abandoned(scope any) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left.Len() > l.left.Count(scope, time.Time{})
}

func (c *call) number() json.RawMessage { return strconv.AppendInt(nil, c.n, 10) }

// send passes on what needs no answer.
func (l *link) send(f frame) error { return l.proc.send(f) }

// cancel tells the program that its client no longer waits (MCP, Cancellation). The
// program need not answer then, so the gateway does not wait for that either.
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
	_ = l.proc.send(f) // it has ended, or does not read
	found.out.deliver(nil, true)
}

// drop cancels the calls of a scope, whose client is gone.
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
		params, _ := json.Marshal(map[string]any{"requestId": c.n, "reason": reason}) // always encodes
		_ = l.proc.send(frame{Method: "notifications/cancelled", Params: params})     // likewise
		c.out.deliver(nil, true)
	}
}

// youngest is the call that began last, of those that match; nil for none.
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

// receive implements receiver. What is not a message is a mistake that many programs
// make, such as a greeting, and no reason to end the conversation.
func (l *link) receive(line []byte) {
	<-l.ready // it may be quick
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

// byteOrderMark is what programs of Windows may begin with.
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

// note finds the call that a notification names.
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
		return // of a call that is over
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

// tooLarge implements receiver. Whose answer it was cannot be told.
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

// fail answers every call, in the order in which they came.
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

// close ends the program.
func (l *link) close() { l.proc.stop() }
