package authserver

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/authserver/internal/connect"
	"github.com/mcp-authd/mcp-authd/authserver/internal/decisions"
	"github.com/mcp-authd/mcp-authd/authserver/internal/device"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/session"
	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/cutting"
	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// Server is an authorization server. It is safe for concurrent use.
type Server struct {
	cfg        settings
	log        *slog.Logger
	ring       *secrets.Ring
	keys       *keys.Manager
	sessions   *session.Manager
	users      *users.Users
	notifier   *notice.Notifier
	ways       *ways.Ways
	errors     *errorPages
	pages      *pageHandlers
	links      *connect.Links
	clients    *clients.Finder
	catalog    *catalogue.Catalogue
	discovery  *discovery
	bindings   binding.Checker
	status     *statusLists
	grants     grants
	decisions  *decisions.Taker
	devices    *device.Requests
	limits     *allowance.Limits
	undeclared *undeclared
	paths      paths
	probe      *probe
	outages    grant.Outages
	draining   atomic.Bool
	skewed     atomic.Bool // the clock difference was logged
	replica    string      // this replica's id on the store
	cuts       cutting.Follower
	closing    func() error // closes the store, if New opened it
}

// Assemble returns a server of parts that its caller made, with an open and migrated store. It
// generates the first signing key if the store has none. Programs outside this module use New.
func Assemble(ctx context.Context, c Config) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("authserver: %w", err)
	}
	c.Now = storeTime(c)
	cfg := newSettings(c)
	s := &Server{
		cfg:        cfg,
		log:        c.Logger,
		paths:      newPaths(c.Issuer),
		clients:    &clients.Finder{Known: cfg.Clients, Documents: cfg.Documents, ConfidentialOnly: c.ConfidentialOnly},
		bindings:   binding.Checker{Bindings: cfg.Bindings, Rules: cfg.rules()},
		undeclared: &undeclared{trusted: c.TrustedProxies, told: map[netip.Addr]bool{}},
		limits:     allowance.New(c.Allowances, c.Now, c.Logger),
		replica:    secrets.Token("rep_"),
	}
	if err := s.compareClocks(ctx); err != nil {
		return nil, fmt.Errorf("authserver: %w", err)
	}
	if s.ring, err = secrets.NewRing(c.SecretKeys...); err != nil {
		return nil, fmt.Errorf("authserver: %w", err)
	}
	s.paths.sealed = func(q form.Query) form.Query { return flow.SealPushed(s.ring, q) }
	if err := keys.Claim(ctx, c.Store, c.SecretKeys); err != nil {
		return nil, fmt.Errorf("authserver: %w", err)
	}
	if err := s.buildParts(ctx); err != nil {
		return nil, fmt.Errorf("authserver: %w", err)
	}
	s.cuts = cutting.Follower{Store: c.Store, Holder: s.replica, Now: c.Now, Audit: cfg.Audit}
	s.status = newStatusLists(c, s.keys)
	s.probe = &probe{ready: s.ready, now: time.Now}
	if err := s.compareIssuer(ctx); err != nil {
		return nil, fmt.Errorf("authserver: %w", err)
	}
	s.attend(ctx)
	s.grants = s.newGrants()
	s.decisions = s.newDecisions()
	s.devices = s.newDevices()
	s.pages = newPageHandlers(s)
	if c.Registry != nil {
		c.Registry.Attach(c.Issuer, s.KnownScopes, s.DefaultScopes, c.TrustedProxies.ClientAddr)
	}
	return s, nil
}

func (s *Server) buildParts(ctx context.Context) (err error) {
	c := s.cfg
	if s.keys, err = keys.New(ctx, keys.Config{
		Store: c.Store, SecretKeys: c.SecretKeys, Algorithm: c.Tokens.Algorithm,
		AccessTTL: c.Tokens.AccessTTL, RotateEvery: c.Keys.RotateEvery, PublishAhead: c.Keys.PublishAhead, Now: c.Now,
		Audit: c.Audit, Logger: c.Logger,
	}); err != nil {
		return err
	}
	if s.sessions, err = session.New(session.Config{
		SecretKeys: c.SecretKeys, Issuer: c.Issuer, TTL: c.SessionTTL, Now: c.Now,
	}); err != nil {
		return err
	}
	pages, err := pages.New(pages.Config{
		ProductName: c.ProductName, Prefix: s.paths.prefix, Branding: c.Branding,
	})
	if err != nil {
		return err
	}
	s.notifier = newNotifier(c.Config, pages.Texts())
	if s.users, err = users.New(users.Config{
		Store: c.Store, Now: c.Now, Notifier: s.notifier, Providers: c.providers(), Links: c.SignIn.Links.policy(),
		Params: c.passwords, Audit: c.Audit, Logger: c.Logger,
	}); err != nil {
		return err
	}
	if err := s.buildWays(); err != nil {
		return err
	}
	s.errors = &errorPages{
		web:   &spokenPages{pages, s.sessions, s.paths},
		hosts: &foreignHosts{issuer: c.Issuer, log: c.Logger, now: c.Now, told: map[string]bool{}},
	}
	s.links = &connect.Links{Ring: s.ring, Issuer: c.Issuer, Now: c.Now}
	if s.catalog, err = catalogue.New(ctx, c.Resources, c.Store, c.Now); err != nil {
		return err
	}
	s.discovery, err = newDiscovery(ctx, s)
	return err
}

// Issuer returns the issuer identifier.
func (s *Server) Issuer() string { return s.cfg.Issuer }

// Keys returns the manager of the signing keys.
func (s *Server) Keys() *keys.Manager { return s.keys }

// Handler returns a handler for the whole server. If the issuer has a path, the endpoints also
// answer at the root of its origin. Clients of MCP 2025-03-26 look for them there if they find no
// metadata (AS-16).
func (s *Server) Handler() http.Handler { return s.handler(!s.cfg.ConsoleApart) }

// ConsoleHandler is Handler with the console, for a separate listener. It includes the sign-in
// pages.
func (s *Server) ConsoleHandler() http.Handler { return s.handler(true) }

func (s *Server) handler(console bool) http.Handler {
	mux := http.NewServeMux()
	s.register(mux, console)
	mux.Handle("/", s.observe(http.HandlerFunc(s.errors.notFound)))
	mux.Handle("/robots.txt",
		s.observe(s.errors.allow(http.HandlerFunc(handleRobots), http.MethodGet, http.MethodHead)))
	mux.Handle("/favicon.ico",
		s.observe(s.errors.allow(http.HandlerFunc(s.errors.icon), http.MethodGet, http.MethodHead)))
	if s.paths.prefix == "" {
		return mux
	}
	for _, path := range []string{"/authorize", "/token", "/register"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = s.paths.prefix+path, ""
			mux.ServeHTTP(w, r)
		})
	}
	return mux
}
