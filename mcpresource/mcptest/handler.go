package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Principal returns a caller as a guard would verify it, to test a handler by itself. A test can
// change it. Give it to the handler with [mcpresource.NewContext], or with [Request].
func Principal(person string, scopes ...string) *mcpresource.Principal {
	now := time.Now()
	return &mcpresource.Principal{
		Issuer: "https://auth.example.com", Subject: person, ClientID: clientID, Scopes: scopes,
		Audience: []string{"https://mcp.example.com/mcp"}, IssuedAt: now, ExpiresAt: now.Add(lifetime),
		Claims: json.RawMessage("{}"),
	}
}

// Request returns a call of a tool as it reaches the handler behind a guard, to test a handler by
// itself. The caller is p, or nobody if p is nil. It panics if arguments is not JSON.
func Request(p *mcpresource.Principal, tool string, arguments any) *http.Request {
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": arguments},
	})
	if err != nil {
		panic("mcptest: the arguments must be JSON: " + err.Error())
	}
	ctx := mcpresource.NewContext(context.Background(), p)
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "https://mcp.example.com/mcp", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	return r
}
