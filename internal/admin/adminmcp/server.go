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

// Config is what the server needs.
type Config struct {
	Root    string // its URL, which is the resource of its tokens
	Service *admin.Service
	Callers api.Callers
	// Guard is what its guard needs to know of the authorization server, and who hears of calls.
	Guard mcpresource.Config
	Log   *slog.Logger
}

// Server is an MCP server with the operations as tools.
type Server struct {
	c     Config
	guard *mcpresource.Guard
	http  http.Handler
}

// The bounds of the server, beside those of every guard.
const (
	callsPerSecond = 10
	callsAtOnce    = 20
	maxBody        = 256 << 10 // of a request
	maxResult      = 1 << 20   // of a result, whose JSON is in it twice
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

// inside is what stands behind the guard, made when the first caller has got there: the schemas of
// the tools take time that the start of a server need not.
func (s *Server) inside() http.Handler {
	server := mcp.NewServer(
		&mcp.Implementation{Name: "mcp-authd-admin", Title: "mcp-authd administration", Version: "1"},
		&mcp.ServerOptions{
			Instructions: instructions,
			Logger:       s.c.Log,
			GetSessionID: func() string { return "" }, // no tool needs a session: any replica answers
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		})
	s.addTools(server)
	server.AddReceivingMiddleware(s.listed)
	return gosdk.New(s.guard, server, &gosdk.Options{
		Sessionless: true,
		ShowAll:     true, // listed knows the role as well
		ToolTimeout: toolTimeout,
		MaxCalls:    callsAtOnce,
		MaxResult:   maxResult,
		Logger:      s.c.Log,
	}).HTTP()
}

// postsAlone says that there are no streams and no sessions to end (MCP 2025-11-25, Streamable HTTP): to
// another refusal of a GET some clients list no tools.
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

// limited is the configuration of the guard with what is particular to this server.
func (s *Server) limited(c mcpresource.Config) mcpresource.Config {
	c.Resource, c.Policy, c.Check = s.c.Root, Rules(s.c.Service.FreshFor), s.check
	// who asks for admin:write asks to be asked for a proof: clients begin with what reads
	c.Metadata = mcpresource.Metadata{
		Name: "Administration by an assistant", PathOnly: true, ScopesSupported: []string{api.ScopeRead},
	}
	c.MaxBodyBytes = maxBody
	c.Limits.Calls = mcpresource.Rate{PerSecond: callsPerSecond, Burst: 5 * callsPerSecond}
	c.Limits.Concurrent = callsAtOnce
	return c
}

// check lets those in who have a role now.
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

// caller is who calls in a request that the guard let through.
func (s *Server) caller(ctx context.Context) (admin.Actor, *mcpresource.Principal, error) {
	p, ok := mcpresource.FromContext(ctx)
	if !ok {
		return admin.Actor{}, nil, mcpresource.ErrNoCaller
	}
	a, err := s.actor(ctx, p)
	return a, p, err
}
