// Command embedded is an MCP server with its own login: the tools below, and people,
// consent and tokens, in one process on one origin. The issuer is the root of the host, so
// that clients of MCP 2025-03-26, which look there, find it too.
//
//	go run . -listen 127.0.0.1:8080 -data ./data
//
// prints a link by which you make the first account. Then give an MCP client
// http://127.0.0.1:8080/mcp. On the internet, put a proxy that terminates TLS in front and
// say -url https://notes.example.com.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/keys"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/sqlite"
)

var (
	listen = flag.String("listen", "127.0.0.1:8080", "address to listen on")
	public = flag.String("url", "", "public URL of this host (default: http:// and the address)")
	data   = flag.String("data", "data", "directory of the database and the secret key")
	ttl    = flag.Duration("access-ttl", 15*time.Minute, "how long an access token lives")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	base := cmp.Or(*public, "http://"+*listen)
	secret, err := keys.SecretFile(filepath.Join(*data, "secret.key"))
	if err != nil {
		return err
	}
	// With these names the commands of mcp-authd work here, too: user add NAME --data DIR.
	store, err := sqlite.Open(ctx, filepath.Join(*data, "mcp-authd.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	// Who may come in: accounts, registration of clients, tokens.
	registry, err := dcr.New(dcr.Config{Store: store, SecretKeys: [][]byte{secret}})
	if err != nil {
		return err
	}
	as, err := authserver.New(ctx, authserver.Config{
		Issuer: base, Store: store, SecretKeys: [][]byte{secret}, Registry: registry, ProductName: "Notes",
		Logger: slog.Default(),
		Tokens: authserver.TokenPolicy{AccessTTL: *ttl},
		Resources: []storage.Resource{{URI: base + "/mcp", Name: "Notes", Scopes: []storage.ScopeText{
			{Name: "notes:read", Description: "read your notes", Default: true},
			{Name: "notes:write", Description: "add notes in your name"},
		}}},
	})
	if err != nil {
		return err
	}

	// What they may do: judged in this process, so that a revoked token ends at once.
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: base + "/mcp", AuthorizationServers: []string{base}, Validator: mcpresource.Local(as),
		Logger: slog.Default(),
		Policy: &mcpresource.Rules{Base: []string{"notes:read"}, Tools: map[string][]string{"add_*": {"notes:write"}}},
	})
	if err != nil {
		return err
	}
	tools := gosdk.New(guard, newServer(), &gosdk.Options{ShowAll: true})

	mux := http.NewServeMux()
	as.Register(mux)
	guard.Register(mux, tools.HTTP())
	if link, err := as.SetupLink(ctx); err != nil {
		return err
	} else if link != "" {
		fmt.Println("Make the first account (valid 1 h, once):", link)
	}
	return as.Serve(ctx, authserver.Site{Address: *listen, Handler: mux, Ending: tools.Close})
}

// newServer is the MCP server as its author would write it anyway.
func newServer() *mcp.Server {
	n := &notes{pages: map[string][]string{}}
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "whoami", Description: "Say who calls."}, whoami)
	mcp.AddTool(s, &mcp.Tool{Name: "list_notes", Description: "List your notes."}, n.list)
	mcp.AddTool(s, &mcp.Tool{Name: "add_note", Description: "Add a note."}, n.add)
	return s
}

type caller struct {
	Subject string   `json:"subject"`
	Client  string   `json:"client"`
	Scopes  []string `json:"scopes"`
}

func whoami(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, caller, error) {
	p, _ := mcpresource.FromContext(ctx) // the guard lets no request in without one
	return nil, caller{p.Subject, p.ClientID, p.Scopes}, nil
}

// notes are the notes of each person, by the subject of the token.
type notes struct {
	mu    sync.Mutex // guards pages
	pages map[string][]string
}

type page struct {
	Notes []string `json:"notes"`
}

func (n *notes) list(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, page, error) {
	return nil, page{n.of(ctx)}, nil
}

type note struct {
	Text string `json:"text" jsonschema:"what to write down"`
}

func (n *notes) add(ctx context.Context, _ *mcp.CallToolRequest, in note) (*mcp.CallToolResult, page, error) {
	return nil, page{n.of(ctx, in.Text)}, nil
}

// of returns the caller's notes, with what is added.
func (n *notes) of(ctx context.Context, added ...string) []string {
	p, _ := mcpresource.FromContext(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pages[p.Subject] = append(n.pages[p.Subject], added...)
	return append([]string{}, n.pages[p.Subject]...)
}
