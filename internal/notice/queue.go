package notice

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mail"
)

const (
	maxQueued   = 256
	attemptTime = 30 * time.Second
)

// pauses come between the attempts to deliver one thing.
var pauses = [...]time.Duration{2 * time.Second, 15 * time.Second, time.Minute}

var errFull = errors.New("too many wait already")

// queue delivers things one after the other, in the background. Its goroutine ends with the last
// of them.
type queue[T any] struct {
	sleep   func(context.Context, time.Duration) error
	deliver func(context.Context, T) error
	lost    func(T, error)

	mu      sync.Mutex // guards what follows
	waiting []T
	running bool
	idle    chan struct{} // closed when there is nothing to do
	ctx     context.Context
	stop    context.CancelFunc
}

func newQueue[T any](
	sleep func(context.Context, time.Duration) error, deliver func(context.Context, T) error, lost func(T, error),
) *queue[T] {
	q := &queue[T]{sleep: sleep, deliver: deliver, lost: lost, idle: make(chan struct{})}
	close(q.idle)
	q.ctx, q.stop = context.WithCancel(context.Background())
	return q
}

// add takes one thing, or loses it when too many wait.
func (q *queue[T]) add(thing T) {
	q.mu.Lock()
	full := len(q.waiting) >= maxQueued
	if !full {
		q.waiting = append(q.waiting, thing)
		if !q.running {
			q.running, q.idle = true, make(chan struct{})
			go q.run()
		}
	}
	q.mu.Unlock()
	if full {
		q.lost(thing, errFull)
	}
}

func (q *queue[T]) run() {
	for {
		thing, ok := q.next()
		if !ok {
			return
		}
		if err := q.attempt(thing); err != nil {
			q.lost(thing, err)
		}
	}
}

func (q *queue[T]) next() (thing T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.running = false
		close(q.idle)
		return thing, false
	}
	thing = q.waiting[0]
	q.waiting = q.waiting[1:]
	return thing, true
}

// attempt delivers one thing, again if need be, but not what was refused for good.
func (q *queue[T]) attempt(thing T) error {
	for i := 0; ; i++ {
		ctx, cancel := context.WithTimeout(q.ctx, attemptTime)
		err := q.deliver(ctx, thing)
		cancel()
		if err == nil || errors.Is(err, mail.ErrRefused) || i == len(pauses) {
			return err
		}
		if q.sleep(q.ctx, pauses[i]) != nil {
			return err
		}
	}
}

// drain waits until there is nothing to do. When ctx ends before, what is left is lost.
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
