package mcpserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/assembly"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/metrics"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
	"github.com/mcp-authd/mcp-authd/mcpserver/internal/started"
)

// Serve serves the MCP server of tools, with sign-in, until ctx ends. It then closes streams, lets
// open requests finish, and returns nil. At the first start it creates the data directory and
// reports a link to create the first account. If options are wrong it returns an error with one
// line for each. Until the server is ready, every request, including GET /healthz, is answered with
// 503 and Retry-After.
func Serve(ctx context.Context, tools *gosdk.Tools, o Options) (err error) {
	defer func() {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = nil // ctx ended during the start
		}
	}()
	l, err := o.load()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.Listen)
	if err != nil {
		return fmt.Errorf("mcpserver: Listen: %w: choose another address", err)
	}
	defer listener.Close()
	if err := o.settle(ctx, l, tools, listener.Addr()); err != nil {
		return err
	}
	p := program{o: o, l: l, tools: tools, log: cmp.Or(o.Logger, slog.Default())}
	if p.cert, err = (assembly.Parts{Config: l, Log: p.log}).Certificate(ctx); err != nil {
		return fmt.Errorf("mcpserver: %w", err)
	}
	p.starting = whileStarting(listener, p.cert)
	defer func() { err = errors.Join(err, p.starting.end()) }()
	p.warn()
	if err := p.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.store.Close()) }()
	return p.serve(ctx, listener)
}

// program holds the state of one call of Serve.
type program struct {
	o     Options
	l     *config.Loaded
	tools *gosdk.Tools
	log   *slog.Logger
	keys  [][]byte
	store storage.Store
	cert  func(*tls.ClientHelloInfo) (*tls.Certificate, error) // nil: http
	// starting answers requests until the server is ready.
	starting *starting
}

// warn logs settings that are allowed but risky.
func (p *program) warn() {
	all := slices.Concat(p.l.Warnings, []string{p.l.Login.Links.Warning(), p.l.AuditWarning()})
	for _, c := range p.l.Connectors() {
		all = append(all, c.Warnings()...)
	}
	for _, w := range all {
		if w != "" {
			p.log.Warn(w)
		}
	}
}

func (p *program) open(ctx context.Context) (err error) {
	if p.keys, err = p.masterKeys(); err != nil {
		return err
	}
	p.store, err = open(ctx, p.l, p.log)
	return err
}

func (p *program) serve(ctx context.Context, listener net.Listener) error {
	counts := metrics.New()
	parts := assembly.Parts{
		Config: p.l, Store: p.store, Keys: p.keys, Log: p.log,
		Audit: assembly.Recorder(p.l, p.log, counts.Count), Metrics: counts,
		Version: version(), Stdout: os.Stdout,
	}
	server, err := parts.Server(ctx)
	if err != nil {
		return fmt.Errorf("mcpserver: %w", err)
	}
	defer server.Close()
	adapter, mux, err := p.guarded(ctx, server)
	if err != nil {
		return err
	}
	sites := []authserver.Site{{
		Listener: listener, Handler: server.Beside(mux), GetCertificate: p.cert, Ending: adapter.Close,
	}}
	if at := p.l.Management.Listen; at != "" && !p.l.IsDefault("management.listen") {
		sites = append(sites, authserver.Site{Address: at, Handler: server.Management()})
	}
	if err := p.starting.end(); err != nil {
		return fmt.Errorf("mcpserver: %w", err)
	}
	if err := p.tell(ctx, server.Auth); err != nil {
		return err
	}
	started.Tell(ctx, server.Auth)
	return server.Serve(ctx, sites...)
}

// guarded returns the MCP server behind a guard.
func (p *program) guarded(ctx context.Context, server *assembly.Server) (*gosdk.Adapter, *http.ServeMux, error) {
	own := &p.l.Resources[0]
	c, err := server.Inside(ctx, own)
	if err != nil {
		return nil, nil, fmt.Errorf("mcpserver: %w", err)
	}
	if err := p.tools.Configure(&c); err != nil {
		return nil, nil, err
	}
	own.Tools = append(own.Tools, listed(c.Policy.(*mcpresource.Rules))...)
	if err := (&admin.Service{Store: p.store, Config: p.l}).RememberServed(ctx, own.Name); err != nil {
		return nil, nil, fmt.Errorf("mcpserver: %w", err)
	}
	if p.o.Adjust != nil {
		p.o.Adjust(&c)
	}
	guard, err := mcpresource.New(c)
	if err != nil {
		return nil, nil, err
	}
	options, err := p.adapter(own.URI)
	if err != nil {
		return nil, nil, err
	}
	adapter, mux := gosdk.New(guard, p.tools.Server(), options), http.NewServeMux()
	guard.Register(mux, adapter.HTTP())
	return adapter, mux, nil
}

// listed returns the requirements of the declared tools, in the form that lists of resources show.
func listed(r *mcpresource.Rules) (out []config.ToolRule) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(r.Tools)), maps.Keys(r.Clearances))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		rule, c := config.ToolRule{Name: name, Scopes: r.Tools[name]}, r.Clearances[name]
		rule.Clearance = config.ToolClearance{
			By: c.By, Approvers: c.Approvers, MaxAge: config.Duration(c.Authentication.MaxAge),
		}
		if len(c.Authentication.ACR) > 0 {
			rule.Clearance.ACR = c.Authentication.ACR[0]
		}
		if c.When != nil {
			rule.Clearance.When = "the program says so"
		}
		out = append(out, rule)
	}
	return out
}

// adapter returns the options of the adapter. Tasks are kept in the database unless the program
// sets another store.
func (p *program) adapter(resource string) (*gosdk.Options, error) {
	if p.o.Adapter == nil {
		return &gosdk.Options{ShowAll: true, Logger: p.log}, nil
	}
	options := *p.o.Adapter
	if options.Tasks == nil || options.Tasks.Store != nil {
		return &options, nil
	}
	tasks, err := *options.Tasks, error(nil)
	if tasks.Store, err = assembly.Tasks(p.store, resource, p.keys); err != nil {
		return nil, fmt.Errorf("mcpserver: tasks: %w", err)
	}
	options.Tasks = &tasks
	return &options, nil
}

// tell reports that the server is ready. At the first start it includes the setup link.
func (p *program) tell(ctx context.Context, as *authserver.Server) (err error) {
	r := Ready{Name: p.l.Resources[0].Name, MCPURL: p.l.Resources[0].URI, DataDir: p.l.DataDir}
	if p.l.Login.Local {
		if r.SetupLink, err = as.SetupLink(ctx); err != nil {
			return fmt.Errorf("mcpserver: %w", err)
		}
	}
	if p.o.Ready == nil {
		r.print()
		return nil
	}
	p.o.Ready(r)
	return nil
}

const module = "github.com/mcp-authd/mcp-authd"

// version returns the version of this module in the running program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return "devel"
}
