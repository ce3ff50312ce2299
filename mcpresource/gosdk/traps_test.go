package gosdk

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// The attacks in this file succeed against the SDK alone, which each test shows first. If that
// changes, the defense may be removed.

// client returns an http.Client that sends a token.
func (r *rig) client(token string) *http.Client {
	return &http.Client{Transport: sends{token, r.Client().Transport}}
}

type sends struct {
	token string
	by    http.RoundTripper
}

func (s sends) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+s.token)
	return s.by.RoundTrip(r)
}

// alone starts the SDK with its own middleware. A token names its user and a scope.
func alone(
	t *testing.T, tool mcp.ToolHandlerFor[struct{}, any], handler func(*mcp.Server) http.Handler,
) *httptest.Server {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "alone", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "whoami"}, tool)
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		user, scope, _ := strings.Cut(token, "-")
		return &auth.TokenInfo{UserID: user, Scopes: []string{scope}, Expiration: time.Now().Add(time.Hour)}, nil
	}
	srv := httptest.NewServer(auth.RequireBearerToken(verify, nil)(handler(s)))
	t.Cleanup(srv.CloseClientConnections)
	return srv
}

func textTool(f func(context.Context, *mcp.CallToolRequest) string) mcp.ToolHandlerFor[struct{}, any] {
	return func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "i am " + f(ctx, req)}}}, nil, nil
	}
}

// TestStaleIdentity: RS-38 SP-13 in a session, a tool's context contains the token of initialize. A
// reduced, refreshed or exchanged token does not change it.
func TestStaleIdentity(t *testing.T) {
	t.Run("the SDK alone hands on the first token", func(t *testing.T) {
		srv := alone(t, textTool(func(ctx context.Context, _ *mcp.CallToolRequest) string {
			return auth.TokenInfoFromContext(ctx).Scopes[0]
		}), func(s *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
		})
		if got := secondCall(t, srv.URL, "", "alice-wide", "alice-narrow"); !strings.Contains(got, "i am wide") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("ours hands on the one of this request, also by the context", func(t *testing.T) {
		r := newRig(t, nil, func(s *mcp.Server) {
			mcp.AddTool(s, &mcp.Tool{Name: "whoami"},
				textTool(func(ctx context.Context, _ *mcp.CallToolRequest) string {
					p, _ := mcpresource.FromContext(ctx)
					return p.Scopes.String()
				}))
		})
		if got := secondCall(t, r.URL, "/mcp", "alice-mcp-deep", "alice-mcp"); !strings.Contains(got, `i am mcp"`) {
			t.Errorf("got %s", got)
		}
	})
}

// secondCall opens a session with one token and calls whoami with another.
func secondCall(t *testing.T, base, path, first, second string) string {
	t.Helper()
	send := func(token, session, body string) (string, string) {
		req, _ := http.NewRequest(http.MethodPost, base+path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", "Bearer "+token)
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b), resp.Header.Get("Mcp-Session-Id")
	}
	_, session := send(first, "",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	got, _ := send(second, session,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"whoami","arguments":{}}}`)
	return got
}

// bypasses are bodies that encoding/json reads as a call that alice may make, and the SDK as one
// that she may not.
var bypasses = map[string]string{
	"a key in another case": `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"secret","Name":"open","arguments":{},` +
		modernMeta + `}}`,
	"a method in another case": `{"jsonrpc":"2.0","id":3,"method":"tools/call","Method":"ping","params":{"name":"secret","arguments":{},` +
		modernMeta + `}}`,
	"params in another case": `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"secret","arguments":{},` +
		modernMeta + `},"Params":{"name":"open","arguments":{}}}`,
	"a second value": `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"secret","arguments":{},` +
		modernMeta + `}} {"jsonrpc":"2.0","id":4,"method":"ping"}`,
	"a key that folds into name": `{"jsonrpc":"2.0","id":3,"method":"tools/call","paramſ":{"name":"open"},"params":{"name":"secret","arguments":{},` +
		modernMeta + `}}`,
}

// TestScopeBypass: RS-43 in these requests, a guard could see one tool and the server another. The
// SDK reads the protected tool from each, and the guard rejects the body. If it did not, the
// decoded call would be checked again.
func TestScopeBypass(t *testing.T) {
	r := newRig(t, nil)
	headers := hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "secret")
	// past imitates authentication without scopes: any caller passes.
	past := func(next http.Handler, scopes ...string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			next.ServeHTTP(w, q.WithContext(mcpresource.NewContext(q.Context(), r.principal("alice", scopes...))))
		})
	}
	serve := func(h http.Handler, body string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		for k, v := range headers {
			req.Header[http.CanonicalHeaderKey(k)] = v
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w
	}
	bare := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
	for _, name := range []string{"open", "secret"} {
		mcp.AddTool(bare, &mcp.Tool{Name: name},
			textTool(func(context.Context, *mcp.CallToolRequest) string { return name }))
	}
	sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return bare },
		&mcp.StreamableHTTPOptions{Stateless: true})
	for name, body := range bypasses {
		t.Run("RS-43 "+name, func(t *testing.T) {
			if got := serve(past(r.adapter.bridge(sdk), "mcp"), body); !strings.Contains(got.Body.String(),
				"i am secret") {
				t.Errorf("the SDK alone does not run the tool any more: %s", got.Body)
			}
			if got := r.ask(t, "alice-mcp", ask{body: body, headers: headers}); got.status != 400 && got.status != 403 {
				t.Errorf("the guard: got %d %s", got.status, got.text)
			}
			if got := serve(past(r.handler, "mcp"), body).Body.String(); strings.Contains(got, "alice") ||
				!strings.Contains(got, "insufficient_scope") && !strings.Contains(got, "-32700") {
				t.Errorf("the second check: got %s", got)
			}
		})
	}
}

// oldStream opens a stream of 2024-11-05 and returns its message endpoint and events.
func oldStream(t *testing.T, endpoint, token string) (post string, events <-chan string) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint, nil)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("got %d", resp.StatusCode)
	}
	out := make(chan string, 20)
	go func() {
		defer resp.Body.Close()
		defer close(out)
		lines := bufio.NewScanner(resp.Body)
		event := ""
		for lines.Scan() {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				event = name
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				out <- event + " " + data
			}
		}
	}()
	first := next(t, out)
	path, ok := strings.CutPrefix(first, "endpoint ")
	if !ok {
		t.Fatalf("RS-91: the first event is %q", first)
	}
	base, _, _ := strings.Cut(endpoint, "/sse")
	return base + path, out
}

func next(t *testing.T, events <-chan string) string {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(time.Minute):
		t.Fatal("no event came")
		return ""
	}
}

func postOld(t *testing.T, to, token, body string) int {
	t.Helper()
	req, _ := http.NewRequest(http.MethodPost, to, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // only the status matters
	return resp.StatusCode
}

const (
	openOld = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	callOld = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"whoami","arguments":{}}}`
)

