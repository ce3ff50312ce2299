package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
)

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

func (g *Guard) validateAgain(c Credential) func(context.Context) (*Principal, error) {
	return func(ctx context.Context) (*Principal, error) {
		p, err := g.c.Validator.Validate(ctx, c)
		return p, logged.Redact(err, c.Token)
	}
}

// endedEarly returns the reason why a request had to end before its token expired, or nil.
func endedEarly(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, ErrInvalidToken) || errors.Is(err, ErrUnavailable) {
		return err
	}
	return nil
}
