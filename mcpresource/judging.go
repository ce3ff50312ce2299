package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
)

// judgings validates the tokens of running requests periodically. All share one timer: most
// requests end before it fires, and a timer for each would cost more than its place in the queue.
// The zero value is ready to use.
type judgings struct {
	mu          sync.Mutex // guards the fields below and the queue's elements
	first, last *judging   // ordered by due time
	armed       bool       // whether the timer is set
}

// judging is the token of a running request together with the request's context.
type judging struct {
	context.Context // which end cancels
	principal       *Principal
	again           func(context.Context) (*Principal, error) // validates the token again
	end             context.CancelCauseFunc
	expires         time.Time     // of the token
	overtime        time.Duration // how much longer the request may run
	cause           error         // of the cancellation at that time

	expiry     *time.Timer // ends the request at last(); nil for most requests, which end long before
	due        time.Time
	prev, next *judging
	waits      bool // is in the queue
	over       bool // the request has ended
}

// add validates a token every five seconds until it is removed, becomes invalid, or expires after
// left. The request ends with the token or after its overtime. During the overtime the token is
// still validated, if the validator can. An outage does not end the request: the next request
// reports it.
func (s *judgings) add(j *judging, left time.Duration) *judging {
	j.expires = time.Now().Add(left)
	s.enqueue(j)
	return j
}

// last returns the time when the request ends.
func (j *judging) last() time.Time { return j.expires.Add(j.overtime) }

// Deadline implements [context.Context].
func (j *judging) Deadline() (time.Time, bool) {
	if d, ok := j.Context.Deadline(); ok && d.Before(j.last()) {
		return d, true
	}
	return j.last(), true
}

// Err implements [context.Context].
func (j *judging) Err() error {
	err := j.Context.Err()
	if err != nil && context.Cause(j.Context) == j.cause {
		return context.DeadlineExceeded
	}
	return err
}

// endInTime sets a timer for the end of the request. Most requests end before their first
// validation and need no timer. mu is held.
func (j *judging) endInTime(now time.Time) {
	if j.expiry == nil {
		j.expiry = time.AfterFunc(j.last().Sub(now), func() { j.end(j.cause) })
	}
}

// judged returns the time until which validating the token is useful.
func (j *judging) judged() time.Time {
	if !token.SeesRevocation(j.principal) {
		return j.expires
	}
	return j.last()
}

// enqueue appends a token to the queue, unless its request has ended or validation would no longer
// apply at its turn.
func (s *judgings) enqueue(j *judging) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.over {
		return
	}
	now := time.Now()
	if j.due = now.Add(judgeAgain); !j.judged().After(j.due) {
		j.endInTime(now)
		return
	}
	j.waits, j.prev = true, s.last
	if s.last == nil {
		s.first = j
	} else {
		s.last.next = j
	}
	s.last = j
	if !s.armed {
		s.armed = true
		time.AfterFunc(judgeAgain, s.judge)
	}
}

// remove stops the validation of a token whose request has ended.
func (s *judgings) remove(j *judging) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.over = true
	if j.expiry != nil {
		j.expiry.Stop()
	}
	s.dequeue(j)
}

// dequeue removes a token from the queue. mu is held.
func (s *judgings) dequeue(j *judging) {
	if !j.waits {
		return
	}
	if j.prev == nil {
		s.first = j.next
	} else {
		j.prev.next = j.next
	}
	if j.next == nil {
		s.last = j.prev
	} else {
		j.next.prev = j.prev
	}
	j.prev, j.next, j.waits = nil, nil, false
}

// judge validates the tokens that are due, each in its own goroutine because a validator may send a
// request.
func (s *judgings) judge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for s.first != nil && !s.first.due.After(now) {
		j := s.first
		s.dequeue(j)
		j.endInTime(now) // however long the validation takes
		go s.judgeOne(j)
	}
	if s.armed = s.first != nil; s.armed {
		time.AfterFunc(s.first.due.Sub(now), s.judge)
	}
}

func (s *judgings) judgeOne(j *judging) {
	if err := j.verdict(); err != nil && !token.Outage(err) {
		j.end(err)
		return
	}
	if j.Err() == nil {
		s.enqueue(j)
	}
}

// verdict returns the reason to end the request, or nil. Another clock may see the token as expired
// just before its end. From then on, only a revocation ends a request that may outlive its token.
func (j *judging) verdict() error {
	outlives := func() bool { return j.overtime > 0 && time.Until(j.expires) < judgeAgain }
	if !outlives() {
		if err := token.Still(j, j.principal, j.again); err == nil || !outlives() {
			return err
		}
	}
	if !token.SeesRevocation(j.principal) {
		return nil
	}
	return token.Revoked(j, j.principal)
}

// judgeAgain is how often the token of a running request is validated again, so that streams end
// after a revocation. For a token with a status list, this only checks its key: a thief of the key
// could name an entry that is never revoked.
const judgeAgain = 5 * time.Second

// lifetime returns the context of a request. A stream ends when its token expires or is revoked. A
// call ends when its token is revoked. When the token expires, the call may already have had
// effects, so it can continue for Limits.Overtime.
func (g *Guard) lifetime(ctx context.Context, end context.CancelCauseFunc, p *passage) (context.Context, func()) {
	if p.principal == nil {
		return g.timed(ctx, p)
	}
	j := &judging{Context: ctx, principal: p.principal, again: p.caller.again, end: end, cause: errExpired}
	left := p.principal.ExpiresAt.Add(g.c.ClockSkew).Sub(g.c.Now())
	if !p.listens && g.c.Limits.Overtime > 0 {
		left -= g.c.ClockSkew // introspecting servers may allow no skew
		j.overtime, j.cause = token.Overtime(p.principal, g.c.Limits.Overtime), errTimeout
	}
	judged := g.judgings.add(j, left)
	ctx, untime := g.timed(judged, p)
	leave := token.WatchStatus(p.principal, end)
	return ctx, func() {
		g.judgings.remove(judged)
		leave()
		untime()
	}
}

var (
	errTimeout = errors.New("mcpresource: the operation took too long")
	errExpired = fmt.Errorf("mcpresource: the token expired under its request: %w", context.DeadlineExceeded)
)

// timed limits the time of requests that are not streams.
func (g *Guard) timed(ctx context.Context, p *passage) (context.Context, context.CancelFunc) {
	if g.c.Limits.Timeout <= 0 || p.body == nil || p.listens {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, g.c.Limits.Timeout, errTimeout)
}

// endedEarly returns the reason why a request had to end before its token expired, or nil.
func endedEarly(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, ErrInvalidToken) || errors.Is(err, ErrUnavailable) {
		return err
	}
	return nil
}
