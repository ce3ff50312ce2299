// Command embedded is an MCP server with its own login: the tools below, users, consent and tokens,
// in one process on one origin. The issuer is the root of the host, so that clients of MCP
// 2025-03-26, which look there, also find it.
//
//	go run . -listen 127.0.0.1:8080 -data ./data
//
// prints a link that creates the first account. Then give an MCP client http://127.0.0.1:8080/mcp.
// On the internet, put a proxy that terminates TLS in front, and pass -url
// https://notes.example.com.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
	"github.com/mcp-authd/mcp-authd/mcpserver"
)

var (
	listen = flag.String("listen", "127.0.0.1:8080", "address to listen on")
	public = flag.String("url", "", "public URL of this host (default: http:// and the address)")
	data   = flag.String("data", "data", "directory of the database and the secret key")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := mcpserver.Serve(ctx, newTools(), mcpserver.Options{URL: *public, Listen: *listen, DataDir: *data})
	if err != nil {
		log.Fatal(err)
	}
}

// The scopes of the tools, with the descriptions that users see.
var (
	read  = gosdk.Scope{Name: "notes:read", Description: "read your notes"}
	write = gosdk.Scope{Name: "notes:write", Description: "add notes in your name"}
)

// newTools returns an ordinary MCP server, with the scopes of its tools.
func newTools() *gosdk.Tools {
	n := &notes{pages: map[string][]string{}}
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Title: "Notes", Version: "1.0.0"}, nil)
	tools := gosdk.NewTools(s, read)
	gosdk.AddTool(tools, &mcp.Tool{Name: "whoami", Description: "Say who calls."}, whoami)
	gosdk.AddTool(tools, &mcp.Tool{Name: "list_notes", Description: "List your notes."}, n.list)
	gosdk.AddTool(tools, &mcp.Tool{Name: "add_note", Description: "Add a note."}, n.add, write)
	return tools
}

type caller struct {
	Subject string   `json:"subject"`
	Client  string   `json:"client"`
	Scopes  []string `json:"scopes"`
}

func whoami(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, caller, error) {
	p, _ := mcpresource.FromContext(ctx) // the guard rejects requests without a caller
	return nil, caller{p.Subject, p.ClientID, p.Scopes}, nil
}

// notes holds the notes of each user, by Principal.Person, which is the same for each application.
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

// of returns the caller's notes, after appending added.
func (n *notes) of(ctx context.Context, added ...string) []string {
	p, _ := mcpresource.FromContext(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pages[p.Person()] = append(n.pages[p.Person()], added...)
	return append([]string{}, n.pages[p.Person()]...)
}
