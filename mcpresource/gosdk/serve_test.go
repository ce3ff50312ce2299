package gosdk

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// newIssuer serves the metadata that Discover reads, with the scopes of a resource.
func newIssuer(t *testing.T, resource string, scopes ...string) string {
	t.Helper()
	var base string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": base, "jwks_uri": base + "/jwks.json", "token_endpoint": base + "/token",
			"protected_resource_scopes": map[string][]string{resource: scopes}, "keys": []any{},
		})
	}))
	t.Cleanup(s.Close)
	base = s.URL
	return base
}

// RS-01 RS-03: one call serves document, challenge and server, and shuts down gracefully.
func TestServeAtRemoteIssuer(t *testing.T) {
	address := nettest.For(t)
	resource := "http://" + address + "/mcp"
	issuer := newIssuer(t, resource, "read", "write", "append")
	tools := newTools(reading)
	AddTool(tools, &mcp.Tool{Name: "write"}, okTyped, writing, appendix)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, tools, ServeOptions{
			Resource: resource, Issuer: issuer, Logger: slog.New(slog.DiscardHandler),
			Adjust: func(c *mcpresource.Config) { c.Metadata.Documentation = "https://example.com/help" },
		})
	}()
	got := ""
	wait.Success(t, "the document is served", func() error {
		resp, err := http.Get("http://" + address + "/.well-known/oauth-protected-resource/mcp")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		got = string(b)
		return err
	})
	for _, want := range []string{
		`"resource_name":"A test"`, `"scopes_supported":["read","append"]`, issuer, "https://example.com/help",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	health, err := http.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	health.Body.Close()
	if health.StatusCode != http.StatusOK {
		t.Errorf("healthz: got %d", health.StatusCode)
	}
	resp, err := http.Post(resource, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("got %d without a token", resp.StatusCode)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// nobody is an unavailable Clearances.
type nobody struct{}

func (nobody) Clear(context.Context, string, oauth.ClearanceDemand) (oauth.Clearance, error) {
	return oauth.Clearance{}, mcpresource.ErrUnavailable
}

// RS-03: wrong options are reported at the start, in one line with the remedy.
func TestServeRefuses(t *testing.T) {
	const resource = "https://notes.example.com/mcp"
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	clears := func(o ServeOptions, needs ...Need) (string, error) {
		tools := newTools(reading)
		AddTool(tools, &mcp.Tool{Name: "write"}, okTyped, needs...)
		o.Logger, o.Resource = slog.New(slog.DiscardHandler), resource
		o.Issuer = newIssuer(t, resource, "read", "write")
		o.Listen = taken.Addr().String()
		return o.Issuer, Serve(t.Context(), tools, o)
	}
	issuer, err := clears(ServeOptions{}, Clearance{})
	for _, want := range []string{
		`gosdk: the tool "write" has a Clearance`, "in Adjust, set c.Clearances", "mcpresource.NewClearances",
		issuer, "mcp-authd client add --grant client_credentials --resource " + resource,
	} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("RS-217: got %v, want a line with %s", err, want)
		}
	}
	_, err = clears(ServeOptions{Adjust: func(c *mcpresource.Config) { c.Clearances = nobody{} }}, Clearance{})
	if err == nil || !strings.Contains(err.Error(), "choose another address") { // the next error
		t.Errorf("RS-217: with the error's text, got %v", err)
	}
	for want, o := range map[string]ServeOptions{
		"Resource is empty: set the public URL":                 {Issuer: "https://auth.example.com"},
		"Issuer is empty: set that of the authorization server": {Resource: resource},
		`Resource "http://notes.example.com/mcp" is not a URL such as https://notes.example.com/mcp (http`: {
			Resource: "http://notes.example.com/mcp", Issuer: "https://auth.example.com",
		},
		"/healthz is where health checks ask": {
			Resource: "https://notes.example.com/healthz", Issuer: "https://auth.example.com",
		},
		"Resource \"/mcp\" is not a URL": {Resource: "/mcp", Issuer: "https://auth.example.com"},
		`Issuer "http://auth.example.com" is not a URL such as https://auth.example.com (http is`: {
			Resource: resource, Issuer: "http://auth.example.com",
		},
		"has no scope \"write\", which Rules.Tools[\"write\"] asks for": {
			Resource: resource, Issuer: newIssuer(t, resource, "read", "append"),
		},
		"knows no resource https://notes.example.com/mcp": {
			Resource: resource, Issuer: newIssuer(t, "https://other.example.com"),
		},
		"Issuer: mcpresource: no metadata of issuer": {Resource: resource, Issuer: "http://" + nettest.For(t)},
		"choose another address": {
			Resource: resource, Issuer: newIssuer(t, resource, "read", "write", "append"),
			Listen: taken.Addr().String(),
		},
	} {
		tools := newTools(reading)
		AddTool(tools, &mcp.Tool{Name: "write"}, okTyped, writing, appendix)
		o.Logger = slog.New(slog.DiscardHandler)
		if err := Serve(t.Context(), tools, o); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want a line with %s", err, want)
		}
	}
}

