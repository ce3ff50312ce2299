package notice

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mail"
)

const (
	// maxQueued limits the queued items of all users together.
	maxQueued = 1024
	// maxOfKind limits the queued items of one kind for one user. Each kind has its own limit, so
	// that a thousand renamed passkeys cannot crowd out the notice of a new password.
	maxOfKind = 8
	// maxAtOnce limits concurrent deliveries.
	maxAtOnce   = 4
	attemptTime = 30 * time.Second
)

// pauses holds the waits between the attempts to deliver one item.
var pauses = [...]time.Duration{2 * time.Second, 15 * time.Second, time.Minute}

var errFull = errors.New("the queue is full")

// destination is the user of an item, and its kind.
type destination struct{ person, kind string }

// queue delivers items in the background. Each user has a lane, which delivers in order. A lane
// that waits for a retry blocks no other lane, and the lanes take turns.
type queue[T any] struct {
	sleep   func(context.Context, time.Duration) error
	deliver func(context.Context, T) error
	lost    func(T, error)
	to      func(T) destination
	turns   chan struct{} // holds one element per running delivery

	mu      sync.Mutex // guards the following fields
	lanes   map[string][]T
	waiting int
	idle    chan struct{} // closed while lanes is empty
	ctx     context.Context
	stop    context.CancelFunc
}

func newQueue[T any](
	sleep func(context.Context, time.Duration) error, to func(T) destination,
	deliver func(context.Context, T) error, lost func(T, error),
) *queue[T] {
	q := &queue[T]{
		sleep: sleep, deliver: deliver, lost: lost, to: to,
		turns: make(chan struct{}, maxAtOnce), lanes: map[string][]T{}, idle: make(chan struct{}),
	}
	close(q.idle)
	q.ctx, q.stop = context.WithCancel(context.Background())
	return q
}

// add queues an item. If the queue is full, it or a later item of the longest lane is lost.
func (q *queue[T]) add(item T) {
	if dropped, full := q.put(item); full {
		q.lost(dropped, errFull)
	}
}

func (q *queue[T]) put(item T) (dropped T, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	to := q.to(item)
	lane, runs := q.lanes[to.person]
	if q.ofKind(lane, to.kind) >= maxOfKind {
		return item, true
	}
	if q.waiting >= maxQueued {
		if dropped, full = q.evict(len(lane) + 1); !full {
			return item, true
		}
	}
	if len(q.lanes) == 0 {
		q.idle = make(chan struct{})
	}
	q.lanes[to.person] = append(lane, item)
	q.waiting++
	if !runs {
		go q.run(to.person)
	}
	return dropped, full
}

func (q *queue[T]) ofKind(lane []T, kind string) (n int) {
	for _, item := range lane {
		if q.to(item).kind == kind {
			n++
		}
	}
	return n
}

// evict removes the last item of the longest lane, if that lane has more than least items.
func (q *queue[T]) evict(least int) (item T, ok bool) {
	var longest string
	for person, lane := range q.lanes {
		if len(lane) > max(least, len(q.lanes[longest])) {
			longest = person
		}
	}
	lane := q.lanes[longest]
	if len(lane) <= least {
		return item, false
	}
	q.lanes[longest] = lane[:len(lane)-1]
	q.waiting--
	return lane[len(lane)-1], true
}

// run delivers the items of one lane. The lane ends with its last item.
func (q *queue[T]) run(person string) {
	for {
		item, ok := q.next(person)
		if !ok {
			return
		}
		if err := q.attempt(item); err != nil {
			q.lost(item, err)
		}
	}
}

func (q *queue[T]) next(person string) (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lane := q.lanes[person]
	if len(lane) == 0 {
		delete(q.lanes, person)
		if len(q.lanes) == 0 {
			close(q.idle)
		}
		return item, false
	}
	q.lanes[person] = lane[1:]
	q.waiting--
	return lane[0], true
}

// attempt delivers one item, and tries again unless the receiver refused it permanently.
func (q *queue[T]) attempt(item T) error {
	for i := 0; ; i++ {
		err := q.once(item)
		if err == nil || errors.Is(err, mail.ErrRefused) || i == len(pauses) {
			return err
		}
		if q.sleep(q.ctx, pauses[i]) != nil {
			return err
		}
	}
}

func (q *queue[T]) once(item T) error {
	select {
	case q.turns <- struct{}{}:
		defer func() { <-q.turns }()
	case <-q.ctx.Done():
		return q.ctx.Err()
	}
	ctx, cancel := context.WithTimeout(q.ctx, attemptTime)
	defer cancel()
	return q.deliver(ctx, item)
}

// drain waits until the queue is empty. If ctx ends first, the remaining items are lost.
func (q *queue[T]) drain(ctx context.Context) {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
		q.stop()
		<-idle
	}
}
