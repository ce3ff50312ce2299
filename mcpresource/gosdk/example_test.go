package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
)

// A server uses the official Go SDK. Its users sign in at a separate authorization server.
func Example() {
	// With a real server: mcpresource.Discover(ctx, "https://auth.example.com", nil)
	validator := mcpresource.ValidatorFunc(
		func(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) {
			return &mcpresource.Principal{
				Issuer: "https://auth.example.com", Subject: "alice", Scopes: []string{"mcp"},
				Audience: []string{"http://127.0.0.1/mcp"}, ExpiresAt: time.Now().Add(time.Hour),
			}, nil
		})
	guard, err := mcpresource.New(mcpresource.Config{
		Resource:             "http://127.0.0.1/mcp",
		AuthorizationServers: []string{"https://auth.example.com"},
		Validator:            validator,
		Policy: &mcpresource.Rules{
			Base: []string{"mcp"}, Tools: map[string][]string{"delete_file": {"files:write"}},
		},
	})
	if err != nil {
		panic(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet"},
		func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			caller, _ := gosdk.Principal(req) // of this call
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello " + caller.Subject}}},
				nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "delete_file"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, nil // never reached without files:write
		})
	host := httptest.NewServer(gosdk.NewHandler(guard, server, nil))
	defer host.Close()

	session := connect(host.URL+"/mcp", "alices-token")
	defer session.Close()
	ctx := context.Background()
	tools, _ := session.ListTools(ctx, nil)
	fmt.Println(len(tools.Tools), "tool in alice's list")
	result, _ := session.CallTool(ctx, &mcp.CallToolParams{Name: "greet"})
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "delete_file"})
	fmt.Println("delete_file is refused:", err != nil)
	// Output:
	// 1 tool in alice's list
	// hello alice
	// delete_file is refused: true
}

// The scopes of a tool are declared with it. The guard's requirements and the consent texts come
// from these declarations.
func ExampleAddTool() {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	tools := gosdk.NewTools(server, gosdk.Scope{Name: "mcp", Description: "read your notes"})
	write := gosdk.Scope{Name: "notes:write", Description: "add notes in your name"}
	done := func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	}
	gosdk.AddTool(tools, &mcp.Tool{Name: "list_notes"}, done) // the default scope is enough
	gosdk.AddTool(tools, &mcp.Tool{Name: "add_note"}, done, write)

	c := mcpresource.Config{
		Resource:             "http://127.0.0.1/mcp",
		AuthorizationServers: []string{"https://auth.example.com"},
		Validator:            aliceAt("http://127.0.0.1/mcp"), // Serve sets the rest automatically
	}
	if err := tools.Configure(&c); err != nil {
		panic(err)
	}
	guard, err := mcpresource.New(c)
	if err != nil {
		panic(err)
	}
	host := httptest.NewServer(gosdk.NewHandler(guard, server, &gosdk.Options{ShowAll: true}))
	defer host.Close()
	session := connect(host.URL+"/mcp", "alices-token") // with the scope mcp
	defer session.Close()
	for _, name := range []string{"list_notes", "add_note"} {
		_, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: name})
		fmt.Println(name, "is refused:", err != nil)
	}
	// Output:
	// list_notes is refused: false
	// add_note is refused: true
}

// One call serves an MCP server whose users sign in elsewhere.
func ExampleServe() {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	tools := gosdk.NewTools(server, gosdk.Scope{Name: "mcp"}) // the authorization server has the consent texts
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := gosdk.Serve(ctx, tools, gosdk.ServeOptions{
		Resource: "http://notes.example.com/mcp", // yours is https
		Issuer:   "https://auth.example.com",
	})
	fmt.Println(strings.Replace(err.Error(), " (", "\n(", 1))
	// Output:
	// gosdk: Resource "http://notes.example.com/mcp" is not a URL such as https://notes.example.com/mcp
	// (http is for localhost only)
}

