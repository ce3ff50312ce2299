// Package stopping ends HTTP servers so that requests which were let in are answered: streams that listen end at
// once, other requests go on, and what is left after a while ends with a cause that its handler can tell.
package stopping

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// Err is the cause of the end of a request whose server stops.
var Err = errors.New("the server is stopping")

const (
	// Finish is how long requests may go on by default.
	Finish = 30 * time.Second
	// politeTime is for those who can end their streams themselves, with a last word.
	politeTime = time.Second
	// answerTime is for the answers to requests that were ended.
	answerTime = 2 * time.Second
)

// Requests is the life of the requests of one or more servers.
type Requests struct {
	ctx   context.Context
	end   context.CancelCauseFunc
	begun context.Context // ends when the servers begin to stop
	begin context.CancelFunc
}

type begunKey struct{}

// NewRequests returns the life of requests with the values of ctx, but not its end.
func NewRequests(ctx context.Context) *Requests {
	r := &Requests{}
	r.begun, r.begin = context.WithCancel(context.Background())
	ctx = context.WithValue(context.WithoutCancel(ctx), begunKey{}, r.begun)
	r.ctx, r.end = context.WithCancelCause(ctx)
	return r
}

// Context is the base context of the requests.
func (r *Requests) Context() context.Context { return r.ctx }

// Close ends the requests at once.
func (r *Requests) Close() {
	r.begin()
	r.end(Err)
}

// OnBegin has f called when the server of the request of ctx begins to stop, unless leave is called before.
func OnBegin(ctx context.Context, f func()) (leave func() bool) {
	begun, ok := ctx.Value(begunKey{}).(context.Context)
	if !ok { // of a server that ends in its own way
		return func() bool { return true }
	}
	return context.AfterFunc(begun, f)
}

// End ends servers. Each of endings is called first, and may take as long as requests may go on.
func (r *Requests) End(finish time.Duration, endings []func(context.Context) error, servers ...*http.Server) error {
	cut := time.AfterFunc(finish, r.Close)
	defer cut.Stop()
	ctx, done := context.WithTimeout(context.Background(), finish+answerTime)
	defer done()
	if len(endings) == 0 {
		r.begin()
	} else {
		begin := time.AfterFunc(politeTime, r.begin)
		defer begin.Stop()
	}
	var all sync.WaitGroup
	for _, ending := range endings {
		all.Go(func() { _ = ending(ctx) }) // what it did not end is cut
	}
	errs := make([]error, len(servers))
	for i, s := range servers {
		all.Go(func() { errs[i] = s.Shutdown(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}
