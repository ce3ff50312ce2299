package authserver

import (
	"context"

	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/shell"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// grants contains the parts behind the client endpoints /token, /introspect and /revoke.
type grants struct {
	clientAuth *grant.ClientAuth
	approvals  *grant.Approvals
	tokens     *grant.Tokens
	proofs     *grant.Proofs
	endpoint   string // the URL of /token
	// pushEndpoint is the URL of /par.
	pushEndpoint string
	clearances   *grant.Clearances
	byType       map[string]tokenGrant // by grant type
	shell        *shell.Shell
	proxies      TrustedProxies
}

// newGrants assembles the grants from the other parts of the server.
func (s *Server) newGrants() grants {
	c := s.cfg
	refresh := &grant.RefreshTokens{Keys: s.keys, Ring: s.ring, IdleTTL: c.Tokens.RefreshIdleTTL}
	g := grants{
		clientAuth: s.newClientAuth(),
		approvals: &grant.Approvals{
			Store:    c.Store,
			CodeTTL:  c.Tokens.CodeTTL,
			GrantTTL: c.Tokens.RefreshMaxTTL,
			Audit:    c.Audit,
			Now:      c.Now,
		},
		tokens:   s.newTokens(refresh),
		proofs:   s.newProofs(),
		endpoint: c.Issuer + "/token",

		pushEndpoint: c.Issuer + "/par",
		proxies:      c.TrustedProxies,
	}
	g.clearances = &grant.Clearances{Tokens: g.tokens, Desk: s.newDesk()}
	g.shell = s.newShell(g.authenticate)
	g.byType = g.types(s, refresh)
	return g
}

// types returns the grants by type. The password grant is not supported (OAuth 2.1 §10, AS-03).
func (g *grants) types(s *Server, refresh *grant.RefreshTokens) map[string]tokenGrant {
	c, minter := s.cfg, s.newMinter()
	code := &grant.Code{
		Store:    c.Store,
		Catalog:  s.catalog,
		Bindings: s.bindings,
		Refresh:  refresh,
		Minter:   minter,
		IDTokens: &grant.IDTokens{Issuer: c.Issuer, Keys: s.keys},
	}
	types := map[string]tokenGrant{
		oauth.GrantCode:       g.authenticated(code),
		oauth.GrantDeviceCode: g.authenticated(&grant.Device{Store: c.Store, Code: code}),
		oauth.GrantRefresh:    g.authenticated(s.newRefresh(refresh, minter)),
		oauth.GrantClientCredentials: g.authenticated(
			&grant.Machine{Programs: s.newProgramKeys(minter), Catalog: s.catalog, Minter: minter}),
		oauth.GrantTokenExchange: g.exchanged(s.newExchange(g.tokens)),
	}
	if c.Trust != nil {
		types[oauth.GrantJWTBearer] = asserted(s.newBearer(g))
	}
	return types
}

func (s *Server) newBearer(g *grants) *grant.Bearer {
	return &grant.Bearer{
		Assertor:   s.cfg.Trust,
		Store:      s.cfg.Store,
		Auth:       g.clientAuth,
		Catalog:    s.catalog,
		Ring:       s.ring,
		Bindings:   s.bindings,
		Minter:     s.newMinter(),
		Proofs:     g.proofs,
		Connectors: s.cfg.IssuerProviders,
	}
}

// authenticate returns the client of a token request, and uses up its proof.
func (g *grants) authenticate(ctx context.Context, r grant.TokenRequest) (storage.Client, error) {
	client, err := g.clientAuth.ForGrant(ctx, r)
	if err == nil {
		err = g.proofs.Use(ctx, client, r.Proof, r.From)
	}
	return client, err
}

func (s *Server) newProofs() *grant.Proofs {
	p := grant.Proofs{
		Replays: s.cfg.DPoP.Replays,
		Clients: s.clients,
		Limits:  s.limits,
		Now:     s.cfg.Now,
	}
	if s.cfg.DPoP.Nonce {
		// All replicas have this key. Refresh tokens also use it; their input begins with a kind
		// number, so the two cannot collide.
		p.Nonces = func() *dpop.Nonces { return dpop.NewNonces(s.keys.TokenKey(), "nonce of the token endpoint") }
	}
	return grant.NewProofs(p)
}

func (s *Server) newTokens(refresh *grant.RefreshTokens) *grant.Tokens {
	return &grant.Tokens{
		Issuer:   s.cfg.Issuer,
		Keys:     s.keys,
		Refresh:  refresh,
		Store:    s.cfg.Store,
		Catalog:  s.catalog,
		Bindings: s.bindings,
		Audit:    s.cfg.Audit,
		Now:      s.cfg.Now,
	}
}

// newExchange returns the token exchange with its kinds.
func (s *Server) newExchange(tokens *grant.Tokens) *grant.Exchange {
	kinds := []grant.ExchangeKind{&grant.IdentityAssertions{
		Issuer:   s.cfg.Issuer,
		Keys:     s.keys,
		Refresh:  tokens.Refresh,
		Store:    s.cfg.Store,
		Bindings: s.bindings,
		Audit:    s.cfg.Audit,
		Now:      s.cfg.Now,
	}}
	if s.cfg.Broker != nil {
		kinds = append(kinds, &grant.ProviderTokens{
			Tokens:   tokens,
			Catalog:  s.catalog,
			Bindings: s.bindings,
			Broker:   s.cfg.Broker,
			Links:    s.links,
			Audit:    s.cfg.Audit,
			Now:      s.cfg.Now,
		})
	}
	if !s.cfg.HelpersOff {
		kinds = append(kinds, &grant.Helpers{
			Tokens:   tokens,
			Store:    s.cfg.Store,
			Catalog:  s.catalog,
			Bindings: s.bindings,
			Minter:   s.newMinter(),
		})
	}
	return &grant.Exchange{Kinds: kinds}
}

func (s *Server) newShell(authenticate shell.Authenticate) *shell.Shell {
	return shell.New(shell.Config{
		Issuer:         s.cfg.Issuer,
		Secret:         s.ring.Key("fosite", 32),
		CodeTTL:        s.cfg.Tokens.CodeTTL,
		AccessTTL:      s.cfg.Tokens.AccessTTL,
		RefreshIdleTTL: s.cfg.Tokens.RefreshIdleTTL,
	}, authenticate)
}

func (s *Server) newProgramKeys(minter *grant.Minter) *grant.ProgramKeys {
	return &grant.ProgramKeys{
		Off:      s.cfg.ProgramKeys.Off,
		Store:    s.cfg.Store,
		Catalog:  s.catalog,
		Bindings: s.bindings,
		Minter:   minter,
	}
}

func (s *Server) newRefresh(tokens *grant.RefreshTokens, minter *grant.Minter) *grant.Refresh {
	return &grant.Refresh{
		Store:    s.cfg.Store,
		Catalog:  s.catalog,
		Bindings: s.bindings,
		Tokens:   tokens,
		Minter:   minter,
		Grace:    s.cfg.Tokens.RefreshGrace,
		Outages:  &s.outages,
	}
}

func (s *Server) newMinter() *grant.Minter {
	return &grant.Minter{
		Issuer:   s.cfg.Issuer,
		Keys:     s.keys,
		Catalog:  s.catalog,
		Bindings: s.bindings,
		TTL:      s.cfg.Tokens.AccessTTL,
		Status:   s.status.claim,
		Audit:    s.cfg.Audit,
		Now:      s.cfg.Now,
	}
}

func (s *Server) newClientAuth() *grant.ClientAuth {
	return grant.NewClientAuth(s.clients, grant.NewAssertions(grant.Assertions{
		Issuer:  s.cfg.Issuer,
		Keys:    s.cfg.ClientKeys,
		Clients: s.clients,
		Spent:   s.cfg.Store,
		Limits:  s.limits,
		Now:     s.cfg.Now,
	}), s.cfg.Audit, s.cfg.Now)
}
