package gosdk

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// newOldRig returns a rig that also has the endpoint of 2024-11-05, with a separate guard.
func newOldRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, nil, func(s *mcp.Server) {
		mcp.AddTool(s, &mcp.Tool{Name: "whoami"}, textTool(func(ctx context.Context, req *mcp.CallToolRequest) string {
			p, _ := Principal(req)
			if of, _ := mcpresource.FromContext(ctx); of.Key() != p.Key() ||
				req.Extra.Header.Get("Authorization") != "" {
				return "not who the context says, or known by the token"
			}
			return p.Subject + " " + p.Scopes.String()
		}))
		mcp.AddTool(s, &mcp.Tool{Name: "wait"},
			func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				<-ctx.Done()
				return nil, nil, ctx.Err()
			})
	})
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: r.URL + "/sse", AuthorizationServers: []string{issuer},
		Metadata: mcpresource.Metadata{PathOnly: true},
		Policy:   &mcpresource.Rules{Base: []string{"mcp"}, Tools: map[string][]string{"secret": {"deep"}}},
		Validator: mcpresource.ValidatorFunc(
			func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
				parts := strings.Split(c.Token, "-")
				p := r.principal(parts[0], parts[1:]...)
				p.Audience = []string{r.URL + "/sse"}
				if parts[0] == "brief" {
					// within the clock skew
					p.ExpiresAt = time.Now().Add(-30*time.Second + 2*time.Second)
				}
				return p, nil
			}),
	})
	if err != nil {
		t.Fatal(err)
	}
	guard.Register(r.Config.Handler.(*http.ServeMux), r.adapter.SSE())
	return r
}

