package gateway

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTryTells checks that Try distinguishes the faults of an MCP server, and accepts a working
// one.
func TestTryTells(t *testing.T) {
	rpcError := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"x"}}`
	result := `{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"notes"}}}`
	comment := ":" + strings.Repeat("x", tryAnswer) + "\n"
	for _, c := range []struct {
		name             string
		status           int
		kind, body, want string // of the error; "" for none
		away             bool
	}{
		{"it has no POST", 405, "text/plain", "no", "no MCP server answers at", false},
		{"it implements nothing", 501, "text/plain", "no", "no MCP server answers at", false},
		{"it wants another caller", 403, "text/plain", "no", "", false},
		{"it is elsewhere", 307, "text/plain", "", "it redirects to /elsewhere; set the upstream URL to that", true},
		{"it is in many places", 300, "text/plain", "", "it redirects to /elsewhere; set the upstream URL to that",
			true},
		{"it fails in JSON-RPC", 500, "application/json", rpcError, "but with 500", true},
		{"another protocol", 200, "application/json", strings.Replace(result, "2.0", "1.0", 1),
			"as an MCP server does", true},
		{"a stream that ends without a message", 200, "text/event-stream", "id: 1\ndata: \n\n",
			"as an MCP server does", true},
		{"an answer after a megabyte", 200, "text/event-stream", comment + "data: " + result + "\n\n",
			"as an MCP server does", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			}))
			defer inner.Close()
			u, err := New(Config{URL: inner.URL + "/inner", Resource: publicURL})
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			_, err = u.Try(t.Context())
			said := err == nil && c.want == "" || err != nil && c.want != "" && strings.Contains(err.Error(), c.want)
			if !said || errors.Is(err, ErrAway) != c.away {
				t.Errorf("got %v, want %q, away %v", err, c.want, c.away)
			}
		})
	}
}

// TestTryAsks checks that Try sends a valid MCP request with the configured headers, and does not
// end a session that the server did not begin.
func TestTryAsks(t *testing.T) {
	var got []*http.Request
	var body []byte
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r)
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}))
	defer inner.Close()
	u, err := New(Config{URL: inner.URL, Resource: publicURL, Headers: http.Header{"X-Api-Key": {"ours"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if name, err := u.Try(t.Context()); name != "" || err != nil {
		t.Errorf("a server that does not say its name: %q, %v", name, err)
	}
	if len(got) != 1 || got[0].Method != http.MethodPost || string(body) != hello {
		t.Fatalf("%d requests, the last with %s", len(got), body)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "X-Api-Key": "ours",
	} {
		if v := got[0].Header.Get(name); v != want {
			t.Errorf("%s: got %q, want %q", name, v, want)
		}
	}
	if v, ok := got[0].Header["Mcp-Session-Id"]; ok {
		t.Errorf("a session %q before there is one", v)
	}
}

// TestTryOlder: RU-13. A server of HTTP+SSE is recognized by the start of its response to GET, even
// while the stream stays open.
func TestTryOlder(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: endpoint\ndata: /messages?id=1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer inner.Close()
	u, err := New(Config{URL: inner.URL + "/sse", Resource: publicURL})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if _, err := u.Try(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "/sse speaks HTTP+SSE of MCP 2024-11-05, which the gateway does not") {
		t.Errorf("got %v", err)
	}
}