// The authorization server runs in the same process and on the same origin, assembled by hand.
// Package mcpserver does this in one call.
func Example_embedded() {
	ctx := context.Background()
	mux := http.NewServeMux()
	host := httptest.NewServer(mux) // yours: http.ListenAndServe("127.0.0.1:8080", mux)
	defer host.Close()
	base := host.URL

	dir, err := os.MkdirTemp("", "") // yours: a directory that stays
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	as, err := authserver.New(ctx, authserver.Options{
		Issuer: base, DataDir: dir,
		Resources: []authserver.Resource{
			{URI: base + "/mcp", Name: "Notes",
				Scopes: []authserver.Scope{{Name: "mcp", Description: "use your notes", Default: true}}},
		},
	})
	if err != nil {
		panic(err)
	}
	defer as.Close()
	if _, err := as.Users().Create(ctx, "alice", "correct horse battery", false); err != nil {
		panic(err)
	}
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: base + "/mcp", AuthorizationServers: []string{base},
		Validator: mcpresource.Local(as), Policy: &mcpresource.Rules{Base: []string{"mcp"}},
	})
	if err != nil {
		panic(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	as.Register(mux)
	guard.Register(mux, gosdk.Unguarded(guard, server, nil))

	resp, err := http.Get(base + "/mcp")
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode, strings.ReplaceAll(resp.Header.Get("WWW-Authenticate"), base, "BASE"))
	// Output:
	// 401 Bearer scope="mcp", resource_metadata="BASE/.well-known/oauth-protected-resource/mcp"
}

// A server is started by its client. The access token is in the environment, and the guard's rules
// apply as over HTTP.
func ExampleRunStdio() {
	guard, err := mcpresource.New(mcpresource.Config{
		Resource:             "http://127.0.0.1/mcp",
		AuthorizationServers: []string{"https://auth.example.com"},
		Validator:            aliceAt("http://127.0.0.1/mcp"),
		Policy:               &mcpresource.Rules{Base: []string{"mcp"}},
	})
	if err != nil {
		panic(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet"},
		func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			caller, _ := gosdk.Principal(req)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello " + caller.Subject}}},
				nil, nil
		})
	gosdk.New(guard, server, nil)

	os.Setenv("FILES_TOKEN", "alices-token") // done by the program that starts the server
	in := io.NopCloser(strings.NewReader("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n{bad\n"))
	err = gosdk.RunStdio(context.Background(), server, &gosdk.StdioOptions{
		Caller: gosdk.FromEnv(guard, "FILES_TOKEN"),
		Reader: in, Writer: os.Stdout, // yours: leave both out
	})
	fmt.Println("ended:", err)
	// Unordered output:
	// {"jsonrpc":"2.0","id":1,"result":{}}
	// {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"The message is not JSON."}}
	// ended: <nil>
}

// HTTP+SSE of 2024-11-05 is served in addition to the current endpoint, for clients that support
// nothing else. It is a separate resource, because clients compare its URL with its metadata.
func ExampleAdapter_SSE() {
	mux := http.NewServeMux()
	host := httptest.NewServer(mux)
	defer host.Close()
	guard := func(resource string) *mcpresource.Guard {
		g, err := mcpresource.New(mcpresource.Config{
			Resource: resource, AuthorizationServers: []string{"https://auth.example.com"},
			Validator: aliceAt(resource),
			Policy:    &mcpresource.Rules{Base: []string{"mcp"}},
			Metadata:  mcpresource.Metadata{PathOnly: true}, // two resources on one host
		})
		if err != nil {
			panic(err)
		}
		return g
	}
	today, old := guard(host.URL+"/mcp"), guard(host.URL+"/sse")
	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1.0.0"}, nil)
	adapter := gosdk.New(today, server, nil)
	today.Register(mux, adapter.HTTP())
	old.Register(mux, adapter.SSE())

	client := mcp.NewClient(&mcp.Implementation{Name: "old", Version: "1"}, nil)
	session, err := client.Connect(context.Background(),
		&mcp.SSEClientTransport{
			Endpoint: host.URL + "/sse", HTTPClient: &http.Client{Transport: bearer("alices-token")}}, nil)
	if err != nil {
		panic(err)
	}
	defer session.Close()
	fmt.Println(session.InitializeResult().ServerInfo.Name)
	// Output:
	// files
}

