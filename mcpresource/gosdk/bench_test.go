package gosdk

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// BenchmarkCall measures a tools/call of 2026-07-28 in process: the SDK alone, behind the adapter,
// and behind guard and adapter. The server has 20 tools.
func BenchmarkCall(b *testing.B) {
	server := func() *mcp.Server {
		s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
		for _, name := range strings.Split("abcdefghijklmnopqrs", "") {
			mcp.AddTool(s, &mcp.Tool{Name: name}, okTyped)
		}
		mcp.AddTool(s, &mcp.Tool{Name: "open"},
			func(context.Context, *mcp.CallToolRequest, struct{ Text string }) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{
						Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("text ", 200)}},
					},
					nil, nil
			})
		return s
	}
	p := &mcpresource.Principal{
		Issuer: issuer, Subject: "alice", ClientID: "app", Scopes: []string{"mcp"},
		Audience: []string{"http://localhost/mcp"}, ExpiresAt: time.Now().Add(time.Hour),
	}
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: "http://localhost/mcp", AuthorizationServers: []string{issuer},
		Policy: &mcpresource.Rules{Base: []string{"mcp"}},
		Limits: mcpresource.Limits{Calls: mcpresource.Rate{PerSecond: -1}},
		Validator: mcpresource.ValidatorFunc(
			func(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) { return p, nil },
		),
	})
	if err != nil {
		b.Fatal(err)
	}
	alone := server()
	body := modern("tools/call", `"name":"open","arguments":{"Text":"`+strings.Repeat("argument ", 50)+`"}`)
	for name, h := range map[string]http.Handler{
		"sdk": mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return alone },
			&mcp.StreamableHTTPOptions{Stateless: true, DisableLocalhostProtection: true}),
		"adapter": Unguarded(guard, server(), nil),
		"guarded": guard.Protect(Unguarded(guard, server(), nil)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req := httptest.NewRequest(http.MethodPost, "http://localhost/mcp",
					strings.NewReader(body)).WithContext(mcpresource.NewContext(b.Context(), p))
				for k, v := range map[string]string{
					"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
					"Authorization": "Bearer x", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
					"Mcp-Name": "open",
				} {
					req.Header.Set(k, v)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, req)
				if w.Code != http.StatusOK {
					out, _ := io.ReadAll(w.Body)
					b.Fatalf("%d %s", w.Code, out)
				}
			}
		})
	}
}
