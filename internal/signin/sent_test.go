package signin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestSent checks the requests of the client.
func TestSent(t *testing.T) {
	w := newWorld(t, nil)
	if err := signIn(t, w, w.URL+"/mcp"); err != nil {
		t.Fatal(err)
	}
	t.Run("CL-07 MCP 2025-03-26: discovery names the protocol version", func(t *testing.T) {
		for _, path := range []string{
			"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server",
		} {
			if got := w.last(t, path).header.Get("MCP-Protocol-Version"); got != protocol.Rev20260728 {
				t.Errorf("%s: got %q, want %q", path, got, protocol.Rev20260728)
			}
		}
	})
	var registered struct {
		RedirectURIs    []string `json:"redirect_uris"`
		GrantTypes      []string `json:"grant_types"`
		ApplicationType string   `json:"application_type"`
	}
	if err := json.Unmarshal([]byte(w.last(t, "/register").body), &registered); err != nil {
		t.Fatal(err)
	}
	t.Run("CL-13 it registers as a native application", func(t *testing.T) {
		if registered.ApplicationType != "native" {
			t.Errorf("got %+v", registered)
		}
	})
	t.Run("CL-14 it registers for refresh tokens, and does without one", func(t *testing.T) {
		if !slices.Contains(registered.GrantTypes, "refresh_token") {
			t.Errorf("got %+v", registered)
		}
	})
	t.Run("CL-16 the redirect URI is on loopback, and the registered one", func(t *testing.T) {
		u, err := url.Parse(registered.RedirectURIs[0])
		if err != nil || u.Scheme != "http" || u.Hostname() != "127.0.0.1" {
			t.Errorf("got %v, %v", u, err)
		}
		token, err := url.ParseQuery(w.last(t, "/token").body)
		if err != nil || token.Get("redirect_uri") != registered.RedirectURIs[0] {
			t.Errorf("got %v, want %v", token, registered.RedirectURIs)
		}
		for _, q := range w.requests { // authorize and token
			if got := q.Get("redirect_uri"); got != registered.RedirectURIs[0] {
				t.Errorf("got %q, want %v", got, registered.RedirectURIs)
			}
		}
	})
	t.Run("RS-13 CL-02 a pointer to a document anywhere else", func(t *testing.T) {
		elsewhere := newWorld(t, func(w *world) {
			w.challenge = `Bearer resource_metadata="` + w.URL + `/open/prm.json"`
			w.opened = func(rw http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(rw).Encode(w.prm) }
		})
		if err := signIn(t, elsewhere, elsewhere.URL+"/mcp"); err != nil {
			t.Error(err)
		}
	})
}

// TestHowItAuthenticates: CL-28. The client uses an authentication method that the authorization
// server lists.
func TestHowItAuthenticates(t *testing.T) {
	for _, tt := range []struct {
		name, secret string
		methods      metadata.Values
		header, body bool
	}{
		{"CL-28 none for a public client", "", metadata.Values{"none", "client_secret_post"}, false, false},
		{"CL-28 client_secret_post", "s+1", metadata.Values{"client_secret_post", "client_secret_basic"}, false, true},
		{"CL-28 client_secret_basic", "s+1", metadata.Values{"client_secret_basic"}, true, false},
		{"CL-28 RFC 8414 2: client_secret_basic if nothing is listed", "s+1", nil, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			var s Server
			s.TokenEndpoint, s.TokenAuthMethods = w.URL+"/token", tt.methods
			if _, err := New().Token(t.Context(), s, Credentials{"c1", tt.secret}, Request{}, "http://127.0.0.1/cb",
				w.URL+"/mcp", "code1"); err != nil {
				t.Fatal(err)
			}
			got := w.last(t, "/token")
			form, err := url.ParseQuery(got.body)
			if err != nil || form.Get("client_id") != "c1" || form.Has("client_secret") != tt.body ||
				tt.body && form.Get("client_secret") != tt.secret {
				t.Errorf("the form is %v, %v", form, err)
			}
			r := http.Request{Header: got.header}
			if _, secret, ok := r.BasicAuth(); ok != tt.header || ok && secret != url.QueryEscape(tt.secret) {
				t.Errorf("the header is %q", got.header.Get("Authorization"))
			}
		})
	}
}

// TestBound: CL-30. With a key, the token request has a proof, and a token that is not bound is
// refused.
func TestBound(t *testing.T) {
	w := newWorld(t, nil)
	var s Server
	s.TokenEndpoint = w.URL + "/token"
	kind := "DPoP"
	w.token = func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("DPoP") == "" {
			t.Error("CL-30: no proof")
		}
		fmt.Fprintf(rw, `{"access_token":"t","token_type":%q,"expires_in":60}`, kind)
	}
	c, err := NewBound()
	if err != nil {
		t.Fatal(err)
	}
	s.AuthorizationEndpoint = w.URL + "/authorize"
	for _, tt := range []struct {
		client *Client
		want   string
	}{{c, c.key}, {New(), ""}} {
		r, err := tt.client.Authorize(s, Credentials{ID: "c1"}, "http://127.0.0.1/cb", w.URL+"/mcp", nil, Proof{})
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(r.URL)
		if err != nil || u.Query().Get("dpop_jkt") != tt.want || u.Query().Has("dpop_jkt") != (tt.want != "") {
			t.Errorf("AS-215: dpop_jkt: got %v, %v, want %q", u, err, tt.want)
		}
	}
	get := func() (oauth.TokenResponse, error) {
		return c.Token(t.Context(), s, Credentials{ID: "c1"}, Request{}, "http://127.0.0.1/cb", w.URL+"/mcp", "code1")
	}
	token, err := get()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: c.Present(token)}).Post(w.URL+"/mcp", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if h := w.last(t, "/mcp").header; h.Get("Authorization") != "DPoP t" || h.Get("DPoP") == "" {
		t.Errorf("CL-30: got %v", h)
	}
	kind = "Bearer"
	if _, err := get(); err == nil || !strings.Contains(err.Error(), "not bound") {
		t.Errorf("got %v", err)
	}
}
