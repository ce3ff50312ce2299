package authserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// An authorization server and the MCP server that it is for, in one program on one origin.
func Example() {
	ctx := context.Background()
	const base = "http://localhost:8080"
	dir, _ := os.MkdirTemp("", "") // yours: a directory that stays
	defer os.RemoveAll(dir)
	as, err := authserver.New(ctx, authserver.Options{
		Issuer: base, DataDir: dir,
		Resources: []authserver.Resource{{URI: base + "/mcp", Name: "Notes", Scopes: []authserver.Scope{
			{Name: "mcp", Description: "read your notes", Default: true},
		}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer as.Close()
	guard, _ := mcpresource.New(mcpresource.Config{
		Resource: base + "/mcp", AuthorizationServers: []string{base}, Validator: mcpresource.Local(as),
		Policy: &mcpresource.Rules{Base: []string{"mcp"}},
	})
	mux := http.NewServeMux()
	as.Register(mux)
	guard.Register(mux, http.NotFoundHandler()) // yours: an MCP server
	// yours: as.Serve(ctx, authserver.Site{Address: "127.0.0.1:8080", Handler: mux})

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("POST", base+"/mcp", nil))
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	// Output:
	// 401 Bearer scope="mcp", resource_metadata="http://localhost:8080/.well-known/oauth-protected-resource/mcp"
}

// embedded returns a server with a registry in one field.
func embedded(t *testing.T) (*authserver.Server, *sqlite.Store) {
	t.Helper()
	store := installation.Store(t)
	secret := [][]byte{bytes.Repeat([]byte{7}, 32)}
	registry, err := dcr.New(dcr.Config{Store: store, SecretKeys: secret, Documents: dcr.Documents{Enabled: true}})
	if err != nil {
		t.Fatal(err)
	}
	as, err := authserver.Assemble(t.Context(), authserver.Config{
		Issuer: "https://auth.example.com", Store: store, SecretKeys: secret, Registry: registry,
		Finish: time.Second, // for streams that no guard ends
		Resources: []storage.Resource{
			{URI: "https://mcp.example.com/mcp", Name: "M",
				Scopes: []storage.ScopeText{{Name: "mcp", Default: true}, {Name: "more"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return as, store
}

func TestRegistryInOneField(t *testing.T) {
	as, _ := embedded(t)
	register := func(body string) map[string]any {
		t.Helper()
		r := httptest.NewRequest("POST", "https://auth.example.com/register", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		as.Handler().ServeHTTP(w, r)
		var out map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusCreated {
			t.Fatalf("got %d %s, %v", w.Code, w.Body, err)
		}
		return out
	}
	t.Run("AS-131 registration is offered, managed below the issuer, and knows the scopes", func(t *testing.T) {
		got := register(`{"redirect_uris":["http://127.0.0.1/cb"],"scope":"more unheard-of"}`)
		at, _ := got["registration_client_uri"].(string)
		if got["scope"] != "more" || !strings.HasPrefix(at, "https://auth.example.com/register/") {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-131 who asks for no scope is told the default ones", func(t *testing.T) {
		if got := register(`{"redirect_uris":["http://127.0.0.1/cb"]}`); got["scope"] != "mcp" {
			t.Errorf("got %v", got["scope"])
		}
	})
	t.Run("AS-151 documents and their keys are advertised", func(t *testing.T) {
		w := httptest.NewRecorder()
		as.Handler().ServeHTTP(w,
			httptest.NewRequest("GET", "https://auth.example.com/.well-known/oauth-authorization-server", nil))
		for _, want := range []string{
			`"client_id_metadata_document_supported":true`, `"private_key_jwt"`,
			`"registration_endpoint":"https://auth.example.com/register"`,
		} {
			if !strings.Contains(strings.ReplaceAll(w.Body.String(), " ", ""), want) {
				t.Errorf("no %s in %s", want, w.Body)
			}
		}
	})
}

// AS-15 MCP 2025-03-26 "Authorization Base URL": a client of that revision knows only the URL of
// the MCP server, drops its path, and finds the metadata there.
func TestAuthorizationBaseURL(t *testing.T) {
	as, _ := embedded(t)
	const base, mcp = "https://auth.example.com", "https://auth.example.com/mcp"
	mux := http.NewServeMux()
	as.Register(mux)
	mux.Handle("/mcp", http.NotFoundHandler()) // next to the MCP server
	for _, path := range []string{"", "/register", "/token", "/authorize"} {
		location := strings.TrimSuffix(mcp, "/mcp") + path
		if path == "" {
			location += "/.well-known/oauth-authorization-server"
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", location, nil))
		if w.Code == http.StatusNotFound || path == "" && !strings.Contains(w.Body.String(), `"issuer":"`+base+`"`) {
			t.Errorf("%s: got %d %s", location, w.Code, w.Body)
		}
	}
}

// AS-01 OAuth 2.1 §1.5: a server uses plain HTTP only on this machine.
func TestIssuerInClear(t *testing.T) {
	for issuer, ok := range map[string]bool{
		"https://auth.example.com": true, "http://localhost:8414": true, "http://auth.example.com": false,
	} {
		_, err := authserver.Assemble(t.Context(), authserver.Config{
			Issuer: issuer, Store: installation.Store(t), SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)},
		})
		if (err == nil) != ok || !ok && !strings.Contains(err.Error(), "must be https") {
			t.Errorf("%s: got %v", issuer, err)
		}
	}
}

func TestSetupLink(t *testing.T) {
	as, _ := embedded(t)
	link, err := as.SetupLink(t.Context())
	if err != nil || !strings.HasPrefix(link, "https://auth.example.com/setup#token=") {
		t.Fatalf("got %q, %v", link, err)
	}
	if _, err := as.Users().Create(t.Context(), "ada", "a few words in a row", true); err != nil {
		t.Fatal(err)
	}
	if link, err := as.SetupLink(t.Context()); link != "" || err != nil {
		t.Errorf("with an administrator: got %q, %v", link, err)
	}
}

// late is a context that ends when passed is closed.
type late struct {
	context.Context
	passed <-chan struct{}
}

func (l late) Done() <-chan struct{} { return l.passed }

func (l late) Err() error {
	select {
	case <-l.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// The end of the context ends the server gracefully, whatever the reason.
func TestServeEndsOrderlyForEveryReason(t *testing.T) {
	for name, ending := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"a cause": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, end := context.WithCancelCause(ctx)
			return ctx, func() { end(errors.New("the program got a signal to end")) }
		},
		"a deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			passed := make(chan struct{})
			return late{ctx, passed}, sync.OnceFunc(func() { close(passed) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			as, _ := embedded(t)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, end := ending(t.Context())
			defer end()
			go func() {
				if resp, err := http.Get("http://" + l.Addr().String() + "/healthz"); err == nil {
					resp.Body.Close()
				}
				end()
			}()
			polite := false
			err = as.Serve(ctx, authserver.Site{
				Listener: l, Ending: func(context.Context) error { polite = true; return nil },
			})
			if err != nil || !polite {
				t.Errorf("got %v, Ending called: %v; want nil after it was called", err, polite)
			}
		})
	}
}

func TestServe(t *testing.T) {
	as, _ := embedded(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + l.Addr().String()
	t.Run("an address that is taken is an error", func(t *testing.T) {
		if err := as.Serve(t.Context(), authserver.Site{Address: l.Addr().String()}); err == nil {
			t.Error("got none")
		}
	})
	mux := http.NewServeMux()
	as.Register(mux)
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush() // the test would hang otherwise
		<-r.Context().Done()
	})
	polite := make(chan time.Time, 1)
	red, isRed := context.WithCancel(context.Background())
	defer isRed()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- as.Serve(ctx,
			authserver.Site{
				Listener: l, Handler: mux, Ending: func(context.Context) error {
					polite <- time.Now()
					<-red.Done() // connections are accepted until then, however slow this machine is
					return nil
				}})
	}()
	stream, err := http.Get(base + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	t.Run("the end is orderly: red, polite, and with open streams", func(t *testing.T) {
		began := time.Now()
		stop()
		wait.Until(t, "readiness turns red", func() bool {
			resp, err := http.Get(base + "/readyz")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return resp.StatusCode == http.StatusServiceUnavailable
		})
		isRed()
		if _, err := io.ReadAll(stream.Body); err != nil {
			t.Errorf("the stream: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("got %v", err)
		}
		select {
		case at := <-polite:
			if took := at.Sub(began); took < 500*time.Millisecond {
				t.Errorf("Ending was called after %s, before a load balancer can have seen red", took)
			}
		default:
			t.Error("Ending was not called")
		}
	})
}
