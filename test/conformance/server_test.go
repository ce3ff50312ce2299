// Package conformance runs the official MCP conformance suite against our programs.
package conformance

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestMain(m *testing.M) {
	if os.Getenv(scenarioOf) != "" {
		os.Exit(playClient(os.Args[len(os.Args)-1]))
	}
	os.Exit(m.Run())
}

// buildFixture builds the SDK's own server for the suite, from the module that we already depend
// on. This repository does not contain its code.
func buildFixture(t *testing.T) string {
	t.Helper()
	return program.Build(t, ".", fixture)
}

// everything starts the fixture once for each era.
func everything(t *testing.T) (sessions, stateless *url.URL) {
	t.Helper()
	bin := buildFixture(t)
	return start(t, bin, "-stateless=false"), start(t, bin, "-stateless=true")
}

func waitFor(t *testing.T, address string) {
	t.Helper()
	wait.Success(t, "the server listens", func() error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err
	})
}

// eras serves both servers on one URL. It keeps the Host header, because the fixture also checks
// it.
func eras(sessions, stateless *url.URL) http.Handler {
	proxy := func(to *url.URL) http.Handler {
		return &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		}}
	}
	old, modern := proxy(sessions), proxy(stateless)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28" {
			modern.ServeHTTP(w, r)
			return
		}
		old.ServeHTTP(w, r)
	})
}

const testToken = "the-suite-cannot-send-one"

// protected serves mcp behind the guard on a new listener. The suite cannot send a token, so a side
// door adds one, which exists only in this test.
func protected(t *testing.T, mcp http.Handler) string {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.CloseClientConnections)
	g, err := mcpresource.New(mcpresource.Config{
		Resource: s.URL + "/", AuthorizationServers: []string{"https://auth.example.com"},
		Policy: &mcpresource.Rules{Base: []string{"mcp"}},
		Validator: mcpresource.ValidatorFunc(
			func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
				if c.Token != testToken {
					return nil, mcpresource.ErrInvalidToken
				}
				return &mcpresource.Principal{
					Issuer: "https://auth.example.com", Subject: "suite", ClientID: "suite",
					Scopes:   oauth.Scopes{"mcp"},
					Audience: []string{s.URL}, ExpiresAt: time.Now().Add(time.Hour),
				}, nil
			}),
	})
	if err != nil {
		t.Fatal(err)
	}
	inner := g.Protect(mcp)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer "+testToken)
		}
		inner.ServeHTTP(w, r)
	})
	return s.URL
}

// plain serves mcp without the guard. Its failures are not ours.
func plain(t *testing.T, mcp http.Handler) string {
	t.Helper()
	s := httptest.NewServer(mcp)
	t.Cleanup(s.CloseClientConnections)
	return s.URL
}

var scenarioLine = regexp.MustCompile(`(?m)^\s*(\S+) (\S+): (\d+) passed, (\d+) failed`)

// suite runs the server suite of a revision. It returns passed and failed checks by scenario, and
// whether the release gate is green.
func suite(t *testing.T, target, revision string) (scenarios map[string][2]int, output string, green bool) {
	t.Helper()
	return runSuite(t, target, "--requirements", revision)
}

func runSuite(t *testing.T, target string, args ...string) (scenarios map[string][2]int, output string, green bool) {
	t.Helper()
	cmd := npmtest.Command(t, "conformance", append([]string{"server", "--url", target, "-o", t.TempDir()}, args...)...)
	out, err := cmd.CombinedOutput()
	return read(string(out)), string(out), err == nil
}

// read returns passed and failed checks by scenario.
func read(output string) map[string][2]int {
	scenarios := map[string][2]int{}
	for _, m := range scenarioLine.FindAllStringSubmatch(output, -1) {
		passed, _ := strconv.Atoi(m[3]) // digits, by the pattern
		failed, _ := strconv.Atoi(m[4])
		scenarios[m[2]] = [2]int{passed, failed}
	}
	return scenarios
}

// worse returns the scenarios with more failures in got than in want.
func worse(got, want map[string][2]int) string {
	var bad []string
	for name, w := range want {
		if got[name][1] > w[1] {
			bad = append(bad, name)
		}
	}
	slices.Sort(bad)
	return strings.Join(bad, " ")
}

// TestServer checks that the guard adds no failure to the plain SDK server's failures, and that the
// release gate of the revision is green.
func TestServer(t *testing.T) {
	npmtest.Dir(t)
	sessions, stateless := everything(t)
	unguarded, guarded := plain(t, eras(sessions, stateless)), protected(t, eras(sessions, stateless))
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run("RS-01 requirements "+revision, func(t *testing.T) {
			want, _, _ := suite(t, unguarded, revision)
			got, output, green := suite(t, guarded, revision)
			if len(want) < 10 || len(got) != len(want) {
				t.Fatalf("%d scenarios ran without the guard and %d with it:\n%s", len(want), len(got), output)
			}
			if worse(got, want) != "" {
				// Progress and elicitation of the fixture are flaky even without a guard, so only a
				// repeated failure counts.
				got, output, green = suite(t, guarded, revision)
			}
			if bad := worse(got, want); bad != "" {
				t.Errorf("fails with the guard and not without it: %s\n%s", bad, output)
			}
			if !green || !strings.Contains(output, "Total:") {
				t.Errorf("the gate is not green:\n%s", output)
			}
			t.Log(regexp.MustCompile(`Total: .*`).FindString(output))
		})
	}
}
