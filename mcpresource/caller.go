package mcpresource

import (
	"context"
	"sync/atomic"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
)

// caller is the guard's record of the request of a Principal.
type caller struct {
	again    func(context.Context) (*Principal, error) // validates the token again
	at       *address                                  // where the request arrived
	openedBy string                                    // see Event
	traced   *traced                                   // of the request's calls; nil without a Tracer
	reported atomic.Bool                               // whether the handler reports the request's calls
	cleared  *cleared                                  // the approved call, or nil
}

// Within returns ctx with the call of the request in it.
func (c *caller) Within(ctx context.Context) context.Context { return c.traced.within(ctx) }

// callerOf returns the record of the request of p, or nil outside a guard.
func callerOf(p *Principal) *caller {
	c, _ := token.AttachmentOf(p).(*caller)
	return c
}

// addressOf returns where the request of p arrived, or nil outside a guard.
func addressOf(p *Principal) *address {
	if c := callerOf(p); c != nil {
		return c.at
	}
	return nil
}

// clearedOf returns the approved call of the request of p, or nil.
func clearedOf(p *Principal) *cleared {
	if c := callerOf(p); c != nil {
		return c.cleared
	}
	return nil
}