func TestSSE(t *testing.T) {
	r := newOldRig(t)
	do := func(method, url string, headers ...string) *http.Response {
		req, _ := http.NewRequest(method, url, strings.NewReader(openOld))
		if method == http.MethodGet {
			req, _ = http.NewRequest(method, url, nil)
		}
		for k, v := range hdr(
			append([]string{"Authorization", "Bearer alice-mcp", "Content-Type", "application/json"}, headers...)...,
		) {
			req.Header.Set(k, v[len(v)-1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	t.Run("RS-90 RS-91 RS-92 RS-93 a session of 2024-11-05", func(t *testing.T) {
		post, events := oldStream(t, r.URL+"/sse", "alice-mcp")
		if status := postOld(t, post, "alice-mcp", openOld); status != http.StatusAccepted {
			t.Fatalf("got %d", status)
		}
		if got := next(t, events); !strings.HasPrefix(got, "message {") || !strings.Contains(got, "2024-11-05") {
			t.Errorf("got %s", got)
		}
		for body, want := range map[string]int{
			`{bad`: 400, `[]`: 400, `[` + callOld + `]`: 400,
			`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"secret","arguments":{}}}`: 403,
		} {
			if got := postOld(t, post, "alice-mcp", body); got != want {
				t.Errorf("%s: got %d, want %d", body, got, want)
			}
		}
		if got := postOld(t, r.URL+"/sse?sessionId=unknown", "alice-mcp", callOld); got != 404 {
			t.Errorf("an unknown session: got %d", got)
		}
	})
	t.Run("RS-75 an id in use is refused, a cancelled call not answered", func(t *testing.T) {
		post, events := oldStream(t, r.URL+"/sse", "alice-mcp")
		postOld(t, post, "alice-mcp", openOld)
		next(t, events)
		wait := strings.Replace(callOld, "whoami", "wait", 1)
		postOld(t, post, "alice-mcp", wait)
		if got := postOld(t, post, "alice-mcp", wait); got != 400 {
			t.Errorf("got %d", got)
		}
		postOld(t, post, "alice-mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		postOld(t, post, "alice-mcp", strings.Replace(callOld, `"id":2`, `"id":3`, 1))
		if got := next(t, events); !strings.Contains(got, `"id":3`) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("RS-142 a request of 2026-07-28 is told what there is", func(t *testing.T) {
		post, events := oldStream(t, r.URL+"/sse", "alice-mcp")
		if status := postOld(t, post, "alice-mcp",
			modern("tools/call", `"name":"whoami","arguments":{}`)); status != http.StatusAccepted {
			t.Errorf("got %d", status)
		}
		if got := next(t, events); !strings.Contains(got, "-32022") || !strings.Contains(got, `"2025-11-25"`) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("RS-96 a POST to the stream is 405, so that newer clients look elsewhere", func(t *testing.T) {
		if got := do(http.MethodPost, r.URL+"/sse"); got.StatusCode != 405 || got.Header.Get("Allow") != "GET" {
			t.Errorf("got %d %q", got.StatusCode, got.Header.Get("Allow"))
		}
	})
	t.Run("RS-95 RS-59 a foreign origin on both", func(t *testing.T) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if got := do(method, r.URL+"/sse?sessionId=x", "Origin", "https://evil.example"); got.StatusCode != 403 {
				t.Errorf("%s: got %d", method, got.StatusCode)
			}
		}
	})
	t.Run("RS-97 it is off unless it is mounted", func(t *testing.T) {
		bare := newRig(t, nil)
		if got := bare.ask(t, "alice-mcp", ask{method: http.MethodGet}); got.status != 400 {
			t.Errorf("got %d", got.status)
		}
	})
	t.Run("RS-98 the stream ends with its token", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newOldRig(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, r.URL+"/sse", nil)
			resp, err := r.client("brief-mcp").Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); err != nil || strings.Count(string(body), "event: ") != 1 {
				t.Errorf("got %q, %v", body, err)
			}
		})
	})
	t.Run("RS-196 too many streams of one caller", func(t *testing.T) {
		for range maxStreams {
			oldStream(t, r.URL+"/sse", "many-mcp")
		}
		if got := do(http.MethodGet, r.URL+"/sse", "Authorization", "Bearer many-mcp"); got.StatusCode != 429 ||
			got.Header.Get("Retry-After") == "" {
			t.Errorf("got %d", got.StatusCode)
		}
	})
}

// TestSSEClient uses the SDK's own client of 2024-11-05.
func TestSSEClient(t *testing.T) {
	r := newOldRig(t)
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil)
	session, err := client.Connect(t.Context(),
		&mcp.SSEClientTransport{Endpoint: r.URL + "/sse", HTTPClient: r.client("alice-mcp")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami"})
	if err != nil || got.Content[0].(*mcp.TextContent).Text != "i am alice mcp" {
		t.Errorf("RS-90: got %+v %v", got, err)
	}
}

// TestSSEStalls: a client does not read the response that it requested.
func TestSSEStalls(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	r := newRig(t, nil,
		raw("big", string(anyObject), func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: big}}}, nil
		}))
	h := r.adapter.SSE().(*sse)
	h.patience = 200 * time.Millisecond
	ended := make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h.ServeHTTP(w, req.WithContext(mcpresource.NewContext(req.Context(), r.principal("alice", "mcp"))))
		if req.Method == http.MethodGet {
			close(ended)
		}
	}))
	// A megabyte exceeds the small buffers on both sides.
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
		return ctx
	}
	s.Start()
	t.Cleanup(s.Close)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	io.WriteString(conn, "GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n")
	lines := bufio.NewReaderSize(conn, 16) // reads no more than needed
	post := ""
	for !strings.HasPrefix(post, "data: ") {
		if post, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	post = s.URL + strings.TrimSpace(strings.TrimPrefix(post, "data: "))
	postOld(t, post, "", openOld)
	postOld(t, post, "", strings.Replace(callOld, "whoami", "big", 1))
	select {
	case <-ended:
	case <-time.After(time.Minute):
		conn.Close() // otherwise the server would wait, too
		t.Error("RS-98 RS-196 it never releases its stream")
	}
}
