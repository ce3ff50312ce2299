package assembly

import (
	"context"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/adminmcp"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// The paths of the administrative APIs, relative to the issuer.
const (
	apiPath = "/api/v1"
	mcpPath = "/mcp/admin"
)

// OwnResources returns the resources of the server itself.
func OwnResources(c *config.Config) (out []storage.Resource) {
	if c.API.Enabled {
		out = append(out, api.Resource(c.Issuer+apiPath, "Administration of this server"))
	}
	if c.API.Enabled && c.API.MCP {
		out = append(out, adminmcp.Resource(c.Issuer+mcpPath, "Administration of this server by an assistant",
			time.Duration(c.Console.Fresh)))
	}
	return out
}

// faces returns the handlers of the administrative APIs.
func (s *Server) faces(clients authserver.Clients) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	if !s.parts.Config.API.Enabled {
		return mux, nil
	}
	if s.notifier == nil { // without a console
		var err error
		if s.notifier, err = s.parts.Notifier(); err != nil {
			return nil, err
		}
	}
	service, err := s.parts.Admin(s.notifier)
	if err != nil {
		return nil, err
	}
	service.Delegation, service.Registry = s.parts.asking(s.delegation), s.parts.reading(clients)
	callers := api.Callers{Store: s.parts.Store, Clients: clients}
	if err := s.serveAPI(mux, service, callers); err != nil {
		return nil, err
	}
	if !s.parts.Config.API.MCP {
		return mux, nil
	}
	return mux, s.serveMCP(mux, service, callers)
}

func (s *Server) serveAPI(mux *http.ServeMux, service *admin.Service, callers api.Callers) error {
	root := s.Auth.Issuer() + apiPath
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: root, AuthorizationServers: []string{s.Auth.Issuer()}, Validator: mcpresource.Local(s.Auth),
		Policy: api.Rules(),
		Metadata: mcpresource.Metadata{
			Name: "Administration", PathOnly: true, ScopesSupported: []string{api.ScopeRead, api.ScopeWrite},
		},
		Now: s.parts.Now, Logger: s.parts.Log.With("resource", root),
	})
	if err != nil {
		return err
	}
	ring, err := secrets.NewRing(s.parts.Keys...)
	if err != nil {
		return err
	}
	server, err := api.New(api.Config{
		Root: root, Service: service, Guard: guard, Requests: s.parts.Store, Ring: ring, Log: s.parts.Log,
		Callers: callers,
	})
	if err != nil {
		return err
	}
	return server.Register(mux)
}

func (s *Server) serveMCP(mux *http.ServeMux, service *admin.Service, callers api.Callers) error {
	p, root := s.parts, s.Auth.Issuer()+mcpPath
	log := p.Log.With("resource", root)
	server, err := adminmcp.New(adminmcp.Config{
		Root: root, Service: service, Callers: callers, Log: log,
		Guard: mcpresource.Config{
			AuthorizationServers: []string{s.Auth.Issuer()}, Validator: mcpresource.Local(s.Auth),
			Audit: p.recordCall(root),
			Calls: each(mcpresource.LogCalls(log), p.countCall(root, newFirstCalls(s.Auth.Issuer(), p.Now)),
				p.keepCall(root)),
			Now: p.Now, Logger: log, Tracer: p.traces.Calls(false),
		},
	})
	if err != nil {
		return err
	}
	return server.Register(mux)
}

// letterTime is how long a stopping server waits for the mail server.
const letterTime = 10 * time.Second

// settleFaces delivers pending notifications about administrative changes.
func (s *Server) settleFaces(ctx context.Context) {
	if s.notifier == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), letterTime)
	defer cancel()
	s.notifier.Drain(ctx)
}

// home serves the paths in beside, and passes all others to the authorization server.
type home struct {
	beside *http.ServeMux
	main   http.Handler
}

// ServeHTTP implements http.Handler.
func (h home) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := h.beside.Handler(r); pattern == "" {
		h.main.ServeHTTP(w, r)
	} else if unclean(r.URL.EscapedPath()) {
		// ServeMux would redirect to the clean path. That may name another object if a program put
		// an empty value into a path, as in /users//links.
		api.NoOperation(w)
	} else {
		h.beside.ServeHTTP(w, r)
	}
}

// unclean reports whether a path has empty, "." or ".." segments.
func unclean(p string) bool {
	return strings.Contains(p, "//") || path.Clean(p) != strings.TrimRight(p, "/")
}

// Handler returns the handler for a request, like http.ServeMux.Handler.
func (h home) Handler(r *http.Request) (http.Handler, string) {
	if found, pattern := h.beside.Handler(r); pattern != "" {
		return found, pattern
	}
	if mux, ok := h.main.(interface {
		Handler(*http.Request) (http.Handler, string)
	}); ok {
		return mux.Handler(r)
	}
	return h.main, ""
}
