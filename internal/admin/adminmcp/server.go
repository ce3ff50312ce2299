package adminmcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
)

// Config configures the server.
type Config struct {
	Root    string // its URL, which is the resource of its tokens
	Service *admin.Service
	Callers api.Callers
	// Guard describes the authorization server, and who is notified of calls.
	Guard mcpresource.Config
	Log   *slog.Logger
}

// Server is an MCP server with the operations as tools.
type Server struct {
	c     Config
	guard *mcpresource.Guard
	http  http.Handler
}

// The limits of the server, beside the usual limits of a guard.
const (
	callsPerSecond = 10
	callsAtOnce    = 20
	maxBody        = 256 << 10 // of a request
	maxResult      = 1 << 20   // of a result, which contains its JSON twice
	toolTimeout    = time.Minute
)

// New returns the server.
func New(c Config) (*Server, error) {
	s := &Server{c: c}
	var err error
	if s.guard, err = mcpresource.New(s.limited(c.Guard)); err != nil {
		return nil, err
	}
	inside := sync.OnceValue(s.inside)
	s.http = s.guard.Handler(postsAlone(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inside().ServeHTTP(w, r)
	})))
	return s, nil
}

// inside returns the handler behind the guard. It is created for the first caller, because the
// schemas of the tools would delay the start of the server.
func (s *Server) inside() http.Handler {
	server := mcp.NewServer(
		&mcp.Implementation{Name: "mcp-authd-admin", Title: "mcp-authd administration", Version: "1"},
		&mcp.ServerOptions{
			Instructions: instructions,
			Logger:       s.c.Log,
			GetSessionID: func() string { return "" }, // no tool needs a session, so any replica can answer
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		})
	s.addTools(server)
	server.AddReceivingMiddleware(s.listed)
	return gosdk.New(s.guard, server, &gosdk.Options{
		Sessionless: true,
		ShowAll:     true, // listed filters by role
		ToolTimeout: toolTimeout,
		MaxCalls:    callsAtOnce,
		MaxResult:   maxResult,
		Logger:      s.c.Log,
	}).HTTP()
}

// postsAlone answers 405 to methods other than POST, because this server offers neither streams nor
// sessions to end (MCP 2025-11-25, Streamable HTTP). After any other refusal of a GET, some clients
// list no tools.
func postsAlone(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Register mounts the server, and the metadata of its resource.
func (s *Server) Register(mux *http.ServeMux) error {
	for _, raw := range []string{s.c.Root, s.guard.MetadataURL()} {
		u, err := url.Parse(raw)
		if err != nil {
			return err
		}
		mux.Handle(u.Path, s.http)
	}
	return nil
}

// limited returns the configuration of the guard with this server's own settings.
func (s *Server) limited(c mcpresource.Config) mcpresource.Config {
	c.Resource, c.Policy, c.Check = s.c.Root, Rules(s.c.Service.FreshFor), s.check
	// A client requests admin:write to make the user authenticate, so clients start with the scope
	// that reads.
	c.Metadata = mcpresource.Metadata{
		Name: "Administration by an assistant", PathOnly: true, ScopesSupported: []string{api.ScopeRead},
	}
	c.MaxBodyBytes = maxBody
	c.Limits.Calls = mcpresource.Rate{PerSecond: callsPerSecond, Burst: 5 * callsPerSecond}
	c.Limits.Concurrent = callsAtOnce
	return c
}

// check admits callers who currently have a role.
func (s *Server) check(ctx context.Context, p *mcpresource.Principal, _ mcpresource.Operation) error {
	_, err := s.actor(ctx, p)
	if err != nil && !errors.Is(err, api.ErrNoRole) {
		return fmt.Errorf("%w: %w", mcpresource.ErrUnavailable, err)
	}
	return err
}

func (s *Server) actor(ctx context.Context, p *mcpresource.Principal) (admin.Actor, error) {
	return s.c.Callers.Actor(ctx, p, s.c.Root)
}

// caller returns the caller of a request that passed the guard.
func (s *Server) caller(ctx context.Context) (admin.Actor, *mcpresource.Principal, error) {
	p, ok := mcpresource.FromContext(ctx)
	if !ok {
		return admin.Actor{}, nil, mcpresource.ErrNoCaller
	}
	a, err := s.actor(ctx, p)
	return a, p, err
}
