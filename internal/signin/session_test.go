package signin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestFreshProof checks that a request that requires a fresh proof makes the user sign in again,
// once, with the server's max_age (RFC 9470; OB-10).
func TestFreshProof(t *testing.T) {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	var asked []url.Values
	pleased := true
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": server.URL, "authorization_endpoint": server.URL + "/authorize",
			"token_endpoint": server.URL + "/token", "code_challenge_methods_supported": []string{"S256"},
		})
	})
	mux.HandleFunc("GET /authorize", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		token := "old"
		if asked[len(asked)-1].Get("max_age") == "600" {
			token = "fresh"
		}
		_ = json.NewEncoder(w).Encode(oauth.TokenResponse{AccessToken: token, TokenType: "Bearer", ExpiresIn: 900})
	})
	mux.HandleFunc("POST /api", func(w http.ResponseWriter, r *http.Request) {
		if pleased && r.Header.Get("Authorization") == "Bearer fresh" {
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_user_authentication", max_age="600"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	s := &Session{
		Issuer: server.URL, Resource: server.URL + "/api", File: FileFor(t.TempDir(), "api"), ClientID: "ours",
		Ready: func() error { return nil },
		Ask: func(_ context.Context, p Prompt) {
			u, _ := url.Parse(p.URL)
			asked = append(asked, u.Query())
			go func() {
				back := url.Values{"code": {"c"}, "state": {u.Query().Get("state")}}
				if resp, err := http.Get(u.Query().Get("redirect_uri") + "?" + back.Encode()); err == nil {
					resp.Body.Close()
				}
			}()
		},
		Next: http.DefaultTransport, Now: time.Now,
	}
	post := func() int {
		t.Helper()
		resp, err := (&http.Client{Transport: s}).Post(server.URL+"/api", "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := post(); got != 200 || len(asked) != 2 || asked[0].Has("max_age") || asked[1].Get("max_age") != "600" {
		t.Errorf("OB-10: got %d, asked %v", got, asked)
	}
	if got := post(); got != 200 || len(asked) != 2 {
		t.Errorf("OB-10: got %d, asked %d times", got, len(asked))
	}
	if pleased = false; post() != 401 || len(asked) != 3 {
		t.Errorf("OB-10: a server that is never pleased: asked %d times", len(asked))
	}
}

// TestFreshProofByDevice checks that the device flow requests a fresh proof on a computer without a
// browser (RFC 9470; OB-10).
func TestFreshProofByDevice(t *testing.T) {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	var asked, ways []string
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": server.URL, "authorization_endpoint": server.URL + "/authorize",
			"token_endpoint": server.URL + "/token", "code_challenge_methods_supported": []string{"S256"},
			"device_authorization_endpoint": server.URL + "/device_authorization",
		})
	})
	mux.HandleFunc("POST /device_authorization", func(w http.ResponseWriter, r *http.Request) {
		asked, ways = append(asked, r.PostFormValue("max_age")), append(ways, r.PostFormValue("acr_values"))
		_ = json.NewEncoder(w).Encode(DeviceRequest{
			Code: "d", UserCode: "BCDF-GHJK", URI: server.URL + "/device", ExpiresIn: 600, Interval: 1,
		})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		token := "of " + asked[len(asked)-1]
		_ = json.NewEncoder(w).Encode(oauth.TokenResponse{AccessToken: token, TokenType: "Bearer", ExpiresIn: 900})
	})
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer of 600" {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_user_authentication", acr_values="x  y", max_age="600"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	s := &Session{
		Issuer: server.URL, Resource: server.URL + "/api", File: FileFor(t.TempDir(), "api"), ClientID: "ours",
		Device: true, Ready: func() error { return nil }, Ask: func(context.Context, Prompt) {},
		Next: http.DefaultTransport, Now: time.Now,
	}
	resp, err := (&http.Client{Transport: s}).Get(server.URL + "/api")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || len(asked) != 2 || asked[0] != "" || asked[1] != "600" ||
		ways[0] != "" || ways[1] != "x y" {
		t.Errorf("OB-10: got %d, asked %q, %q", resp.StatusCode, asked, ways)
	}
}
