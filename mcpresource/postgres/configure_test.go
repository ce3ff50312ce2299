package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// TestConfigure: after one call of Configure, two guards share calls, proofs and sessions.
func TestConfigure(t *testing.T) {
	url := pgtest.Start(t).Database(t)
	config := func(more func(*mcpresource.Config)) mcpresource.Config {
		_, shared := open(t, url, resource)
		c := mcpresource.Config{
			Resource: resource, AuthorizationServers: []string{"https://auth.example.com"},
			Validator: mcpresource.ValidatorFunc(
				func(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) {
					return nil, mcpresource.ErrInvalidToken
				}),
			Limits: mcpresource.Limits{Calls: mcpresource.Rate{PerSecond: 0.01, Burst: 4}},
		}
		more(&c)
		shared.Configure(&c)
		return c
	}
	plain := func(*mcpresource.Config) {}
	t.Run("calls are counted together, at the rates of the configuration", func(t *testing.T) {
		one, two := config(plain), config(plain)
		p := &mcpresource.Principal{Issuer: "i", Subject: "alice"}
		op := mcpresource.Operation{Method: "tools/call", Name: "x"}
		let := 0
		for range 4 {
			for _, c := range []mcpresource.Config{one, two} {
				if _, ok := c.Limiter.Allow(t.Context(), p, op); ok {
					let++
				}
			}
		}
		if let != 4 {
			t.Errorf("%d calls of 8 were let through, want 4", let)
		}
	})
	t.Run("a proof that one has seen, the other refuses, and nothing more is offered", func(t *testing.T) {
		one, two := config(plain), config(plain)
		id := strings.Repeat("p", 32)
		for i, c := range []mcpresource.Config{one, two} {
			first, err := c.DPoP.Replays.Use(t.Context(), id, time.Now().Add(time.Hour))
			if err != nil || first != (i == 0) {
				t.Errorf("guard %d: got %t, %v", i, first, err)
			}
			if !c.DPoP.Unannounced || c.Sessions == nil {
				t.Errorf("guard %d: got %+v, %v", i, c.DPoP, c.Sessions)
			}
		}
	})
	t.Run("what is there stays, and the caller's is not changed", func(t *testing.T) {
		theirs := &mcpresource.DPoP{Required: true}
		c := config(func(c *mcpresource.Config) { c.DPoP = theirs })
		if !c.DPoP.Required || c.DPoP.Replays == nil || theirs.Replays != nil {
			t.Errorf("got %+v, and theirs is %+v", c.DPoP, theirs)
		}
		if _, err := mcpresource.New(c); err != nil {
			t.Error(err)
		}
	})
	t.Run("a rate that is none is refused by New", func(t *testing.T) {
		c := config(func(c *mcpresource.Config) { c.Limits.Tools = map[string]mcpresource.Rate{"x": {Burst: 1}} })
		if _, err := mcpresource.New(c); err == nil || !strings.Contains(err.Error(), `tool "x" has no PerSecond`) {
			t.Errorf("got %v", err)
		}
	})
}
