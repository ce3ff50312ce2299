package flow

import (
	"testing"

	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Security H1: an answer counts only for the contents of the page.
func TestCovers(t *testing.T) {
	t.Run("AS-114 SP-01 more scopes, another resource, another host or less trust are not covered", func(t *testing.T) {
		f := &Flow{Clients: &clients.Finder{}}
		nice := storage.Client{
			ID: "nice", Name: "Nice", RedirectURIs: []string{"https://nice.example/cb"}, AuthMethod: "none",
			Source: storage.SourceDynamic,
		}
		request := func(change ...func(*Request)) Request {
			a := Request{
				Identified: Identified{Client: nice, RedirectURI: "https://nice.example/cb"},
				Resource:   policy.Resolution{Resource: storage.Resource{URI: "https://mcp.example.com/mcp"}},
				Scopes:     oauth.Scopes{"mcp"},
			}
			for _, c := range change {
				c(&a)
			}
			return a
		}
		shown := f.Shown(request(), policy.Question{Asked: oauth.Scopes{"mcp"}})
		for name, tt := range map[string]struct {
			change func(*Request)
			want   bool
		}{
			"the very same":       {func(*Request) {}, true},
			"less":                {func(a *Request) { a.Scopes = nil }, true},
			"more":                {func(a *Request) { a.Scopes = oauth.Scopes{"mcp", "notes:write"} }, false},
			"another resource":    {func(a *Request) { a.Resource.URI = "https://other.example.com" }, false},
			"another place":       {func(a *Request) { a.RedirectURI = "https://nice.example/other" }, false},
			"PL6 another name":    {func(a *Request) { a.Client.Name = "Nicer" }, false},
			"another source":      {func(a *Request) { a.Client.Source = storage.SourceCIMD }, false},
			"another client":      {func(a *Request) { a.Client.ID = "https://nice.example/client" }, false},
			"keys":                {func(a *Request) { a.Client.JWKS = []byte("{}") }, false},
			"vouched for by now":  {func(a *Request) { a.Client.Source = storage.SourceStatic }, false},
			"another secret only": {func(a *Request) { a.Client.SecretHash = &storage.Hash{} }, true},
		} {
			if got := f.covers(shown, request(tt.change)); got != tt.want {
				t.Errorf("%s: got %v, want %v", name, got, tt.want)
			}
		}
		if f.covers(nil, request()) {
			t.Error("an empty page covers the request")
		}
	})
}
