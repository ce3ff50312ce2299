// Package stopping shuts down HTTP servers so that accepted requests are answered. Listening
// streams end at once, and other requests continue. After a while, the remaining requests are
// canceled with a cause that handlers can recognize.
package stopping

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// Err is the cause of canceled requests of a stopping server.
var Err = errors.New("the server is stopping")

const (
	// Finish is how long requests may continue by default.
	Finish = 30 * time.Second
	// politeTime is for handlers that can end their streams themselves, with a last message.
	politeTime = time.Second
	// answerTime is for the responses of canceled requests.
	answerTime = 2 * time.Second
)

// Requests is the lifetime of the requests of one or more servers.
type Requests struct {
	ctx   context.Context
	end   context.CancelCauseFunc
	begun context.Context // ends when the servers start to stop
	begin context.CancelFunc
}

type begunKey struct{}

// NewRequests returns a lifetime with the values of ctx, but not its cancellation.
func NewRequests(ctx context.Context) *Requests {
	r := &Requests{}
	r.begun, r.begin = context.WithCancel(context.Background())
	ctx = context.WithValue(context.WithoutCancel(ctx), begunKey{}, r.begun)
	r.ctx, r.end = context.WithCancelCause(ctx)
	return r
}

// Context returns the base context of the requests.
func (r *Requests) Context() context.Context { return r.ctx }

// Close cancels the requests at once.
func (r *Requests) Close() {
	r.begin()
	r.end(Err)
}

// OnBegin calls f when the server of ctx's request starts to stop, unless leave is called before.
func OnBegin(ctx context.Context, f func()) (leave func() bool) {
	begun, ok := ctx.Value(begunKey{}).(context.Context)
	if !ok { // a server without this package
		return func() bool { return true }
	}
	return context.AfterFunc(begun, f)
}

// End stops servers. It first calls each of endings, which may take as long as requests may
// continue.
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
		all.Go(func() { _ = ending(ctx) }) // requests that it did not end are canceled
	}
	errs := make([]error, len(servers))
	for i, s := range servers {
		all.Go(func() { errs[i] = s.Shutdown(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}
