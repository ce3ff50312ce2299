package postgres

import "github.com/mcp-authd/mcp-authd/mcpresource"

// Configure has a guard share all that replicas can: calls are counted in the database, by the rates of
// c.Limits, proofs of possession are remembered there, and so is whom sessions belong to. What c has already
// of these stays: a Limiter, DPoP.Replays, Sessions. It is made for Adjust of gosdk.ServeOptions and
// mcpserver.Options.
//
// Where a rate in c.Limits is wrong, the rates stay there, and mcpresource.New says so.
func (s *Shared) Configure(c *mcpresource.Config) {
	if c.Limiter == nil {
		if limiter, err := mcpresource.NewLimiter(c.Limits, s, c.Logger); err == nil {
			c.Limiter, c.Limits.Calls, c.Limits.Tools = limiter, mcpresource.Rate{}, nil
		}
	}
	proofs := mcpresource.DPoP{Unannounced: true} // as without it: bound tokens are good, and not offered
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
