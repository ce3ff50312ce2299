package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/migrations"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// migrating is a store with its migrations, as both backends are.
type migrating interface {
	storage.Store
	Migrate(ctx context.Context) error
	MigrateNow(ctx context.Context) error
	MigrationStatus(ctx context.Context) ([]migrations.Status, error)
}

// newServer wires the authorization server from the configuration.
func (a *app) newServer(ctx context.Context) (*authserver.Server, error) {
	registry, err := a.newRegistry()
	if err != nil {
		return nil, err
	}
	c := a.config
	cfg := authserver.Config{
		Issuer: c.Issuer, Store: a.store, SecretKeys: a.keys, Resources: c.StorageResources(), Registry: registry,
		ConfidentialOnly: !c.Registration.PublicClients,
		ClientUnusedTTL:  time.Duration(c.Registration.UnusedTTL), ClientIdleTTL: time.Duration(c.Registration.IdleTTL),
		Tokens: authserver.TokenPolicy{
			CodeTTL: time.Duration(c.Tokens.CodeTTL), AccessTTL: time.Duration(c.Tokens.AccessTTL),
			RefreshIdleTTL: time.Duration(c.Tokens.RefreshIdleTTL), RefreshMaxTTL: time.Duration(c.Tokens.RefreshMaxTTL),
			RefreshGrace: orNone(c.Tokens.RefreshGrace), StatusTTL: orNone(c.Tokens.StatusTTL), Algorithm: c.Tokens.Algorithm,
		},
		Keys:       authserver.KeyPolicy{RotateEvery: orNone(c.Keys.RotateEvery), PublishAhead: orNone(c.Keys.PublishAhead)},
		SessionTTL: time.Duration(c.Sessions.TTL), TrustedProxies: c.Proxies(), Logger: a.log, Audit: a.audit,
	}
	if c.IsDefault("sessions.ttl") {
		cfg.SessionTTL = 0 // shorter on loopback than elsewhere
	}
	if err := a.delegate(&cfg); err != nil {
		return nil, err
	}
	return authserver.New(ctx, cfg)
}

// orNone makes a duration that was configured as none what it is to packages for which
// zero means the default.
func orNone(d config.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return time.Duration(d)
}

// now is the clock of the store, by which all of its servers judge.
func (a *app) now() time.Time { return a.store.Correct(time.Now()) }

// newRegistry makes the registry; the server that it belongs to is attached to it.
func (a *app) newRegistry() (*dcr.Registry, error) {
	r := a.config.Registration
	schemes := r.PrivateUseSchemes
	if schemes == nil {
		schemes = []string{} // none, which is not the default
	}
	if r.InsecureLoopbackDocuments {
		a.log.Warn("registration.insecure_loopback_documents is on: client metadata documents are fetched from this machine")
	}
	if r.MachineClients {
		a.log.Warn("registration.machine_clients is on: whoever reaches this server can get tokens without a person")
	}
	clients, err := a.configuredClients()
	if err != nil {
		return nil, err
	}
	return dcr.New(dcr.Config{
		Store: a.store, SecretKeys: a.keys, Disabled: !r.Enabled, Now: a.now,
		Redirects: oauth.RedirectPolicy{PrivateUseSchemes: schemes, DottedSchemes: r.DottedSchemes}, Clients: clients,
		Limits: r.Limits(), Documents: r.Documents(), MachineClients: r.MachineClients, Audit: a.audit, Logger: a.log,
	})
}

// configuredClients are the clients of the configuration.
func (a *app) configuredClients() (out []storage.Client, err error) {
	for i, c := range a.config.Clients {
		if c.AuthMethod == "" && c.Secret != "" {
			c.AuthMethod = "client_secret_basic" // RFC 7591 §2
		}
		client, _, err := mintClient(dcr.Spec{
			ID: c.ID, Name: c.Name, RedirectURIs: c.RedirectURIs, GrantTypes: c.GrantTypes, AuthMethod: c.AuthMethod,
			JWKS: []byte(c.JWKS), JWKSURI: c.JWKSURI, Scopes: c.Scopes, Resources: c.Resources,
			Redirects: redirectPolicy(a.config), Now: time.Now(),
		}, string(c.Secret))
		switch {
		case err != nil:
			return nil, fmt.Errorf("clients[%d]: %w", i, err)
		case client.HasSecret() && c.Secret == "":
			return nil, fmt.Errorf("clients[%d]: %s needs a secret", i, client.AuthMethod)
		}
		client.Source = storage.SourceConfig
		out = append(out, client)
	}
	return out, nil
}

// listener is one address that is served.
type listener struct {
	net.Listener
	handler http.Handler
	cert    *certificate // nil: http
}

func listen(ctx context.Context, address, key string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		taken := ""
		if errors.Is(err, syscall.EADDRINUSE) && answers(ctx, address) {
			taken = " (a server like this one answers there already)"
		}
		return nil, fmt.Errorf("cannot listen on %s: %s%s; set another address with %s", address, cause(err), taken, key)
	}
	return l, nil
}

// cause is the system's own words for a network error.
func cause(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return err.Error()
}

// serveAll serves until ctx ends, then drains: readiness turns red, open requests
// finish, and nil is returned.
func (a *app) serveAll(ctx context.Context, as *authserver.Server, listeners ...listener) error {
	settleMemory()
	ctx, cancel := context.WithCancel(ctx)
	go restMemory(ctx)
	settle := a.runDelegation(ctx)
	var sites []authserver.Site
	for _, l := range listeners {
		site := authserver.Site{Listener: l.Listener, Handler: l.handler}
		if l.cert != nil {
			site.GetCertificate = l.cert.get
		}
		sites = append(sites, site)
	}
	err := as.Serve(ctx, sites...)
	cancel()
	settle()
	return err
}

// management is what the management listener serves.
func (a *app) management(as *authserver.Server, sites *gateway.Sites) http.Handler {
	mux := http.NewServeMux()
	readyz := as.Readyz
	if sites != nil {
		readyz = sites.Readyz(readyz)
	}
	mux.HandleFunc("GET /healthz", as.Healthz)
	mux.HandleFunc("GET /readyz", readyz)
	mux.Handle("GET /metrics", a.metrics.handler())
	if host, _, err := net.SplitHostPort(a.config.Management.Listen); err == nil && oauth.IsLoopbackHost(host) {
		return localHost(mux)
	}
	return mux // other machines are to reach it, by names that only its operator knows
}

// localHost answers to the names of this machine alone: a page of another host whose name
// was made to lead here must not read what a loopback listener tells (DNS rebinding).
func localHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !network.IsLocal(r.Host) {
			http.Error(w, "This host name is not served here.", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
