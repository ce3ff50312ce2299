package mcpserver_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
	"github.com/mcp-authd/mcp-authd/mcpserver"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// This is a whole program: an MCP server with sign-in, accounts, consent and tokens. Set
// MCP_AUTHD_ISSUER, or URL in Options, to the URL for clients, and MCP_AUTHD_LISTEN to the listen
// address.
func Example() {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	tools := gosdk.NewTools(server, gosdk.Scope{Name: "notes:read", Description: "read your notes"})
	gosdk.AddTool(tools, &mcp.Tool{Name: "list_notes", Description: "List your notes."}, list)
	gosdk.AddTool(tools, &mcp.Tool{Name: "add_note", Description: "Add a note."}, add,
		gosdk.Scope{Name: "notes:write", Description: "add notes in your name"})

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := mcpserver.Serve(ctx, tools, mcpserver.Options{}); err != nil {
		log.Fatal(err)
	}
}

// Each user has separate notes, keyed by the subject of the token.
var pages = map[string][]string{}

type page struct {
	Notes []string `json:"notes"`
}

type note struct {
	Text string `json:"text"`
}

func list(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, page, error) {
	caller, _ := mcpresource.FromContext(ctx)
	return nil, page{append([]string{}, pages[caller.Subject]...)}, nil
}

func add(ctx context.Context, r *mcp.CallToolRequest, in note) (*mcp.CallToolResult, page, error) {
	caller, _ := mcpresource.FromContext(ctx)
	pages[caller.Subject] = append(pages[caller.Subject], in.Text)
	return list(ctx, r, struct{}{})
}

// Ready reports the URL of the server and the link to create its first account.
func ExampleServe() {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	tools := gosdk.NewTools(server, gosdk.Scope{Name: "notes:read", Description: "read your notes"})
	gosdk.AddTool(tools, &mcp.Tool{Name: "list_notes"}, list)

	data, err := os.MkdirTemp("", "notes-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(data)
	ctx, stop := context.WithCancel(context.Background())
	err = mcpserver.Serve(ctx, tools, mcpserver.Options{
		Listen:  "127.0.0.1:0", // yours: "127.0.0.1:8414", behind a proxy that terminates TLS
		DataDir: data,
		Ready: func(r mcpserver.Ready) {
			base := strings.TrimSuffix(r.MCPURL, "/mcp")
			fmt.Println("setup link:", strings.HasPrefix(r.SetupLink, base+"/setup#token="))
			go func() { // a client that knows only the URL
				defer stop() // yours: SIGINT or SIGTERM
				resp, err := http.Get(r.MCPURL)
				if err != nil {
					panic(err)
				}
				resp.Body.Close()
				fmt.Println(resp.StatusCode, strings.ReplaceAll(resp.Header.Get("WWW-Authenticate"), base, "BASE"))
			}()
		},
	})
	fmt.Println("ended:", err)
	// Output:
	// setup link: true
	// 401 Bearer scope="notes:read", resource_metadata="BASE/.well-known/oauth-protected-resource/mcp"
	// ended: <nil>
}

// A server on the internet may set these options. Users sign in with GitHub if they are members of
// an organization, and several replicas share a database.
func ExampleOptions() {
	o := mcpserver.Options{
		URL:      "https://notes.example.com",
		Listen:   "10.0.0.7:8080", // a proxy terminates TLS
		Name:     "Notes of Example",
		Database: "postgres://notes@db/notes", // with MCP_AUTHD_SECRET_KEY_FILE, the same on every replica
		Providers: []thirdparty.Connector{{
			ID: "github", Type: "github", ClientID: "Ov23liExample", ClientSecret: os.Getenv("GITHUB_SECRET"),
			Allow: thirdparty.Rules{Organizations: []string{"example"}},
		}},
		Adjust: func(c *mcpresource.Config) {
			c.Limits.Tools = map[string]mcpresource.Rate{"add_note": {PerSecond: 1, Burst: 10}}
		},
	}
	fmt.Println(o.URL, "with", len(o.Providers), "provider")
	// Output: https://notes.example.com with 1 provider
}
