package users

import (
	"context"
	"errors"
	"sync"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

var errFull = errors.New("too many attempts wait")

// queues has a queue for each key with attempts. It is not a bounded.Map, because a queue with an
// attempt must not be dropped. There are at most as many queues as requests.
type queues struct {
	turns  int // concurrent turns
	length int // attempts in the queue, with and without a turn

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

// join enters the queue of a key and waits for a turn. It returns errFull, or the error of ctx.
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
