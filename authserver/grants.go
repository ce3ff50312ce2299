package authserver

import (
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/shell"
)

// grants is what stands behind the endpoints of clients: /token, /introspect and /revoke.
type grants struct {
	clientAuth *grant.ClientAuth
	approvals  *grant.Approvals
	tokens     *grant.Tokens
	exchange   *grant.Exchange // nil: token exchange is not offered
	shell      *shell.Shell
}

// newGrants puts the grants together; the other parts of the server are there already.
func (s *Server) newGrants() grants {
	c := s.cfg
	refresh := &grant.RefreshTokens{Keys: s.keys, Ring: s.ring, IdleTTL: c.Tokens.RefreshIdleTTL}
	minter := &grant.Minter{
		Issuer: c.Issuer,
		Keys:   s.keys,
		TTL:    c.Tokens.AccessTTL,
		Status: s.status.claim,
		Audit:  c.Audit,
		Now:    c.Now,
	}
	g := grants{
		clientAuth: s.newClientAuth(),
		approvals: &grant.Approvals{
			Store:    c.Store,
			CodeTTL:  c.Tokens.CodeTTL,
			GrantTTL: c.Tokens.RefreshMaxTTL,
			Audit:    c.Audit,
			Now:      c.Now,
		},
		tokens: &grant.Tokens{
			Issuer:   c.Issuer,
			Keys:     s.keys,
			Refresh:  refresh,
			Store:    c.Store,
			Bindings: s.bindings,
			Audit:    c.Audit,
			Now:      c.Now,
		},
	}
	if c.Broker != nil {
		g.exchange = &grant.Exchange{
			Tokens:   g.tokens,
			Catalog:  s.catalog,
			Bindings: s.bindings,
			Broker:   c.Broker,
			Links:    s.links,
			Audit:    c.Audit,
			Now:      c.Now,
		}
	}
	g.shell = shell.New(shell.Config{
		Issuer:         c.Issuer,
		Secret:         s.ring.Key("fosite", 32),
		CodeTTL:        c.Tokens.CodeTTL,
		AccessTTL:      c.Tokens.AccessTTL,
		RefreshIdleTTL: c.Tokens.RefreshIdleTTL,
	}, g.clientAuth.ForGrant,
		&grant.Code{Store: c.Store, Catalog: s.catalog, Bindings: s.bindings, Refresh: refresh, Minter: minter},
		&grant.Refresh{
			Store:    c.Store,
			Catalog:  s.catalog,
			Bindings: s.bindings,
			Tokens:   refresh,
			Minter:   minter,
			Grace:    c.Tokens.RefreshGrace,
		},
		&grant.Machine{Catalog: s.catalog, Minter: minter},
	)
	return g
}

func (s *Server) newClientAuth() *grant.ClientAuth {
	return grant.NewClientAuth(s.clients, grant.NewAssertions(grant.Assertions{
		Issuer:  s.cfg.Issuer,
		Keys:    s.cfg.ClientKeys,
		Clients: s.clients,
		Spent:   s.cfg.Store,
		Now:     s.cfg.Now,
	}), s.cfg.Audit, s.cfg.Now)
}
