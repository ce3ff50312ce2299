package gosdk

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// inflight keeps account of the calls of one connection, for transports of ours.
type inflight struct {
	mu      sync.Mutex // guards what follows
	calls   map[jsonrpc.ID]*pending
	opening jsonrpc.ID     // of initialize, until it is answered
	version string         // "" until it is negotiated
	muted   map[string]int // progress tokens of cancelled calls
	idle    chan struct{}  // closed when nothing is left to answer; nil without a waiting goroutine
}

// pending is a call that has not been answered.
type pending struct {
	batch     *batch // nil for a call of its own
	token     string // of progress, as JSON
	listens   bool
	modern    bool // of 2026-07-28
	cancelled bool
}

// batch collects the answers to the calls of one line.
type batch struct {
	ids     map[jsonrpc.ID]bool // of the calls taken: the first may be answered before another one comes
	left    int
	answers []json.RawMessage
}

func newInflight() *inflight {
	return &inflight{calls: map[jsonrpc.ID]*pending{}, muted: map[string]int{}}
}

// begin reports false for an id that is in use.
func (f *inflight) begin(r *jsonrpc.Request, m message, b *batch) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[r.ID] != nil || b != nil && b.ids[r.ID] {
		return false
	}
	f.calls[r.ID] = &pending{
		batch: b, token: string(m.Params.Meta["progressToken"]), listens: r.Method == "subscriptions/listen",
		modern: m.isModern(),
	}
	if b != nil {
		b.left++
		b.ids[r.ID] = true
	}
	if r.Method == "initialize" {
		f.opening = r.ID
	}
	return true
}

// cancel marks a call to which no answer is expected any more, and reports whether it is one of
// 2026-07-28.
func (f *inflight) cancel(m message) (modern bool) {
	var raw any
	if json.Unmarshal(m.Params.Request, &raw) != nil {
		return false
	}
	id, err := jsonrpc.MakeID(raw)
	if err != nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.calls[id]
	if p == nil {
		return false
	}
	if !p.cancelled && p.token != "" {
		f.muted[p.token]++
	}
	p.cancelled = true
	return p.modern
}

// end takes the answer to a call, and returns the line that has to be sent: none to a
// cancelled call, and one for a batch when all its calls have been answered. The answer
// that ends a subscription is sent although it was cancelled.
func (f *inflight) end(r *jsonrpc.Response) ([]byte, error) {
	line, err := jsonrpc.EncodeMessage(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a response: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.ID == f.opening && r.Result != nil {
		var opened struct {
			Version string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(r.Result, &opened) // the SDK has written it
		f.version, f.opening = opened.Version, jsonrpc.ID{}
	}
	p := f.calls[r.ID]
	delete(f.calls, r.ID)
	f.rest()
	if p == nil {
		return line, nil
	}
	if p.cancelled && p.token != "" {
		if f.muted[p.token]--; f.muted[p.token] <= 0 {
			delete(f.muted, p.token)
		}
	}
	switch {
	case p.batch != nil:
		p.batch.left--
		return p.batch.add(line), nil
	case p.cancelled && !p.listens: // RS-87
		return nil, nil
	}
	return line, nil
}

// rested returns what is closed when every call has been answered but subscriptions,
// which have no end of their own. One may wait at a time.
func (f *inflight) rested() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	idle := make(chan struct{})
	f.idle = idle
	f.rest()
	return idle
}

// rest wakes who waits. The lock is held.
func (f *inflight) rest() {
	if f.idle == nil {
		return
	}
	for _, p := range f.calls {
		if !p.listens {
			return
		}
	}
	close(f.idle)
	f.idle = nil
}

// add returns the whole answer when nothing is left. The lock is held.
func (b *batch) add(answer []byte) []byte {
	b.answers = append(b.answers, answer)
	if b.left > 0 {
		return nil
	}
	line, _ := json.Marshal(b.answers) // each has just been encoded
	return line
}

// mutes reports whether a notification is about a cancelled call (RS-87).
func (f *inflight) mutes(r *jsonrpc.Request) bool {
	if r.Method != "notifications/progress" {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.muted) == 0 {
		return false
	}
	var p struct {
		Token json.RawMessage `json:"progressToken"`
	}
	return json.Unmarshal(r.Params, &p) == nil && f.muted[string(p.Token)] > 0
}

func (f *inflight) negotiated() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version
}
