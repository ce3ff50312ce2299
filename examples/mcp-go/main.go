// Command mcp-go is a server of github.com/mark3labs/mcp-go behind a guard of package mcpresource.
// It accepts the tokens of any authorization server, such as mcp-authd serve:
//
//	mcp-authd resource add http://127.0.0.1:8080/mcp --scope notes:read --scope notes:write
//	go run . -listen 127.0.0.1:8080 -issuer http://localhost:8414
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-authd/mcp-authd/examples/mcp-go/mcpguard"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

var (
	listen = flag.String("listen", "127.0.0.1:8080", "address to listen on")
	public = flag.String("url", "", "public URL of the MCP endpoint (default: http://, the address and /mcp)")
	issuer = flag.String("issuer", "http://localhost:8414", "authorization server")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	v, err := mcpresource.Discover(ctx, *issuer, nil)
	if err != nil {
		return err
	}
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: cmp.Or(*public, "http://"+*listen+"/mcp"), AuthorizationServers: []string{*issuer}, Validator: v, Logger: slog.Default(),
		Policy: policy,
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	guard.Register(mux, newHandler(guard))
	srv := &http.Server{
		Addr: *listen, Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }, // streams end with the program
	}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		end, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		stopped <- srv.Shutdown(end)
	})
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// policy states the scopes of the tools.
var policy = &mcpresource.Rules{
	Base: []string{"notes:read"}, Tools: map[string][]string{"add_*": {"notes:write"}},
}

// newHandler returns the handler that the guard protects.
func newHandler(guard *mcpresource.Guard) http.Handler {
	return server.NewStreamableHTTPServer(newServer(guard),
		server.WithStateful(true),                   // the guard binds sessions to callers
		server.WithDisableLocalhostProtection(true), // it also checks Host and Origin
	)
}

// newServer returns an ordinary MCP server, except for the first option.
func newServer(guard *mcpresource.Guard) *server.MCPServer {
	n := &notes{pages: map[string][]string{}}
	s := server.NewMCPServer("notes", "1.0.0", mcpguard.With(guard, nil), server.WithRecovery(), server.WithInputSchemaValidation())
	s.AddTool(mcp.NewTool("whoami", mcp.WithDescription("Say who calls.")), whoami)
	s.AddTool(mcp.NewTool("list_notes", mcp.WithDescription("List your notes.")), n.list)
	s.AddTool(mcp.NewTool("add_note", mcp.WithDescription("Add a note."), mcp.WithString("text", mcp.Required())), n.add)
	return s
}

func whoami(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	p, _ := mcpresource.FromContext(ctx) // the guard rejects requests without a caller
	return mcp.NewToolResultText(p.Subject + " by " + p.ClientID), nil
}

// notes holds the notes of each user, by Principal.Person, which is the same for each application.
type notes struct {
	mu    sync.Mutex // guards pages
	pages map[string][]string
}

func (n *notes) list(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText(strings.Join(n.of(ctx), "\n")), nil
}

func (n *notes) add(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText(strings.Join(n.of(ctx, r.GetString("text", "")), "\n")), nil
}

// of returns the caller's notes, after appending added.
func (n *notes) of(ctx context.Context, added ...string) []string {
	p, _ := mcpresource.FromContext(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pages[p.Person()] = append(n.pages[p.Person()], added...)
	return append([]string{}, n.pages[p.Person()]...)
}
