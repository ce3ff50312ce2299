package dcr

import (
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Clients 3.3: a document lists only http://127.0.0.1:33418/ while its client sends /callback. The
// administrator may allow that for this client, but nothing that could redirect the response
// elsewhere.
func TestDocumentRedirects(t *testing.T) {
	s := newSite(t)
	s.say(`"client_name":"CLI","redirect_uris":["http://127.0.0.1:33418/"]`)
	const sent = "http://127.0.0.1:51004/callback"
	registry := func(more map[string][]string) (*Registry, error) {
		store := installation.Store(t)
		return New(Config{
			Store: store, SecretKeys: [][]byte{make([]byte, 32)},
			Documents: Documents{Enabled: true, InsecureLoopback: true, Redirects: more},
		})
	}
	materials := map[string]bool{}
	for _, tt := range []struct {
		name string
		more map[string][]string
		want bool
	}{
		{"not allowed", nil, false},
		{"allowed another client",
			map[string][]string{"https://app.example/client.json": {"http://127.0.0.1/callback"}}, false},
		{"allowed", map[string][]string{s.id(): {"http://127.0.0.1/callback"}}, true},
	} {
		r, err := registry(tt.more)
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.Fetch(t.Context(), s.id())
		if err != nil {
			t.Fatal(err)
		}
		if got := oauth.MatchRedirectURI(c.RedirectURIs, sent); got != tt.want ||
			!oauth.MatchRedirectURI(c.RedirectURIs, "http://127.0.0.1:1/") {
			t.Errorf("%s: got %v for %s, want %v; has %v", tt.name, got, sent, tt.want, c.RedirectURIs)
		}
		material := c.Material()
		materials[string(material[:])] = true
	}
	if len(materials) != 2 {
		t.Errorf("got %d materials, want 2: people are asked again after a change", len(materials))
	}
	const id = "https://app.example/client.json"
	for _, tt := range []struct{ id, uri, want string }{
		{id, "http://127.0.0.1/callback", ""},
		{id, "http://localhost:33418/callback", ""},
		{id, "https://app.example/cb", ""},
		{id, "https://app.example:8443/cb", "neither http on loopback nor https on app.example"},
		{id, "https://evil.example/cb", "neither http on loopback nor https on app.example"},
		{id, "https://sub.app.example/cb", "neither http on loopback nor https on app.example"},
		{id, "http://app.example/cb", "an http redirect URI must be on localhost"},
		{id, "https://app.example@evil.example/cb", "has user information"},
		{id, "http://127.0.0.1/#x", "has a fragment"},
		{id, "cursor://cb", "the scheme of the redirect URI is not permitted here"},
		{id, "", "is empty or too long"},
		{"app", "http://127.0.0.1/callback", "is not the https URL of a client metadata document"},
		{"http://app.example/client.json", "http://127.0.0.1/callback",
			"is not the https URL of a client metadata document"},
	} {
		err := CheckDocumentRedirect(tt.id, tt.uri)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s, %s: got %v, want %q", tt.id, tt.uri, err, tt.want)
		}
		if _, newErr := registry(map[string][]string{tt.id: {tt.uri}}); (newErr == nil) != (err == nil) {
			t.Errorf("%s, %s: New says %v", tt.id, tt.uri, newErr)
		}
	}
}
