package postgres

import "github.com/mcp-authd/mcp-authd/mcpresource"

// Configure makes a guard share its state with all replicas. The database counts calls by the rates
// of c.Limits, and stores used proofs and the owners of sessions. A Limiter, DPoP.Replays or
// Sessions already set in c is kept. Use it as Adjust of gosdk.ServeOptions or mcpserver.Options.
//
// If a rate in c.Limits is invalid, the rates stay there, and mcpresource.New returns the error.
func (s *Shared) Configure(c *mcpresource.Config) {
	if c.Limiter == nil {
		if limiter, err := mcpresource.NewLimiter(c.Limits, s, c.Logger); err == nil {
			c.Limiter, c.Limits.Calls, c.Limits.Tools = limiter, mcpresource.Rate{}, nil
		}
	}
	proofs := mcpresource.DPoP{Unannounced: true} // as without DPoP: bound tokens are accepted but not announced
	if c.DPoP != nil {
		proofs = *c.DPoP
	}
	if proofs.Replays == nil {
		proofs.Replays = s
	}
	c.DPoP = &proofs
	if c.Sessions == nil {
		c.Sessions = s.Sessions()
	}
}