// Only the tool can make decisions that depend on the object. A long-running tool makes them
// repeatedly.
func ExampleOwn() {
	owners := map[string]string{} // by document: the Key of the caller who created it
	remove := func(guard *mcpresource.Guard) mcp.ToolHandlerFor[struct{ ID string }, any] {
		return func(ctx context.Context, req *mcp.CallToolRequest, in struct{ ID string }) (*mcp.CallToolResult, any,
			error) {
			if err := gosdk.Own(req, owners[in.ID]); err != nil {
				return nil, nil, err // as if it did not exist
			}
			if err := guard.Require(ctx, "files:delete"); err != nil {
				return nil, nil, gosdk.Refusal(err) // insufficient_scope, with the required scopes
			}
			for range 3 { // long work
				if err := guard.Recheck(ctx, mcpresource.Operation{Method: "tools/call", Name: "delete"}); err != nil {
					return nil, nil, gosdk.Refusal(err) // e.g. revoked meanwhile
				}
			}
			return nil, nil, nil
		}
	}
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: "http://127.0.0.1/mcp", AuthorizationServers: []string{"https://auth.example.com"},
		Validator: aliceAt("http://127.0.0.1/mcp"), Policy: &mcpresource.Rules{Base: []string{"mcp"}},
	})
	if err != nil {
		panic(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "delete"}, remove(guard))
	host := httptest.NewServer(gosdk.NewHandler(guard, server, nil))
	defer host.Close()
	session := connect(host.URL+"/mcp", "alices-token")
	defer session.Close()
	for _, owner := range []string{"somebody else", "https://auth.example.com\x00alice\x00app"} {
		owners["report"] = owner
		_, err := session.CallTool(context.Background(),
			&mcp.CallToolParams{Name: "delete", Arguments: map[string]string{"ID": "report"}})
		var refusal *jsonrpc.Error
		errors.As(err, &refusal)
		fmt.Println(refusal.Message)
	}
	// Output:
	// Not found.
	// This operation needs more scope.
}

// A long-running tool is called as a task by clients that support tasks. The tool itself does not
// change.
func ExampleTasks() {
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: "http://127.0.0.1/mcp", AuthorizationServers: []string{"https://auth.example.com"},
		Validator: aliceAt("http://127.0.0.1/mcp"), Policy: &mcpresource.Rules{Base: []string{"mcp"}},
	})
	if err != nil {
		panic(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "reports", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "build"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "12 pages"}}}, nil, nil
		})
	host := httptest.NewServer(gosdk.NewHandler(guard, server, &gosdk.Options{
		Tasks: &gosdk.Tasks{Tools: map[string]gosdk.TaskTool{"build": {}}},
	}))
	defer host.Close()

	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build","_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{
		"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`
	request, err := http.NewRequest(http.MethodPost, host.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer alices-token", "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": "tools/call", "Mcp-Name": "build",
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Contains(string(answer), `"resultType":"task"`), strings.Contains(string(answer), "12 pages"))
	// Output:
	// true false
}

// aliceAt returns a validator that accepts any token as alice's for a resource. Yours:
// mcpresource.Discover.
func aliceAt(resource string) mcpresource.Validator {
	return mcpresource.ValidatorFunc(func(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) {
		return &mcpresource.Principal{
			Issuer: "https://auth.example.com", Subject: "alice", ClientID: "app", Scopes: []string{"mcp"},
			Audience: []string{resource}, ExpiresAt: time.Now().Add(time.Hour),
		}, nil
	})
}

// connect returns a session of an SDK client that sends a token.
func connect(endpoint, token string) *mcp.ClientSession {
	client := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &mcp.StreamableClientTransport{
		Endpoint: endpoint, HTTPClient: &http.Client{Transport: bearer(token)}, DisableStandaloneSSE: true,
		MaxRetries: -1,
	}, nil)
	if err != nil {
		panic(err)
	}
	return session
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}
