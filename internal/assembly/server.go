// Package assembly builds a server from a configuration: the authorization server with its registry
// and providers, the gateway with the MCP servers behind it, metrics, certificate, and listeners.
package assembly

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/auditsink"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/gateway/peers"
	"github.com/mcp-authd/mcp-authd/internal/metrics"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/proofstore"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/traces"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// Parts are the components of a server. Only Management needs Metrics.
type Parts struct {
	Config  *config.Loaded
	Store   storage.Store
	Keys    [][]byte // master keys, the primary first
	Log     *slog.Logger
	Audit   *audit.Recorder
	Metrics *metrics.Metrics
	Version string    // of the program
	Stdout  io.Writer // for a log destination

	traces  *traces.Traces // nil if traces.enabled is false
	replica string         // the ID of this server; "" for a command
	peers   *peers.Peers   // forwards session requests; may be nil
	stored  bool           // its MCP servers are those of the store
}

// Server is an authorization server with a gateway for the MCP servers that have an upstream.
type Server struct {
	Auth       *authserver.Server
	parts      Parts
	unwatch    func() // ends metrics and traces of the store
	home       home
	notifier   *notice.Notifier       // of the administrative APIs; may be nil
	delegation *thirdparty.Delegation // nil without a configured provider
	sites      *gateway.Sites
	stored     *storedSites         // of sites
	inside     bool                 // an MCP server is part of this program, see Inside
	calls      *lastCalls           // of sites, and of the server inside
	audit      *auditlog.Writer     // nil if audit.enabled is false
	sinks      *auditsink.Deliverer // of the audit log; may be nil
	after      func(time.Duration) <-chan time.Time
}

// Server builds the server. Close it after use.
func (p Parts) Server(ctx context.Context) (_ *Server, err error) {
	if p.traces, err = p.newTraces(ctx); err != nil {
		return nil, err
	}
	s := &Server{unwatch: p.watchStore(), after: time.After}
	defer func() {
		if err != nil {
			s.unwatch()
			p.traces.Close()
		}
	}()
	p.replica = secrets.ID("rep_")
	if p.peers, err = p.newPeers(); err != nil {
		return nil, err
	}
	if s.audit = p.auditWriter(); s.audit != nil {
		p.Audit = p.Audit.Into(s.audit)
	}
	s.parts = p
	if s.sinks, err = p.AuditSinks(); err != nil {
		return nil, err
	}
	cfg, err := p.config()
	if err != nil {
		return nil, err
	}
	if s.delegation, err = p.delegate(&cfg); err != nil {
		return nil, err
	}
	if err := p.trust(&cfg, s.delegation); err != nil {
		return nil, err
	}
	if s.notifier, err = p.console(&cfg, s.delegation); err != nil {
		return nil, err
	}
	if s.Auth, err = authserver.Assemble(ctx, cfg); err != nil {
		return nil, err
	}
	if err := p.warnOfAdministration(ctx, s.notifier); err != nil {
		return nil, err
	}
	beside, err := s.faces(cfg.Registry)
	if err != nil {
		return nil, err
	}
	s.home = home{beside, s.Auth.Handler()}
	s.calls = p.lastCalls(s.Auth.Issuer())
	all := common{p.bodies(), s.calls, newFirstCalls(s.Auth.Issuer(), p.Now), nil, nil}
	if s.sites, err = p.sites(ctx, s.Auth, s.home, all); err != nil {
		return nil, err
	}
	if s.stored, err = p.storedSites(ctx, s.Auth, s.sites, all); err != nil {
		s.sites.Close()
		return nil, err
	}
	return s, nil
}

// Audit returns the recorder of this server's events.
func (s *Server) Audit() *audit.Recorder { return s.parts.Audit }

// Close stops the gateway, and sends the remaining spans.
func (s *Server) Close() {
	defer s.parts.traces.Close()
	defer s.unwatch()
	s.stored.close()
	_ = s.sites.Close()
}

// config returns the configuration of the authorization server.
func (p Parts) config() (authserver.Config, error) {
	registry, err := p.Registry()
	if err != nil {
		return authserver.Config{}, err
	}
	c := p.Config
	cfg := authserver.Config{
		Issuer:           c.Issuer,
		Store:            p.Store,
		SecretKeys:       p.Keys,
		Resources:        append(c.StorageResources(), OwnResources(c.Config)...),
		AccessRules:      c.AccessRules(),
		Registry:         registry,
		ConfidentialOnly: !c.Registration.PublicClients,
		ClientUnusedTTL:  time.Duration(c.Registration.UnusedTTL),
		ClientIdleTTL:    time.Duration(c.Registration.IdleTTL),
		Tokens:           c.Tokens.Policy(),
		DPoP:             authserver.DPoPPolicy{Nonce: c.DPoP.Nonces()},
		Keys:             c.Keys.Policy(),
		SignIn:           c.Login.Policy(),
		ProgramKeys:      c.ProgramKeys.Policy(),
		HelpersOff:       !c.Helpers.Enabled,
		Finish:           time.Duration(c.Limits.Finish),
		SessionTTL:       time.Duration(c.Sessions.TTL),
		Webhook:          c.Notices.Webhook.Server(),
		TrustedProxies:   c.Proxies(),
		Logger:           p.Log,
		Audit:            p.Audit,
		AuditRequired:    c.Audit.Required,
		Answered:         p.countAnswered,
	}
	if cfg.Attempts, err = p.attempts(); err != nil {
		return cfg, err
	}
	if c.SharedProofs() {
		cfg.DPoP.Replays = proofstore.New(p.Store, "token")
	}
	if c.Limits.Shared() {
		cfg.Allowances = p.Store
	}
	cfg.ProductName = c.Branding.Name
	if cfg.Branding, err = c.Branding.Pages(); err != nil {
		return cfg, fmt.Errorf("branding: %w", err)
	}
	if cfg.Mailer, err = p.mailer(); err != nil {
		return cfg, err
	}
	cfg.IssuerProviders = map[string][]string{}
	for _, provider := range c.ThirdParty {
		if provider.Issuer != "" {
			cfg.IssuerProviders[provider.Issuer] = append(cfg.IssuerProviders[provider.Issuer], provider.ID)
		}
	}
	if c.IsDefault("sessions.ttl") {
		cfg.SessionTTL = 0 // the default is shorter on loopback
	}
	return cfg, nil
}

// Now returns the time by the clock of the store, which all its servers use. Without a store, it is
// this machine's clock.
func (p Parts) Now() time.Time {
	if p.Store == nil {
		return time.Now()
	}
	return p.Store.Correct(time.Now())
}
