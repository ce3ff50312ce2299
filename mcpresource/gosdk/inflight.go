package gosdk

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// inflight tracks the calls of one connection, for the adapter's own transports.
type inflight struct {
	mu      sync.Mutex // guards the fields below
	calls   map[jsonrpc.ID]*pending
	opening jsonrpc.ID     // of initialize, until it is answered
	version string         // "" until it is negotiated
	muted   map[string]int // progress tokens of cancelled calls
	idle    chan struct{}  // closed when all calls are answered; nil unless someone waits
}

// pending is an unanswered call.
type pending struct {
	batch     *batch // nil outside a batch
	token     string // of progress, as JSON
	listens   bool
	modern    bool // of 2026-07-28
	cancelled bool
}

// batch collects the responses to the calls of one line.
type batch struct {
	ids     map[jsonrpc.ID]bool // of all its calls, even if answered before the next one is read
	left    int
	answers []json.RawMessage
}

func newInflight() *inflight {
	return &inflight{calls: map[jsonrpc.ID]*pending{}, muted: map[string]int{}}
}

// begin registers a call. It returns false if the id is in use.
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

// cancel marks a call as cancelled, so that no response is sent. It reports whether the call is of
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

// end takes the response to a call and returns the line to send. It returns nil for a cancelled
// call, and for a batch until all its calls are answered. The final response of a subscription is
// sent even if it was cancelled.
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
		_ = json.Unmarshal(r.Result, &opened) // encoded by the SDK
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

// rested returns a channel that is closed when all calls are answered, except subscriptions, which
// do not end by themselves. Only one goroutine may wait.
func (f *inflight) rested() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	idle := make(chan struct{})
	f.idle = idle
	f.rest()
	return idle
}

// rest wakes the waiting goroutine. The lock is held.
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

// add returns the whole response of the batch when it is complete. The lock is held.
func (b *batch) add(answer []byte) []byte {
	b.answers = append(b.answers, answer)
	if b.left > 0 {
		return nil
	}
	line, _ := json.Marshal(b.answers) // already valid JSON
	return line
}

// mutes reports whether a notification concerns a cancelled call (RS-87).
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
