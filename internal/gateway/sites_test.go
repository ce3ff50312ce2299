package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

func openGuard(t *testing.T, resource string, aliases ...string) *mcpresource.Guard {
	t.Helper()
	g, err := mcpresource.New(mcpresource.Config{
		Resource: resource, Aliases: aliases, AuthorizationServers: []string{alice.Issuer},
		Metadata: mcpresource.Metadata{PathOnly: true},
		Validator: mcpresource.ValidatorFunc(
			func(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) {
				return alice, nil
			}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestSiteAddresses checks that NewSites and Add refuse invalid URLs and report conflicts.
func TestSiteAddresses(t *testing.T) {
	_, err := NewSites("http://%zz", http.NotFoundHandler())
	if err == nil || !strings.Contains(err.Error(), "gateway: issuer:") {
		t.Errorf("an invalid issuer: %v", err)
	}
	main := http.NewServeMux()
	main.HandleFunc("/token", func(http.ResponseWriter, *http.Request) {})
	main.HandleFunc("/", http.NotFound) // does not take paths from MCP servers
	sites, err := NewSites("https://mcp.example.com", main)
	if err != nil {
		t.Fatal(err)
	}
	guard := openGuard(t, publicURL)
	for _, c := range []struct{ resource, want string }{
		{"http://%zz", "invalid URL escape"},
		{"https://MCP.example.com/token", "is the authorization server's own"},
		{publicURL, ""},
		{publicURL, "another MCP server is at the path"},
	} {
		err := sites.Add(c.resource, guard, fake{name: "x"})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.resource, err, c.want)
		}
	}
	other, err := NewSites("https://mcp.example.com", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Add(publicURL, guard, fake{name: "x"}); err != nil {
		t.Errorf("with a handler that is not a mux: %v", err)
	}
}

// TestSiteAliases checks that an MCP server is served under its aliases, which must not belong to
// the authorization server or to another MCP server (AS-239).
func TestSiteAliases(t *testing.T) {
	main := http.NewServeMux()
	main.HandleFunc("/token", func(http.ResponseWriter, *http.Request) {})
	sites, err := NewSites(publicURL, main)
	if err != nil {
		t.Fatal(err)
	}
	origin := strings.TrimSuffix(publicURL, "/mcp")
	for _, c := range []struct{ resource, alias, want string }{
		{origin + "/a", origin + "/token", origin + "/token is the authorization server's own"},
		{publicURL, publicURL + "@work", ""},
		{origin + "/b", publicURL + "@work", "or of one of its aliases"},
		{publicURL + "@work", origin + "/c", "another MCP server is at the path"},
	} {
		err := sites.Add(c.resource, openGuard(t, c.resource, c.alias), fake{name: "x"})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: got %v, want %q", c.resource, c.alias, err, c.want)
		}
	}
	for path, want := range map[string]int{"/mcp": 401, "/mcp@work": 401, "/mcp@home": 404} {
		w := httptest.NewRecorder()
		sites.ServeHTTP(w, httptest.NewRequest(http.MethodGet, origin+path, nil))
		if w.Code != want {
			t.Errorf("%s: got %d, want %d", path, w.Code, want)
		}
	}
}

// TestSiteOfHosts checks that hosts are compared case-insensitively (RFC 9110 §4.2.3), and that all
// names of loopback are one host.
func TestSiteOfHosts(t *testing.T) {
	for a, b := range map[string]string{
		"mcp.example.com": "MCP.example.com", "127.0.0.1:8414": "localhost:9", "[::1]:8414": "127.0.0.1",
		"[::1]": "localhost",
	} {
		if site(a) != site(b) {
			t.Errorf("%s is %s, %s is %s", a, site(a), b, site(b))
		}
	}
	if site("mcp.example.com") == site("mcp.example.com:8443") || site("mcp.example.com") == site("localhost") {
		t.Error("two hosts are taken for one")
	}
}

// TestReadyzOfMain checks that the authorization server's response passes with its status and
// headers.
func TestReadyzOfMain(t *testing.T) {
	sites, err := NewSites("https://mcp.example.com", http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		sites.Readyz(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, body)
		})(w, httptest.NewRequest(method, "/readyz", nil))
		return w
	}
	for body, want := range map[string]string{`{"status":"starting"}`: `{"status":"starting"}`, "no JSON": `{}`} {
		w := ask(http.MethodGet, body)
		if h := w.Header(); w.Code != 503 || strings.TrimSpace(w.Body.String()) != want ||
			h.Get("Cache-Control") != "no-store" || h.Get("Content-Type") != "application/json" {
			t.Errorf("%s: got %d %v %s", body, w.Code, w.Header(), w.Body)
		}
	}
	if w := ask(http.MethodHead, `{}`); w.Code != 503 || w.Body.Len() != 0 {
		t.Errorf("RFC 9110 9.3.2: HEAD: got %d %q", w.Code, w.Body)
	}
}

// watched counts the calls that Sites makes to a server.
type watched struct {
	fake
	ran, closed atomic.Int32
	err         error
}

func (w *watched) Try(context.Context) (string, error) { return "", w.err }
func (w *watched) Run(ctx context.Context)             { w.ran.Add(1); <-ctx.Done() }
func (w *watched) Close() error                        { w.closed.Add(1); return w.err }

