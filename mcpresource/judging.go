package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
)

// judging is the context of a running request with a token. It validates the token again every
// judgeAgain, until it is stopped, the token is invalid, or the request must end. An outage does not
// end the request: the next request reports it. During the overtime the token is still validated,
// if the validator can.
//
// It is a context itself because context.WithDeadlineCause would cost each request nine
// allocations, and most requests end before the first validation.
type judging struct {
	context.Context // canceled by end
	principal       *Principal
	caller          *caller
	end             context.CancelCauseFunc
	expires         time.Time     // of the token
	overtime        time.Duration // how much longer the request may run
	cause           error         // of the cancellation at that time
	leave           func()        // stops watching the status list

	mu    sync.Mutex  // guards the fields below
	timer *time.Timer // of the next validation, or of the end
	over  bool        // the request has ended
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

// judged returns the time until which validating the token is useful.
func (j *judging) judged() time.Time {
	if !token.SeesRevocation(j.principal) {
		return j.expires
	}
	return j.last()
}

// wait sets the timer of the next validation, or of the end if validating would then be useless.
func (j *judging) wait() {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	switch {
	case j.over:
	case j.judged().After(now.Add(judgeAgain)):
		j.timer = time.AfterFunc(judgeAgain, j.judge)
	default:
		j.timer = time.AfterFunc(j.last().Sub(now), j.expire)
	}
}

// stop stops the timer, because the request has ended.
func (j *judging) stop() {
	j.leave()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.over = true
	j.timer.Stop()
}

// judge validates the token. The request ends in time, however long that takes.
func (j *judging) judge() {
	defer time.AfterFunc(time.Until(j.last()), j.expire).Stop()
	if err := j.verdict(); err != nil && !token.Outage(err) {
		j.end(err)
		return
	}
	if j.Err() == nil {
		j.wait()
	}
}

func (j *judging) expire() { j.end(j.cause) }

// verdict returns the reason to end the request, or nil. Another clock may see the token as expired
// just before its end. From then on, only a revocation ends a request that may outlive its token.
func (j *judging) verdict() error {
	outlives := func() bool { return j.overtime > 0 && time.Until(j.expires) < judgeAgain }
	if !outlives() {
		if err := token.Still(j, j.principal, j.caller.again); err == nil || !outlives() {
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

// judging returns the context of a request with a token. A stream ends when its token expires or is
// revoked. A call ends when its token is revoked. When the token expires, the call may already have
// had effects, so it can continue for Limits.Overtime.
func (g *Guard) judging(ctx context.Context, end context.CancelCauseFunc, p *passage) *judging {
	j := &judging{Context: ctx, principal: p.principal, caller: &p.caller, end: end, cause: errExpired}
	left := p.principal.ExpiresAt.Add(g.c.ClockSkew).Sub(g.c.Now())
	if !p.listens && g.c.Limits.Overtime > 0 {
		left -= g.c.ClockSkew // introspecting servers may allow no skew
		j.overtime, j.cause = token.Overtime(p.principal, g.c.Limits.Overtime), errTimeout
	}
	j.expires = time.Now().Add(left)
	j.wait()
	j.leave = token.WatchStatus(p.principal, end)
	return j
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
