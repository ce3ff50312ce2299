package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Verify judges a credential that did not come in a request of this guard, such as the
// token in the environment of a stdio server, by the same rules: the validator, then
// issuer, audience and times. Its error wraps ErrInvalidToken or ErrUnavailable.
func (g *Guard) Verify(ctx context.Context, c Credential) (*Principal, error) {
	p, err := g.c.Validator.Validate(ctx, c)
	if err == nil && p == nil {
		err = ErrUnavailable
	}
	if err != nil {
		return nil, classified(err)
	}
	if err := g.meant(p); err != nil {
		return nil, err
	}
	return g.checkable(p, c), nil
}

// classified makes an error of a validator one of the two that callers tell apart.
func classified(err error) error {
	if errors.Is(err, ErrInvalidToken) || errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// checkable returns a copy of p that can be judged again. The credential is in a
// closure, where printing a Principal does not show it.
func (g *Guard) checkable(p *Principal, c Credential) *Principal {
	again := *p
	judge := g.validateAgain(c)
	again.check = func(ctx context.Context) error {
		if err := g.meant(p); err != nil { // expired, most of all
			return err
		}
		if err := judge(ctx); err != nil {
			return classified(err)
		}
		return nil
	}
	return &again
}

// Check judges the caller's token once more. A task that runs for long calls it before
// each step that matters, because a token that was good when the task began may have
// expired or been revoked since. The error wraps ErrInvalidToken when the caller is no
// longer good, and ErrUnavailable when nobody can say now. Of a principal that no guard
// has verified, as in tests, only the time is looked at.
func (p *Principal) Check(ctx context.Context) error {
	switch {
	case p == nil:
		return ErrNoCaller
	case p.check != nil:
		return p.check(ctx)
	case p.ExpiresAt.IsZero() || !time.Now().Before(p.ExpiresAt):
		return invalid("expired")
	}
	return nil
}

// Require reports whether the caller in ctx holds scopes, by the hierarchy of the
// policy: for decisions that depend on the object and that only the handler can make.
// Nil means yes; otherwise a *ScopeError or ErrNoCaller.
func (g *Guard) Require(ctx context.Context, scopes ...string) error {
	p, ok := FromContext(ctx)
	if !ok {
		return ErrNoCaller
	}
	if lacking := g.sufficient(p, Requirement{Scopes: oauth.Scopes(scopes)}); lacking != nil {
		return lacking
	}
	return nil
}
