package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
)

// platformServer runs an MCP server behind a guard, and an authorization server that accepts the
// assertions of one issuer.
func platformServer(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	guard, err := mcpresource.New(mcpresource.Config{
		Resource:             s.URL + "/mcp",
		AuthorizationServers: []string{s.URL},
		Policy: &mcpresource.Rules{
			Base: []string{"mcp"}, Tools: map[string][]string{"write": {"notes:write"}},
		},
		Validator: mcpresource.ValidatorFunc(
			func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
				scope, ok := strings.CutPrefix(c.Token, "for:")
				if !ok {
					return nil, mcpresource.ErrInvalidToken
				}
				return &mcpresource.Principal{
					Issuer: s.URL, Subject: "job", Scopes: strings.Split(scope, "~"),
					Audience: []string{s.URL + "/mcp"}, ExpiresAt: time.Now().Add(time.Hour),
				}, nil
			}),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "write"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, map[string]string{"by": "job"}, nil
		})
	mux.Handle("/", gosdk.NewHandler(guard, server, nil))
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": s.URL, "token_endpoint": s.URL + "/token"})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		payload, _ := base64.RawURLEncoding.DecodeString(strings.Split(r.FormValue("assertion")+"..", ".")[1])
		if !strings.Contains(string(payload), "https://ci.example") {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant","error_description":"The issuer is not trusted."}`)
			return
		}
		scope := r.FormValue("scope")
		fmt.Fprintf(w, `{"access_token":"for:%s","token_type":"Bearer","expires_in":900,"scope":%q}`,
			strings.ReplaceAll(scope, " ", "~"), scope)
	})
	return s.URL
}

func TestLoginAsWorkload(t *testing.T) {
	base := platformServer(t)
	platform := func(issuer, audience string) {
		claims, err := json.Marshal(map[string]string{"iss": issuer, "sub": "job", "aud": audience})
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("MCP_TEST_TOKEN", "e30."+base64.RawURLEncoding.EncodeToString(claims)+".c2ln")
	}
	run := func(f loginFlags) (out, problems string, err error) {
		t.Helper()
		var o, e bytes.Buffer
		f.workload = "env:MCP_TEST_TOKEN"
		l, err := newLogin(std{out: &o, err: &e}, f, base+"/mcp")
		if err != nil {
			t.Fatal(err)
		}
		err = l.report(l.run(t.Context()))
		return o.String(), e.String(), err
	}
	steps := func(out string) (names []string) {
		for line := range strings.Lines(out) {
			var s struct{ Step string }
			if err := json.Unmarshal([]byte(line), &s); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			names = append(names, s.Step)
		}
		return names
	}
	t.Run("each step, and no token in any", func(t *testing.T) {
		platform("https://ci.example", base)
		out, _, err := run(loginFlags{})
		if err != nil || strings.Contains(out, "c2ln") || strings.Contains(out, "for:") {
			t.Fatalf("got %v\n%s", err, out)
		}
		for _, want := range []string{
			"✓ 1 challenge", "environment variable MCP_TEST_TOKEN says: job of https://ci.example",
			"✓ 6 tools ",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	})
	t.Run("CL-20 a tool that needs more scope gets it", func(t *testing.T) {
		platform("https://ci.example", base)
		out, _, err := run(loginFlags{asJSON: true, tool: "write"})
		want := "challenge resource metadata platform token tools challenge resource metadata platform token tools"
		if got := strings.Join(steps(out), " "); err != nil || got != want || !strings.Contains(out, `"by":"job"`) {
			t.Errorf("got %v, %s\n%s", err, got, out)
		}
	})
	t.Run("CL-29 a refusal is reported", func(t *testing.T) {
		platform("https://other.example", base)
		_, problems, err := run(loginFlags{})
		if !errors.Is(err, errSilent) || !strings.Contains(problems, "✗ token: invalid_grant: The issuer is not trusted.") ||
			!strings.Contains(problems, "mcp-authd trust test") {
			t.Errorf("got %v\n%s", err, problems)
		}
	})
	t.Run("a token for another audience is not sent", func(t *testing.T) {
		platform("https://ci.example", "https://elsewhere.example")
		if _, problems, _ := run(loginFlags{}); !strings.Contains(problems, "✗ platform: ") {
			t.Errorf("got %s", problems)
		}
	})
	t.Run("with --dpop, a token that is not bound is refused", func(t *testing.T) {
		platform("https://ci.example", base)
		if _, problems, _ := run(loginFlags{dpop: true}); !strings.Contains(problems, "not bound to the key") {
			t.Errorf("got %s", problems)
		}
	})
	for _, f := range []loginFlags{
		{workload: "nothing"}, {workload: "env:X", device: true}, {workload: "env:X", clientID: "a"},
	} {
		if _, err := newLogin(std{}, f, base); err == nil {
			t.Errorf("%+v was taken", f)
		}
	}
}
