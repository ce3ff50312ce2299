package users

import (
	"context"
	"errors"
	"sync"

	"github.com/mcp-authd/mcp-authd/storage"
)

var errFull = errors.New("too many attempts wait")

// queues has a queue for each key under which attempts are under way. It is no bounded.Map: none
// may be forgotten while an attempt is in it, and there are no more of them than requests.
type queues struct {
	turns  int // at once
	length int // among them those that wait for a turn

	mu    sync.Mutex // guards byKey
	byKey map[storage.Hash]*queue
}

type queue struct {
	length int
	turns  chan struct{}
}

func newQueues(turns, length int) *queues {
	return &queues{turns: turns, length: length, byKey: map[storage.Hash]*queue{}}
}

// join takes a place in the queue of a key, and waits for its turn. The error is errFull, or that
// of ctx.
func (q *queues) join(ctx context.Context, key storage.Hash) (leave func(), err error) {
	in, err := q.enter(key)
	if err != nil {
		return nil, err
	}
	select {
	case in.turns <- struct{}{}:
		return func() { <-in.turns; q.leave(key, in) }, nil
	case <-ctx.Done():
		q.leave(key, in)
		return nil, ctx.Err()
	}
}

func (q *queues) enter(key storage.Hash) (*queue, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	in := q.byKey[key]
	if in == nil {
		in = &queue{turns: make(chan struct{}, q.turns)}
		q.byKey[key] = in
	}
	if in.length >= q.length {
		return nil, errFull
	}
	in.length++
	return in, nil
}

func (q *queues) leave(key storage.Hash, in *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if in.length--; in.length == 0 {
		delete(q.byKey, key)
	}
}