// TestStopAnswersCalls: RU-05. When Serve ends, listening streams end at once, and calls get a
// response: from their tool if there is time, otherwise an error with their id.
func TestStopAnswersCalls(t *testing.T) {
	started, release := make(chan struct{}, 1), make(chan struct{})
	for _, tt := range []struct {
		name   string
		finish time.Duration
		want   string
	}{
		{"RU-05 a call goes on after the end has begun", wait.Bound, `"text":"done"`},
		{"RU-05 a call that takes longer has an error", 10 * time.Millisecond, `"id":2,"error":`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil, func(s *mcp.Server) {
				mcp.AddTool(s, &mcp.Tool{Name: "slow"},
					func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
						started <- struct{}{}
						select {
						case <-release:
						case <-ctx.Done():
							return nil, nil, ctx.Err()
						}
						return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
					})
			})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			bounded, done := context.WithTimeout(t.Context(), wait.Bound)
			defer done()
			ctx, stop := context.WithCancel(bounded)
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- r.adapter.serve(ctx, l, slog.New(slog.DiscardHandler), tt.finish) }()
			session := ""
			ask := func(method, body string) *http.Response {
				req, _ := http.NewRequestWithContext(bounded, method, "http://"+l.Addr().String()+"/mcp",
					strings.NewReader(body))
				req.Host = strings.TrimPrefix(r.URL, "http://")
				for name, value := range map[string]string{
					"Authorization": "Bearer alice-mcp", "Content-Type": "application/json",
					"Accept": "application/json, text/event-stream",
				} {
					req.Header.Set(name, value)
				}
				if session != "" {
					req.Header.Set("Mcp-Session-Id", session)
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Error(err)
					return &http.Response{Body: http.NoBody}
				}
				return resp
			}
			opened := ask(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+
				`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
			finished := func(resp *http.Response) { // a client that leaves earlier ends its session
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			}
			finished(opened)
			session = opened.Header.Get("Mcp-Session-Id")
			finished(ask(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
			listening := ask(http.MethodGet, "")
			defer listening.Body.Close()
			answer := make(chan string, 1)
			go func() {
				resp := ask(http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}`)
				defer resp.Body.Close()
				b, _ := io.ReadAll(resp.Body)
				answer <- string(b)
			}()
			select {
			case <-started:
			case got := <-answer:
				t.Fatalf("got %s before the end", got)
			}
			stop()
			if _, err := io.ReadAll(listening.Body); err != nil {
				t.Errorf("the stream that listens: %v", err)
			}
			if tt.finish == wait.Bound {
				release <- struct{}{}
			}
			if got := <-answer; !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %s", got, tt.want)
			}
			if err := <-ended; err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}