// TestSessionMixUp: RS-94 with the SDK's 2024-11-05 handler, a caller who learns another user's
// message URI acts as that user.
func TestSessionMixUp(t *testing.T) {
	byContext := textTool(func(ctx context.Context, req *mcp.CallToolRequest) string {
		if req.Extra != nil { // the SDK passes on nothing of the message's own request
			return req.Extra.TokenInfo.UserID
		}
		return auth.TokenInfoFromContext(ctx).UserID
	})
	t.Run("the SDK alone runs bob's message as alice", func(t *testing.T) {
		srv := alone(t, byContext, func(s *mcp.Server) http.Handler {
			return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
		})
		post, events := oldStream(t, srv.URL+"/sse", "alice")
		postOld(t, post, "alice", openOld)
		next(t, events)
		if status := postOld(t, post, "bob", callOld); status != http.StatusAccepted {
			t.Fatalf("got %d", status)
		}
		if got := next(t, events); !strings.Contains(got, "i am alice") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("RS-94 ours does not know it", func(t *testing.T) {
		r := newOldRig(t)
		post, events := oldStream(t, r.URL+"/sse", "alice-mcp-deep")
		postOld(t, post, "alice-mcp-deep", openOld)
		next(t, events)
		for token, want := range map[string]int{"bob-mcp-deep": 404, "": 401, "alice-other": 403} {
			if status := postOld(t, post, token, callOld); status != want {
				t.Errorf("%q: got %d, want %d", token, status, want)
			}
		}
		postOld(t, post, "alice-mcp", callOld) // fewer scopes than when the stream was opened
		if got := next(t, events); !strings.Contains(got, "i am alice mcp\"") {
			t.Errorf("got %s", got)
		}
	})
}
