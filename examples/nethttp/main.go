// Command nethttp is an MCP server without any SDK behind a guard of package mcpresource. Any
// http.Handler can be protected like this.
//
//	mcp-authd resource add http://127.0.0.1:8080/mcp --scope mcp
//	go run . -listen 127.0.0.1:8080 -issuer http://localhost:8414
//
// With -client and -secret it reports refused requests and tool calls to the authorization server.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to listen on")
	issuer := flag.String("issuer", "http://localhost:8414", "authorization server")
	client := flag.String("client", "", "client of the operator as which it reports; without one it does not")
	secret := flag.String("secret", "", "file with the secret of that client")
	flag.Parse()

	v, err := mcpresource.Discover(context.Background(), *issuer, nil)
	if err != nil {
		log.Fatal(err)
	}
	c := mcpresource.Config{
		Resource: "http://" + *listen + "/mcp", AuthorizationServers: []string{*issuer}, Validator: v,
		Policy: policy,
	}
	if *client != "" {
		text, err := os.ReadFile(*secret)
		if err != nil {
			log.Fatal(err)
		}
		reporter, err := mcpresource.NewReporter(mcpresource.ReporterConfig{
			Issuer: *issuer, ClientID: *client, ClientSecret: strings.TrimSpace(string(text)), Logger: slog.Default(),
		})
		if err != nil {
			log.Fatal(err)
		}
		c.Decisions, c.Calls = reporter, mcpresource.KeepCalls(reporter)
	}
	guard, err := mcpresource.New(c)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	guard.Register(mux, http.HandlerFunc(serveMCP)) // your handler
	srv := &http.Server{Addr: *listen, Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	log.Fatal(srv.ListenAndServe())
}

// policy states the scopes of the tools.
var policy = &mcpresource.Rules{Base: []string{"mcp"}, Tools: map[string][]string{"delete_*": {"admin"}}}

// serveMCP is a minimal MCP server: one tool, no sessions, no streams.
func serveMCP(w http.ResponseWriter, r *http.Request) {
	var call struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name, ProtocolVersion string }
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil || call.ID == nil {
		w.WriteHeader(http.StatusAccepted) // a notification; the guard has refused invalid JSON
		return
	}
	caller, _ := mcpresource.FromContext(r.Context()) // the guard rejects requests without a caller
	answer := map[string]any{"jsonrpc": "2.0", "id": call.ID}
	switch call.Method + " " + call.Params.Name {
	case "initialize ":
		answer["result"] = map[string]any{
			"protocolVersion": call.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": "smallest", "version": "1.0.0"},
		}
	case "tools/list ":
		answer["result"] = map[string]any{
			"tools": []any{map[string]any{"name": "whoami", "inputSchema": map[string]any{"type": "object"}}},
		}
	case "tools/call whoami":
		answer["result"] = map[string]any{"content": []any{map[string]any{"type": "text", "text": caller.Subject}}}
	default:
		answer["error"] = map[string]any{"code": -32601, "message": "Method not found."}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // fails only if the client is gone
}
