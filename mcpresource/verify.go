package mcpresource

import (
	"context"
	"sync/atomic"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Verify judges a credential that did not come in a request of this guard, such as the
// token in the environment of a stdio server, by the same rules: the validator, then
// issuer, audience and times. A token that is bound to a key is refused, because there is
// no proof of it. The error wraps ErrInvalidToken or ErrUnavailable.
func (g *Guard) Verify(ctx context.Context, c Credential) (*Principal, error) {
	p, err := g.c.Validator.Validate(ctx, c)
	switch {
	case err != nil:
		return nil, judged(err)
	case p == nil:
		return nil, ErrUnavailable
	case p.Thumbprint != "":
		return nil, invalid("bound to a key")
	}
	if err := g.meant(p); err != nil {
		return nil, err
	}
	own := *p // that of a validator is shared
	own.again, own.reported = g.validateAgain(c), &atomic.Bool{}
	return &own, nil
}

// Require reports whether the caller in ctx holds scopes, by the hierarchy of the
// policy: for decisions that depend on what only the handler finds out. Nil means yes;
// otherwise a *ScopeError or ErrNoCaller.
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
