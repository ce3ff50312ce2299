package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// judgeAgain is how often the token of a request under way is validated again when it
// names no status list: so that a stream ends, too, where revocation is seen otherwise.
// Of one that does, it is the key: a thief of it names a place that is never revoked.
const judgeAgain = 5 * time.Second

// lifetime returns the context of a request. A stream ends when its token expires or is revoked. A call ends when its
// token is revoked: it may have had its effect already, so the expiry of the token that let it in does not cut it, and
// Limits.Overtime bounds it.
func (g *Guard) lifetime(ctx context.Context, end context.CancelCauseFunc, p *passage) (context.Context, func()) {
	if p.principal == nil {
		return g.timed(ctx, p)
	}
	j := &judging{Context: ctx, principal: p.principal, end: end, cause: errExpired}
	left := p.principal.ExpiresAt.Add(g.c.ClockSkew).Sub(g.c.Now())
	if !p.listens && g.c.Limits.Overtime > 0 {
		left -= g.c.ClockSkew // servers that are asked about tokens may allow for none
		j.overtime, j.cause = p.principal.overtime(g.c.Limits.Overtime), errTimeout
	}
	judged := g.judgings.add(j, left)
	ctx, untime := g.timed(judged, p)
	leave := func() {}
	if status := p.principal.status; status != nil {
		leave = status.Watch(func(err error) { end(statusError(err)) })
	}
	return ctx, func() {
		g.judgings.remove(judged)
		leave()
		untime()
	}
}

// unseenOvertime bounds the overtime of a call whose revocation would not be seen in it: RFC 7662 has one answer for a
// token that has expired and one that is revoked.
const unseenOvertime = time.Minute

// overtime returns how long a call may outlive the token, at most longest. The validator of a JWT goes by its status
// list, which knows expired tokens, or knows of no revocation at all.
func (p *Principal) overtime(longest time.Duration) time.Duration {
	if p.revoked == nil && p.signed == nil {
		return min(longest, unseenOvertime)
	}
	return longest
}

var (
	errTimeout = errors.New("mcpresource: the operation took too long")
	errExpired = fmt.Errorf("mcpresource: the token expired under its request: %w", context.DeadlineExceeded)
)

// timed bounds the time of what is no stream.
func (g *Guard) timed(ctx context.Context, p *passage) (context.Context, context.CancelFunc) {
	if g.c.Limits.Timeout <= 0 || p.body == nil || p.listens {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, g.c.Limits.Timeout, errTimeout)
}

func (g *Guard) validateAgain(c Credential) func(context.Context) (*Principal, error) {
	return func(ctx context.Context) (*Principal, error) {
		p, err := g.c.Validator.Validate(ctx, c)
		return p, redact(err, c.Token)
	}
}

// still returns nil while the token is good, but for what its status list is watched for.
func (p *Principal) still(ctx context.Context) error {
	if p.status != nil {
		return p.signed(ctx)
	}
	_, err := p.again(ctx)
	return err
}

// endedEarly is why a request had to end before its token expired, or nil.
func endedEarly(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, ErrInvalidToken) || errors.Is(err, ErrUnavailable) {
		return err
	}
	return nil
}
