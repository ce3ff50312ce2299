package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/acme"
	"github.com/mcp-authd/mcp-authd/internal/assembly"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

func newServeCommand(s std) *cobra.Command {
	var flags settings
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the authorization server",
		Long: "Runs the authorization server. Without a configuration file it uses SQLite in the data directory,\n" +
			"generated keys and the issuer http://localhost:8414, and prints a one-time link to create the first\n" +
			"administrator.\n\n" +
			"With --domain it listens on the ports 443 and 80, and obtains the certificate itself.",
		Example: "  mcp-authd serve\n  mcp-authd serve --domain auth.example.com\n" +
			"  mcp-authd serve --config /etc/mcp-authd/config.yaml",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := flags.load(s)
			if err != nil {
				return err
			}
			err = a.OpenToServe(c.Context())
			if errors.Is(err, installation.ErrStopped) {
				return nil
			}
			if err != nil {
				return err
			}
			err = a.serve(c.Context())
			if c.Context().Err() != nil && errors.Is(err, context.Canceled) {
				err = nil // it was stopped during the start
			}
			return errors.Join(err, a.Close())
		},
	}
	flags.add(c)
	c.Flags().StringVar(&flags.listen, "listen", "",
		"address of the public listener, overrides the configuration (default 127.0.0.1:8414)")
	c.Flags().StringVar(&flags.domain, "domain", "",
		"host name of this machine; serves https with a certificate from ACME")
	return c
}

func (a *app) serve(ctx context.Context) error {
	var server *assembly.Server
	err := a.Await(ctx, func(ctx context.Context) (err error) {
		server, err = a.Parts().Server(ctx)
		return err
	})
	if errors.Is(err, installation.ErrStopped) {
		return nil
	}
	if err != nil {
		return err
	}
	defer server.Close()
	a.Audit = server.Audit()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends a program that is being tried first, because Close waits for it
	if err := a.endRemovedTrust(ctx); err != nil {
		return err
	}
	a.warnOfReach()
	a.WarnOfTLSKey()
	cert, err := a.Parts().Certificate(ctx)
	if err != nil {
		return err
	}
	byACME, err := server.ACME()
	if err != nil {
		return err
	}
	go server.TryGateway(ctx)
	l, err := installation.Listen(ctx, a.Config.Listen, "listen or --listen")
	if err != nil {
		return err
	}
	defer l.Close()
	sites := []authserver.Site{{Listener: l, Handler: server.Handler(), GetCertificate: cert}}
	if byACME != nil {
		sites[0].GetCertificate, sites[0].NextProtos = byACME.Certificate, []string{acme.Protocol}
		if redirects, err := a.listenHTTP(ctx); err != nil {
			return err
		} else if redirects != nil {
			defer redirects.Close()
			sites = append(sites, authserver.Site{Listener: redirects, Handler: byACME.HTTP()})
		}
		go byACME.Run(ctx)
	}
	m, err := a.listenManagement(ctx)
	if err != nil {
		return err
	}
	if m != nil {
		defer m.Close()
		sites = append(sites, authserver.Site{Listener: m, Handler: server.Management()})
	}
	a.warnOfIssuer()
	if err := a.warnOfMisfits(ctx); err != nil {
		return err
	}
	if err := a.banner(ctx, server.Auth); err != nil {
		return err
	}
	return server.Serve(ctx, sites...)
}

// warnOfIssuer warns if a server with the default issuer listens elsewhere, where clients cannot
// find it.
func (a *app) warnOfIssuer() {
	_, port, err := net.SplitHostPort(a.Config.Listen)
	if u, urlErr := url.Parse(a.Config.Issuer); err == nil && urlErr == nil && a.Config.IsDefault("issuer") &&
		port != u.Port() {
		a.Log.Warn("clients look for this server at its issuer, and it listens elsewhere: set issuer", "issuer",
			a.Config.Issuer, "listen", a.Config.Listen)
	}
}

// warnOfReach warns at start, when the files exist.
func (a *app) warnOfReach() {
	for i := range a.Config.Resources {
		r := &a.Config.Resources[i]
		if reach := a.Reach(&r.Upstream); len(reach) > 0 {
			what, advice := installation.ReachText(r, reach)
			a.Log.Warn(what + "; " + advice)
		}
	}
}

// warnOfMisfits warns at start. Missing names may be added while the server runs.
func (a *app) warnOfMisfits(ctx context.Context) error {
	known, err := a.resources(ctx)
	if err != nil {
		return err
	}
	found, err := a.Misfits(known)
	for _, m := range found {
		a.Log.Warn(m.What + "; " + m.Advice)
	}
	return err
}

// listenHTTP opens the configured listener for challenges over http, or returns nil.
func (a *app) listenHTTP(ctx context.Context) (net.Listener, error) {
	if a.Config.TLS.ACME.HTTPListen == "" {
		return nil, nil
	}
	return installation.Listen(ctx, a.Config.TLS.ACME.HTTPListen, installation.ACMEListen)
}

// listenManagement opens the management listener. If another instance uses the default address, the
// server starts without it, because the address was not requested.
func (a *app) listenManagement(ctx context.Context) (net.Listener, error) {
	addr := a.Config.Management.Listen
	if addr == "" {
		return nil, nil
	}
	l, err := installation.Listen(ctx, addr, "management.listen")
	if err != nil && ctx.Err() == nil && a.Config.IsDefault("management.listen") {
		a.Log.Warn("no management listener: " + err.Error())
		return nil, nil
	}
	return l, err
}

// banner prints the addresses and, on a new installation, the first steps.
func (a *app) banner(ctx context.Context, as *authserver.Server) error {
	file, database := a.Config.File, "sqlite ("+a.Config.SQLitePath()+")"
	if file == "" {
		file = "none (defaults)"
	}
	if a.Config.Strayed {
		file += " (of the working directory)"
	}
	if a.Config.Postgres() {
		database = "postgres"
	}
	out := a.std.out
	fmt.Fprintf(out, "mcp-authd %s   issuer %s   database %s   config: %s\n", version().Version, as.Issuer(),
		database, file)
	fmt.Fprintf(out, "listening on %s\n", a.Config.Listen)
	for _, c := range a.Config.ThirdParty {
		fmt.Fprintf(out, "sign-in at %s: redirect URI %s/callback/%s   check it: mcp-authd doctor\n", c.ID,
			as.Issuer(), c.ID)
	}
	var link string
	err := users.ErrExists
	if a.Config.Login.Local {
		link, err = a.SetupLink(ctx)
	}
	switch {
	case errors.Is(err, users.ErrExists):
	case err != nil:
		return err
	default:
		fmt.Fprintf(out,
			"Set up the first administrator (valid 1 h, once):\n  %s        again: mcp-authd setup-link\n", link)
	}
	resources, err := a.resources(ctx)
	if err != nil {
		return err
	}
	if len(resources) == 0 {
		fmt.Fprintf(out,
			"Then protect a server:  mcp-authd resource add http://localhost:3000/mcp   and check it:  mcp-authd check http://localhost:3000/mcp\n")
	}
	return nil
}
