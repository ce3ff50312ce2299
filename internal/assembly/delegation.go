package assembly

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// Delegation returns sign-in at providers. It is needed even without a configured provider, because
// the vault always exists.
func (p Parts) Delegation() (*thirdparty.Delegation, error) {
	site, err := p.Config.Site()
	if err != nil {
		return nil, fmt.Errorf("login.passkeys: %w", err)
	}
	d, err := thirdparty.New(thirdparty.Config{
		Issuer:       p.Config.Issuer,
		Store:        p.Store,
		SecretKeys:   p.Keys,
		Connectors:   p.Config.Connectors(),
		PasskeyRPIDs: site.RPIDs(),
		NoLocalLogin: !p.Config.Login.Local,
		Logger:       p.Log,
		Audit:        p.Audit,
		Asked:        p.Metrics.Provider,
		Now:          p.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("thirdparty: %w", err)
	}
	return d, nil
}

// delegate enables sign-in at the configured providers. Without a provider it returns nil, and
// grants that depend on one are refused.
func (p Parts) delegate(cfg *authserver.Config) (*thirdparty.Delegation, error) {
	if len(p.Config.ThirdParty) == 0 {
		return nil, nil
	}
	d, err := p.Delegation()
	if err != nil {
		return nil, err
	}
	cfg.Delegation, cfg.NoLocalLogin, cfg.DefaultProvider = d, !p.Config.Login.Local, p.Config.Login.DefaultProvider
	for _, c := range p.Config.ThirdParty {
		if c.Detached {
			p.Log.Warn("thirdparty: detached: sign-ins do not end with the session at the provider",
				slog.String("connector", c.ID))
		}
	}
	return d, nil
}

// runDelegation checks provider sessions until ctx ends. The returned function waits for pending
// requests: a rotated refresh token in a response exists nowhere else.
func (s *Server) runDelegation(ctx context.Context) (settle func()) {
	if s.delegation == nil {
		return func() {}
	}
	done := make(chan struct{})
	go s.examineProviders(ctx)
	go func() {
		defer close(done)
		if err := s.delegation.Run(ctx); err != nil {
			s.parts.Log.Error("provider sessions are not checked any more", "error", err)
		}
	}()
	return func() {
		<-done
		s.delegation.Close()
	}
}

// examineProviders checks each provider once, as doctor does, and logs problems that prevent
// sign-in.
func (s *Server) examineProviders(ctx context.Context) {
	for _, r := range s.delegation.Probe(ctx) {
		for _, f := range r.Findings {
			if f.Verdict == thirdparty.Problem && ctx.Err() == nil {
				s.parts.Log.Warn("people cannot sign in at a provider", slog.String("connector", r.Connector),
					slog.String("problem", f.What), slog.String("advice", f.Advice))
			}
		}
	}
}