// TestSitesLookAfterEach checks that every server is tried, run and closed, even after one fails.
func TestSitesLookAfterEach(t *testing.T) {
	sites, err := NewSites("https://auth.example.com", http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	servers := []*watched{{err: ErrAway}, {}, {err: errRedirect}}
	for i, s := range servers {
		resource := "https://mcp.example.com/" + string(rune('a'+i))
		if err := sites.Add(resource, openGuard(t, resource), s); err != nil {
			t.Fatal(err)
		}
	}
	wrong := map[string]error{}
	report := func(resource string, err error) { wrong[resource] = err }
	sites.Try(t.Context(), report)
	first, last := wrong["https://mcp.example.com/a"], wrong["https://mcp.example.com/c"]
	if len(wrong) != 2 || !errors.Is(first, ErrAway) || !errors.Is(last, errRedirect) {
		t.Errorf("reported: %v", wrong)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { sites.Run(ctx); close(done) }()
	for _, s := range servers {
		wait.Until(t, "each server runs", func() bool { return s.ran.Load() > 0 })
	}
	select {
	case <-done:
		t.Fatal("Run returned before its context ended")
	default:
	}
	end()
	<-done
	clear(wrong)
	if sites.Try(ctx, report); len(wrong) != 0 {
		t.Errorf("reported after the end: %v", wrong)
	}
	if err := sites.Close(); err != nil {
		t.Error(err)
	}
	for i, s := range servers {
		if s.ran.Load() != 1 || s.closed.Load() != 1 {
			t.Errorf("server %d: run %d times, closed %d times", i, s.ran.Load(), s.closed.Load())
		}
	}
}

// silent is a server that does not answer Try.
type silent struct{ fake }

func (silent) Try(ctx context.Context) (string, error) { <-ctx.Done(); return "", ErrAway }

// TestTryEnds checks that a silent server does not keep the others from being tried.
func TestTryEnds(t *testing.T) {
	sites, err := NewSites("https://auth.example.com", http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	sites.patience = time.Millisecond
	for resource, server := range map[string]Server{
		"https://mcp.example.com/a": silent{}, "https://mcp.example.com/b": silent{},
	} {
		if err := sites.Add(resource, openGuard(t, resource), server); err != nil {
			t.Fatal(err)
		}
	}
	wrong := make(chan string, 2)
	go sites.Try(t.Context(), func(resource string, _ error) { wrong <- resource })
	for range 2 {
		select {
		case <-wrong:
		case <-time.After(time.Minute):
			t.Fatal("it waits for the first one")
		}
	}
}

// TestReplacedSites checks that Replace serves new sites and ends earlier ones, leaves those of Add
// alone, and skips only a site whose path is taken. Refresh is called before a request that may be
// for such a site, and not for the authorization server's own paths.
func TestReplacedSites(t *testing.T) {
	const root = "https://mcp.example.com"
	main := http.NewServeMux()
	main.HandleFunc("/token", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "token") })
	main.Handle("/.well-known/", http.NotFoundHandler())
	main.Handle("/", http.NotFoundHandler())
	sites, err := NewSites(root, main)
	if err != nil {
		t.Fatal(err)
	}
	if err := sites.Add(root+"/fixed", openGuard(t, root+"/fixed"), fake{}); err != nil {
		t.Fatal(err)
	}
	refreshed := 0
	sites.Refresh = func(context.Context) { refreshed++ }
	status := func(path string) int {
		w := httptest.NewRecorder()
		sites.ServeHTTP(w, httptest.NewRequest(http.MethodGet, root+path, nil))
		return w.Code
	}
	of := func(path string) Site { return Site{root + path, openGuard(t, root+path), fake{}} }
	const a, described = "/a", "/.well-known/oauth-protected-resource/a"
	failed := sites.Replace([]Site{of("/token"), of("/fixed"), of(a)})
	if len(failed) != 2 || !strings.Contains(fmt.Sprint(failed[root+"/token"]), "authorization server's own") ||
		!strings.Contains(fmt.Sprint(failed[root+"/fixed"]), "another MCP server") {
		t.Errorf("taken paths: %v", failed)
	}
	for path, want := range map[string]bool{a: true, described: true, "/fixed": true, "/b": false} {
		if got := status(path) != http.StatusNotFound; got != want {
			t.Errorf("%s is served: %v, want %v", path, got, want)
		}
	}
	if refreshed != 4 || status("/token") != http.StatusOK || refreshed != 4 {
		t.Errorf("refreshed %d times for 4 requests that may be for a site", refreshed)
	}
	if failed := sites.Replace(nil); len(failed) != 0 {
		t.Error(failed)
	}
	for path, want := range map[string]bool{a: false, described: false, "/fixed": true} {
		if got := status(path) != http.StatusNotFound; got != want {
			t.Errorf("after the end of %s, %s is served: %v, want %v", a, path, got, want)
		}
	}
}

// dark is a server that does not answer until answer is closed.
type dark struct {
	fake
	answer chan struct{}
}

func (d dark) Check(ctx context.Context) error {
	select {
	case <-d.answer:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A server that does not answer is down for a probe. It delays no other, and the probe waits a
// second for all of them together, even if it gives up earlier itself.
func TestReadyzBesideDarkServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites, err := NewSites("https://auth.example.com", http.NotFoundHandler())
		if err != nil {
			t.Fatal(err)
		}
		answer := make(chan struct{})
		servers := []Site{{Resource: "lit", Server: fake{}}}
		for i := range 5 {
			servers = append(servers, Site{Resource: fmt.Sprint("dark ", i), Server: dark{answer: answer}})
		}
		sites.now.Store(&table{servers: servers})
		began := time.Now()
		states := sites.states(t.Context())
		if waited := time.Since(began); waited != stateTime {
			t.Errorf("waited %s", waited)
		}
		for name, state := range states {
			if want := map[bool]string{true: "up", false: "down"}[name == "lit"]; state != want {
				t.Errorf("%s: got %s, want %s", name, state, want)
			}
		}
		if len(states) != len(servers) {
			t.Errorf("got %v", states)
		}
		close(answer) // ends the checks that continue
	})
}
