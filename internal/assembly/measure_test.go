package assembly

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/metrics"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// measured returns a complete server with metrics. Its administrators need no second factor.
func measured(t *testing.T, environ ...string) *Server {
	t.Helper()
	c, err := config.Load(config.Source{Environ: append([]string{"HOME=" + t.TempDir()}, environ...)})
	if err != nil {
		t.Fatal(err)
	}
	if c.IsDefault("login.admins_second_factor") {
		c.Login.AdminsSecondFactor = "enrolled"
	}
	store := installation.Store(t)
	log, counted := slog.New(slog.DiscardHandler), metrics.New()
	s, err := Parts{
		Config:  c,
		Store:   store,
		Keys:    [][]byte{[]byte(strings.Repeat("k", 32))},
		Log:     log,
		Audit:   audit.New(log, counted.Count),
		Metrics: counted,
	}.Server(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// ask returns the response to a local request.
func ask(h http.Handler, method, target string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(method, target, nil), httptest.NewRecorder()
	r.Host = "localhost:8414"
	h.ServeHTTP(w, r)
	return w
}

func scrape(s *Server) string { return ask(s.Management(), http.MethodGet, "/metrics").Body.String() }

// TestMeasured checks that requests are counted in the metrics, under names that no caller chooses
// (OB-07).
func TestMeasured(t *testing.T) {
	s := measured(t)
	h, before := s.Handler(), 0
	request := func(i int) {
		v := url.Values{"client_id": {fmt.Sprint("client-", i)}, "response_type": {"code"}, "state": {"s"}}
		ask(h, http.MethodGet, "/authorize?"+v.Encode())
		ask(h, http.MethodGet, fmt.Sprint("/no/such/page/", i))
		ask(h, fmt.Sprint("M", i), "/token")
	}
	request(0)
	before = strings.Count(scrape(s), "\n")
	const more = 300
	for i := range more {
		request(i + 1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go s.measure(ctx)
	got := ""
	wait.Until(t, "the ages are measured", func() bool {
		got = scrape(s)
		return strings.Contains(got, "signing_key_age") && strings.Contains(got, "status_list_age")
	})
	cancel()
	for _, want := range []string{
		fmt.Sprintf("mcp_authd_sign_in_steps_total{step=\"started\"} %d\n", more+1),
		fmt.Sprintf("mcp_authd_request_duration_seconds_count{endpoint=\"authorize\",status=\"4xx\"} %d\n", more+1),
		fmt.Sprintf("mcp_authd_request_duration_seconds_count{endpoint=\"token\",status=\"4xx\"} %d\n", more+1),
		`mcp_authd_store_duration_seconds_count{verb="Client"}`,
		"mcp_authd_signing_key_age_seconds ", "mcp_authd_signing_key_rotation_seconds 7.776e+06\n",
		"mcp_authd_status_list_age_seconds 0",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s", want)
		}
	}
	if after := strings.Count(got, "\n"); after > before+200 || strings.Contains(got, "client-") {
		t.Errorf("%d more clients made %d lines of %d", more, after, before)
	}
}

// TestBegins checks that a return from the pages does not count as a new authorization (OB-07).
func TestBegins(t *testing.T) {
	s := measured(t)
	for _, query := range []string{
		"client_id=a", "client_id=a&account=chosen", "client_id=a&provider=corp", "resume=x",
	} {
		ask(s.Handler(), http.MethodGet, "/authorize?"+query)
	}
	if got := scrape(s); !strings.Contains(got, "steps_total{step=\"started\"} 1\n") {
		t.Error("OB-07: not one of them began")
	}
}

// TestProfiles checks that profiles are served only if enabled, and without the command line.
func TestProfiles(t *testing.T) {
	for _, tt := range []struct {
		on     bool
		target string
		want   int
	}{
		{false, "/debug/pprof/", 404}, {false, "/debug/pprof/heap", 404}, {false, "/debug/pprof/profile", 404},
		{true, "/debug/pprof/", 200}, {true, "/debug/pprof/heap", 200}, {true, "/debug/pprof/cmdline", 404},
	} {
		s := measured(t, fmt.Sprint("MCP_AUTHD_MANAGEMENT_PPROF=", tt.on))
		if got := ask(s.Management(), http.MethodGet, tt.target).Code; got != tt.want {
			t.Errorf("pprof %v, %s: got %d, want %d", tt.on, tt.target, got, tt.want)
		}
		if got := ask(s.Handler(), http.MethodGet, tt.target).Code; got != 404 {
			t.Errorf("%s on the public listener: got %d", tt.target, got)
		}
	}
}

// TestFirstCalls checks that only the first call of a young grant counts (OB-07).
func TestFirstCalls(t *testing.T) {
	now := time.Now()
	f := newFirstCalls(ourIssuer, func() time.Time { return now })
	grant := secrets.ID("grt_")
	foreign := called(secrets.ID("grt_"), "read", now)
	foreign.Principal.Issuer = "https://other.example"
	for i, tt := range []struct {
		grant string
		after time.Duration
		want  bool
	}{
		{grant, 0, true}, {grant, time.Minute, false}, {secrets.ID("grt_"), time.Minute, true},
		{secrets.ID("grt_"), 2 * time.Hour, false}, {"", 0, false}, {"grt_short", 0, false},
	} {
		now = time.Now().Add(tt.after)
		if got := f.take(called(tt.grant, "read", now)); got != tt.want {
			t.Errorf("call %d: got %v, want %v", i, got, tt.want)
		}
	}
	if now = time.Now(); f.take(foreign) {
		t.Error("a call with a token of another server counts")
	}
}
