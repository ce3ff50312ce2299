package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/internal/signin"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestFirstScopes(t *testing.T) {
	for _, tt := range []struct {
		name                       string
		named, challenge, document oauth.Scopes
		want                       string
	}{
		{"the person's own", oauth.Scopes{"x"}, oauth.Scopes{"mcp"}, oauth.Scopes{"all"}, "x"},
		{"CL-18 those of the challenge", nil, oauth.Scopes{"mcp"}, oauth.Scopes{"mcp", "all"}, "mcp"},
		{"CL-19 those of the challenge, also if the document knows none of them", nil, oauth.Scopes{"other"},
			oauth.Scopes{"all"}, "other"},
		{"CL-18 else those of the document", nil, nil, oauth.Scopes{"mcp", "all"}, "mcp all"},
		{"CL-18 else none", nil, nil, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := &login{flags: loginFlags{scopes: tt.named}}
			r := discovery.Resource{
				ProtectedResource: metadata.ProtectedResource{ScopesSupported: metadata.Values(tt.document)},
			}
			if got := l.firstScopes(discovery.Challenge{Scope: tt.challenge}, r).String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestClientOfTheOperator checks that login does not register a client with --client-id (CL-11).
func TestClientOfTheOperator(t *testing.T) {
	l, err := newLogin(std{in: strings.NewReader("the-secret\n"), out: io.Discard},
		loginFlags{clientID: "ours", secretStdin: true}, "https://mcp.example.com/mcp")
	if err != nil {
		t.Fatal(err)
	}
	var server signin.Server // without a registration endpoint
	if err := l.identify(func() (signin.Credentials, error) {
		return l.client.Register(t.Context(), server, "http://127.0.0.1:1/callback")
	}); err != nil {
		t.Fatal(err)
	}
	if want := (signin.Credentials{ID: "ours", Secret: "the-secret"}); l.cred != want {
		t.Errorf("got %+v, want %+v", l.cred, want)
	}
}

// insatiable returns an authorization server whose user approves everything at once, and an MCP
// server that accepts no token. wants returns the missing part of the n-th sign-in: a scope, or,
// after "=", the parameters of a challenge for authentication (RFC 9470).
func insatiable(t *testing.T, wants func(n int) string) (base string, asked func() []url.Values) {
	var mu sync.Mutex // guards queries
	var queries []url.Values
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	asked = func() []url.Values {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(queries)
	}
	mux.HandleFunc("GET /authorize", func(_ http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		mu.Lock()
		queries = append(queries, q)
		mu.Unlock()
		go func() {
			resp, err := http.Get(q.Get("redirect_uri") + "?" + url.Values{
				"code": {"c"}, "state": {q.Get("state")}}.Encode())
			if err == nil {
				resp.Body.Close()
			}
		}()
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"access_token": "t", "token_type": "Bearer", "expires_in": 60, "scope": "mcp",
		})
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		lacks := wants(len(asked()))
		if strings.Contains(lacks, "=") {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_user_authentication", `+lacks)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+lacks+`"`)
		w.WriteHeader(http.StatusForbidden)
	})
	return s.URL, asked
}

// signsIn runs a login to an MCP server that is never satisfied. It returns the requests and the
// result.
func signsIn(t *testing.T, wants func(n int) string) (asked []url.Values, steps string, err error) {
	t.Helper()
	base, queries := insatiable(t, wants)
	callback, err := signin.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(callback.Close)
	var out strings.Builder
	l, err := newLogin(std{out: &out}, loginFlags{noBrowser: true, clientID: "ours", tool: "pay"}, base+"/mcp")
	if err != nil {
		t.Fatal(err)
	}
	var server signin.Server
	server.Issuer, server.AuthorizationEndpoint, server.TokenEndpoint = base, base+"/authorize", base+"/token"
	get := func(ctx context.Context, scopes oauth.Scopes, proof signin.Proof) (access, error) {
		return l.present(l.browse(ctx, server, callback, base+"/mcp", scopes, proof))
	}
	err = l.signIn(t.Context(), oauth.Scopes{"mcp"}, obtain{get: get, pages: true})
	return queries(), out.String(), err
}

func TestStepUps(t *testing.T) {
	t.Run("CL-20 CL-21 a server that wants the same again is asked twice, for what was granted and what is needed",
		func(t *testing.T) {
			asked, _, err := signsIn(t, func(int) string { return "more" })
			if err == nil || !strings.Contains(err.Error(), "pay still needs more scope (more) after 1 more sign-ins: "+
				"it was asked for, and not granted") {
				t.Errorf("got %v", err)
			}
			if len(asked) != 2 || asked[0].Get("scope") != "mcp" || asked[1].Get("scope") != "mcp more" {
				t.Errorf("got %v", asked)
			}
		})
	t.Run("CL-21 one that wants another scope each time gets a few, each of them told", func(t *testing.T) {
		asked, steps, err := signsIn(t, func(n int) string { return fmt.Sprintf("more%d", n) })
		if err == nil || !strings.Contains(err.Error(), "after 5 more sign-ins: it is another one each time") {
			t.Errorf("got %v", err)
		}
		if len(asked) != 1+5 {
			t.Errorf("got %d sign-ins", len(asked))
		}
		for n := range 5 {
			want := fmt.Sprintf("pay needs more scope (more%d): signing in again", n+1)
			if strings.Count(steps, want) != 1 {
				t.Errorf("no %q in\n%s", want, steps)
			}
		}
	})
	t.Run("AS-238 a stronger and a more recent sign-in, each asked for once, and the scope that comes with it",
		func(t *testing.T) {
			wants := []string{1: `acr_values="a b", scope="pay"`, 2: `max_age="0"`, 3: "more", 4: `max_age="0"`}
			asked, steps, err := signsIn(t, func(n int) string { return wants[n] })
			if err == nil || !strings.Contains(err.Error(),
				"pay still needs a stronger or more recent sign-in (max_age 0) after 3 more sign-ins") {
				t.Errorf("got %v", err)
			}
			var got []string
			for _, q := range asked {
				got = append(got, fmt.Sprint(q.Get("scope"), q["acr_values"], q["max_age"]))
			}
			if want := []string{"mcp[] []", "mcp pay[a b] []", "mcp[] [0]", "mcp more[] []"}; !slices.Equal(got, want) {
				t.Errorf("asked %q, want %q", got, want)
			}
			if !strings.Contains(steps, "pay needs a stronger or more recent sign-in (acr_values a b): signing in again") {
				t.Errorf("got\n%s", steps)
			}
		})
	t.Run("AS-238 a challenge for a proof that asks for none is no step-up", func(t *testing.T) {
		asked, _, err := signsIn(t, func(int) string { return `max_age="soon"` })
		if err == nil || !strings.Contains(err.Error(), "answered 401 to the new token") || len(asked) != 1 {
			t.Errorf("got %v after %d sign-ins", err, len(asked))
		}
	})
	t.Run("CL-21 one that does not say which scope it wants", func(t *testing.T) {
		asked, _, err := signsIn(t, func(int) string { return "" })
		if err == nil || !strings.Contains(err.Error(), "the MCP server does not say which") || len(asked) != 1 {
			t.Errorf("got %v after %d sign-ins", err, len(asked))
		}
	})
}

// TestLoopbackByDefault checks that a local server is reachable only from this machine by default
// (RS-63).
func TestLoopbackByDefault(t *testing.T) {
	c := config.Default(func(string) string { return "" })
	s := std{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	for what, address := range map[string]string{
		"serve": c.Listen, "management": c.Management.Listen,
		"demo":    newDemoCommand(s).Flags().Lookup("listen").DefValue,
		"protect": newProtectCommand(s).Flags().Lookup("listen").DefValue,
	} {
		host, _, err := net.SplitHostPort(address)
		if err != nil || !net.ParseIP(host).IsLoopback() {
			t.Errorf("RS-63 %s listens on %s, %v", what, address, err)
		}
	}
	everywhere := &net.TCPAddr{IP: net.IPv4zero, Port: 8414}
	if _, err := demoApp(s, everywhere, ""); err == nil || !strings.Contains(err.Error(), "on loopback only") {
		t.Errorf("RS-63 SP-22 the demo, told to listen everywhere: got %v", err)
	}
}
