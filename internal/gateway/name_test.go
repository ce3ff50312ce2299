package gateway

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// anyone is a validator that accepts every token as alice's.
type anyone struct{}

func (anyone) Validate(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) {
	p := *alice
	p.Audience, p.ExpiresAt = []string{publicURL}, time.Now().Add(time.Hour)
	return &p, nil
}

// TestNameAsReceived: EN-10, RS-149. The guard decodes Mcp-Name to judge it, but the MCP server
// gets the header as it was sent.
func TestNameAsReceived(t *testing.T) {
	var got http.Header
	var body string
	inner := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r.Header, string(b)
	}))
	defer inner.Close()
	u, err := New(Config{URL: inner.URL + "/mcp", Resource: publicURL})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: publicURL, AuthorizationServers: []string{"https://auth.example.com"}, Validator: anyone{},
		Policy: &mcpresource.Rules{Base: []string{"mcp"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	public := guard.Handler(u)
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "mcp.example.com"
		public.ServeHTTP(w, r)
	}))
	defer outer.Close()
	encoded := func(name string) string { return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?=" }
	for _, c := range []struct{ name, sent string }{
		{"read", "read"},
		{"read", encoded("read")},
		{"café", encoded("café")},
		{"日本", encoded("日本")},
		{" read ", encoded(" read ")},
		{encoded("wipe"), encoded(encoded("wipe"))},
	} {
		call := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q}}`, c.name)
		resp, answer := post(t, outer.URL+"/mcp", call, map[string]string{
			"Authorization": "Bearer x", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
			"Mcp-Name": c.sent,
		})
		name := got["Mcp-Name"]
		if resp.StatusCode != http.StatusOK || len(name) != 1 || name[0] != c.sent || body != call {
			t.Errorf("EN-10 %q sent as %q: %d %s, the MCP server got %q with %s",
				c.name, c.sent, resp.StatusCode, answer, name, body)
		}
	}
}
