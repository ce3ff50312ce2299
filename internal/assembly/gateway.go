package assembly

import (
	"context"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/gateway/lists"
	"github.com/mcp-authd/mcp-authd/internal/gateway/stdio"
	"github.com/mcp-authd/mcp-authd/internal/gateway/toolwatch"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/proofstore"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/taskstore"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// callRate is the default rate limit of a caller, per second.
const callRate = 50

// common holds the parts that all guards share.
type common struct {
	bodies *mcpresource.Bodies
	calls  *lastCalls
	first  *firstCalls
	watch  *toolwatch.Watch // of one server's tools
	// proofs remembers the proofs for all stored servers: a change of a server replaces its guard.
	proofs mcpresource.Replays
}

// sites puts the configured MCP servers with an upstream behind guards, next to the authorization
// server.
func (p Parts) sites(
	ctx context.Context, as *authserver.Server, main http.Handler, all common,
) (*gateway.Sites, error) {
	stored, err := p.Store.ListResources(ctx)
	if err != nil {
		return nil, err
	}
	sites, err := gateway.NewSites(as.Issuer(), main)
	if err != nil {
		return nil, err
	}
	for i := range p.Config.Resources {
		r := &p.Config.Resources[i]
		if !r.Upstream.Set() {
			continue
		}
		site, err := p.site(ctx, as, r, p.sharesOrigin(r, stored), all)
		if err == nil {
			err = sites.Add(site.Resource, site.Guard, site.Server)
		}
		if err != nil {
			sites.Close()
			return nil, err
		}
	}
	return sites, nil
}

// site puts an MCP server behind a guard.
func (p Parts) site(
	ctx context.Context, as *authserver.Server, r *config.Resource, shared bool, all common,
) (site gateway.Site, err error) {
	if all.watch, err = p.watch(ctx, r); err != nil {
		return site, err
	}
	guard, err := p.guard(as, r, shared, all)
	if err != nil {
		return site, err
	}
	server, err := p.upstream(as, r, guard, shows(r, guard, all.watch))
	return gateway.Site{Resource: r.URI, Guard: guard, Server: watched{server, all.watch}}, err
}

// watched is an MCP server with a watch on its tools.
type watched struct {
	gateway.Server
	watch *toolwatch.Watch
}

// Run implements gateway.Server.
func (w watched) Run(ctx context.Context) {
	go w.watch.Run(ctx)
	w.Server.Run(ctx)
}

// revokedWithin is how long a revoked token may still be accepted. Without the delay, each request
// would cost a query.
const revokedWithin = time.Second

// issuer is the part of the authorization server that a guard needs.
type issuer interface {
	mcpresource.Introspector
	Issuer() string
}

// guard returns the guard of one MCP server.
func (p Parts) guard(
	as issuer, r *config.Resource, shared bool, all common,
) (*mcpresource.Guard, error) {
	c, err := p.guardConfig(as, r, shared, all)
	if err != nil {
		return nil, err
	}
	return mcpresource.New(c)
}

func (p Parts) guardConfig(
	as issuer, r *config.Resource, shared bool, all common,
) (mcpresource.Config, error) {
	log := p.Log.With("resource", r.URI)
	c := mcpresource.Config{
		Resource: r.URI, Aliases: r.Aliases, AuthorizationServers: []string{as.Issuer()},
		Validator: gateway.Remember(mcpresource.Local(as), revokedWithin, p.Now, p.countLookup),
		Policy:    rules(r, all.watch), FirstScopes: r.First(),
		Metadata: mcpresource.Metadata{Name: r.Name, PathOnly: shared}, Origins: r.Upstream.Origins, CORS: true,
		MaxBodyBytes: int64(r.Upstream.MaxBody), Bodies: all.bodies, Audit: p.recordCall(r.URI),
		Calls:  each(p.logCalls(log), all.calls.take, p.countCall(r.URI, all.first), p.keepCall(r.URI)),
		Logger: log, Tracer: p.traces.Calls(p.Config.Traces.Arguments),
	}
	if d, ok := c.Validator.(mcpresource.Decisions); ok && p.stored {
		c.Validator = consistent{c.Validator, d}
	}
	if p.Config.Audit.Required {
		c.Check = p.beginCall(r.URI)
	}
	var err error
	if c.DPoP, err = p.dpop(r, all.proofs); err != nil {
		return c, err
	}
	if r.Upstream.PerClient() {
		c.SessionOwner = mcpresource.OwnerClient
	}
	c.Clearances, _ = as.(mcpresource.Clearances)
	c.StructuredDenials = r.Upstream.Denials == "structured"
	calls := r.Upstream.CallsPerSecond
	if calls == 0 {
		calls = callRate
	}
	c.Limits.Overtime = p.Config.Limits.CallOvertime()
	c.Limits.Calls = mcpresource.Rate{PerSecond: float64(calls), Burst: 5 * calls} // negative for no limit
	return c, nil
}

// dpop returns how the guard of one MCP server handles DPoP-bound tokens. If proofs is nil, the guard
// has a memory of its own.
func (p Parts) dpop(r *config.Resource, proofs mcpresource.Replays) (*mcpresource.DPoP, error) {
	d := &mcpresource.DPoP{Required: r.DPoP == "required", Unannounced: r.DPoP == "", Replays: proofs}
	if p.Config.DPoP.Nonces() {
		ring, err := secrets.NewRing(p.Keys...)
		if err != nil {
			return nil, err
		}
		d.NonceKey = ring.Key("DPoP nonces of MCP servers", 32) // the same on every replica
	}
	if p.Config.SharedProofs() {
		d.Replays = proofstore.New(p.Store, "call")
	}
	return d, nil
}

// each returns a function that passes each call to all takers, in order.
func each(takers ...func(context.Context, mcpresource.CallEvent)) func(context.Context, mcpresource.CallEvent) {
	return func(ctx context.Context, e mcpresource.CallEvent) {
		for _, take := range takers {
			take(ctx, e)
		}
	}
}

// memory limits the total size of request bodies for all MCP servers.
const memory = 128 << 20

// bodies returns the shared limit, with room for several of the largest bodies.
func (p Parts) bodies() *mcpresource.Bodies {
	most := int64(memory)
	for _, r := range p.Config.Resources {
		most = max(most, 8*int64(r.Upstream.MaxBody))
	}
	return mcpresource.NewBodies(most)
}

func rules(r *config.Resource, watch *toolwatch.Watch) *mcpresource.Rules {
	out := &mcpresource.Rules{
		Base: r.Base(), Tools: map[string][]string{}, Implies: map[string][]string{},
		Authentication: map[string]mcpresource.Authentication{}, Clearances: map[string]mcpresource.Clearance{},
	}
	if watch != nil {
		out.Held = watch.Held
	}
	for _, t := range r.Tools {
		if t.Deny {
			out.Deny = append(out.Deny, t.Name)
			continue
		}
		if t.Direct {
			out.Direct = append(out.Direct, t.Name)
		}
		if t.Clearance.Set() {
			out.Clearances[t.Name] = clearance(t.Clearance)
		}
		if len(t.Scopes) > 0 { // otherwise the exact name would remove the requirements of a pattern
			out.Tools[t.Name] = t.Scopes
		}
	}
	for _, s := range r.Scopes {
		if len(s.Implies) > 0 {
			out.Implies[s.Name] = s.Implies
		}
		if s.ACR != "" || s.MaxAge > 0 {
			out.Authentication[s.Name] = mcpresource.Authentication{
				ACR: oauth.ACRsFrom(s.ACR), MaxAge: time.Duration(s.MaxAge),
			}
		}
	}
	return out
}

// sharesOrigin reports whether another MCP server, configured or stored, has the same origin. In
// that case neither can have the metadata document at the root of the origin.
func (p Parts) sharesOrigin(r *config.Resource, stored []storage.Resource) bool {
	origin := func(raw string) string {
		u, err := url.Parse(raw)
		if err != nil {
			return ""
		}
		return u.Scheme + "://" + u.Host
	}
	others := func(uri string) bool { return uri != r.URI && origin(uri) == origin(r.URI) }
	return slices.ContainsFunc(p.Config.Resources, func(o config.Resource) bool { return others(o.URI) }) ||
		slices.ContainsFunc(stored, func(o storage.Resource) bool { return others(o.URI) })
}

// upstream returns the server that the guard forwards requests to.
func (p Parts) upstream(
	as *authserver.Server, r *config.Resource, guard *mcpresource.Guard, shows gateway.Shows,
) (gateway.Server, error) {
	u := &r.Upstream
	tokens, err := broker(as, u.Broker)
	if err != nil {
		return nil, err
	}
	ring, err := secrets.NewRing(p.Keys...)
	if err != nil {
		return nil, err
	}
	tasks, err := taskstore.New(p.Store, r.URI, ring, p.Now)
	if err != nil {
		return nil, err
	}
	c := gateway.Config{
		Tasks: tasks,
		May: func(ctx context.Context, tool string) bool {
			return guard.Covers(ctx, mcpresource.Operation{Method: "tools/call", Name: tool})
		},
		Tokens: tokens, Provider: u.Broker.Provider, Scopes: u.Broker.Scopes, Shows: shows,
		Watched: toolwatch.Mode(r.ToolsAccept).Holds(),
		Identity: gateway.Identity{
			Subject: u.ID.Subject, Client: u.ID.Client, Scope: u.ID.Scope, Actor: u.ID.Actor, Token: u.ID.Token,
			Audience: u.ID.Audience, Issuer: as.Issuer(), Signer: as.Keys(),
		},
	}
	if p.stored {
		c.Permits = p.permits
	}
	return p.Backend(r, c)
}

// shows returns the filter for lists. By default, lists show everything that the caller may use or
// can get the scopes for, so that clients discover tools that their user can permit. With lists:
// usable, they show only items that the token permits (RS-218).
func shows(r *config.Resource, guard *mcpresource.Guard, watch *toolwatch.Watch) gateway.Shows {
	covers := guard.CoversWithScopes
	if r.Upstream.Lists == "usable" {
		covers = guard.Covers
	}
	return func(ctx context.Context, k lists.Kind, name string, entry []byte) bool {
		op := mcpresource.Operation{Method: k.Use(), Name: name}
		switch {
		case k == lists.Tasks, k == lists.Begun: // tasks of the caller's own program; package gateway handles others
			return true
		case name == "", k == lists.Tools && !watch.See(ctx, name, entry):
			return false
		}
		return covers(ctx, op)
	}
}

// watch remembers how an MCP server describes its tools (RS-219).
func (p Parts) watch(ctx context.Context, r *config.Resource) (*toolwatch.Watch, error) {
	mode := toolwatch.Mode(r.ToolsAccept)
	return toolwatch.New(ctx, toolwatch.Config{
		Resource: policy.Canonical(r.URI), Mode: mode, Store: p.Store, Logger: p.Log, Now: p.Now,
		Changed: func(ctx context.Context, t storage.Tool) {
			what := "changed"
			if t.IsNew() {
				what = "new"
			}
			p.Audit.Record(ctx, audit.ToolChanged, slog.String("resource", t.Resource), slog.String("tool", t.Name),
				slog.String("what", what), slog.String("digest", hex.EncodeToString(t.Offered.Digest[:])),
				slog.Bool("held", mode.Holds()))
		},
	})
}

// Backend returns the MCP server: a program, or a remote server that c says how to tell about
// callers.
func (p Parts) Backend(r *config.Resource, c gateway.Config) (gateway.Server, error) {
	u := &r.Upstream
	if len(u.Command) > 0 {
		return stdio.New(stdio.Config{
			Command: u.Command, Dir: u.Dir, User: u.User, Sandbox: u.Sandbox.Policy(u.Dir),
			Env: u.Environment(), PassEnv: u.PassEnv,
			Shared: u.Shared(), Idle: time.Duration(u.Idle),
			MaxProcesses: u.MaxProcesses, MaxPerCaller: u.MaxPerCaller, Shows: c.Shows,
			PerClient: u.PerClient(), Resource: r.URI, Peers: p.peers, MaxBody: u.MaxBody,
			Logger: p.Log.With("resource", r.URI),
		})
	}
	c.URL, c.Resource, c.Headers, c.Cookies, c.Logger = u.URL, r.URI, u.Header(), u.Cookies, p.Log
	c.Timeout, c.Health = time.Duration(u.Timeout), u.Health
	return gateway.New(c)
}

// recordCall counts requests, and logs those that were admitted. The guard logs refused ones, and
// each call has its own line (mcpresource.LogCalls).
func (p Parts) recordCall(resource string) func(mcpresource.Event) {
	return func(e mcpresource.Event) {
		p.countDecision(e)
		if e.Status != 0 {
			return
		}
		level := slog.LevelInfo
		if slices.ContainsFunc(e.Operations, named) {
			level = slog.LevelDebug // frequent operations
		}
		attrs := []slog.Attr{
			slog.String("resource", resource), slog.String("outcome", string(e.Outcome)), audit.Remote(e.RemoteAddr),
		}
		if e.Principal != nil {
			attrs = append(attrs, slog.String("user", e.Principal.Subject),
				slog.String("client_id", e.Principal.ClientID))
		}
		for _, op := range e.Operations[:min(len(e.Operations), 1)] {
			attrs = append(attrs, slog.String("method", brief(op.Method)))
		}
		if e.Err != nil {
			attrs = append(attrs, slog.String("reason", brief(e.Err.Error())))
		}
		p.Log.LogAttrs(context.Background(), level, "mcp request", attrs...)
	}
}

func named(op mcpresource.Operation) bool { return op.Method != "" }

// Callers choose these texts and their length.
const maxText = 200 // in bytes

func brief(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "..."
}

// TryGateway sends a request to each MCP server behind the gateway, and logs those that do not
// respond properly.
func (s *Server) TryGateway(ctx context.Context) {
	s.sites.Try(ctx, func(resource string, err error) {
		s.parts.Log.Warn("an MCP server does not answer as it should", "resource", resource, "error", err)
	})
}
