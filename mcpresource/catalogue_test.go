package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// knows is an authorization server in the same process with one resource.
type knows struct {
	scopes []string
	err    error
}

func (knows) Introspect(context.Context, string) (oauth.Introspection, error) {
	return oauth.Introspection{}, nil
}

func (k knows) ResourceScopes(_ context.Context, uri string) ([]string, bool, error) {
	return k.scopes, uri == resource, k.err
}

// TestMismatch: issue 11, 4.1. A mismatch between guard and authorization server is detected at the
// start, not by users who sign in again and again.
func TestMismatch(t *testing.T) {
	make := func(k knows, change func(*Config)) error {
		c := Config{
			Resource: resource, AuthorizationServers: []string{authServer}, Validator: Local(k),
			Policy: &Rules{Base: []string{"notes:read"}},
		}
		change(&c)
		_, err := New(c)
		return err
	}
	has := knows{scopes: []string{"notes:read", "notes:write"}}
	for name, tt := range map[string]struct {
		change       func(*Config)
		scope, place string
	}{
		"Base":    {func(c *Config) { c.Policy.(*Rules).Base = []string{"notes:reed"} }, "notes:reed", "Rules.Base"},
		"Default": {func(c *Config) { c.Policy.(*Rules).Default = []string{"x"} }, "x", "Rules.Default"},
		"Tools": {
			func(c *Config) { c.Policy.(*Rules).Tools = map[string][]string{"a": {"notes:write"}, "b_*": {"y"}} },
			"y", `Rules.Tools["b_*"]`,
		},
		"Methods": {
			func(c *Config) { c.Policy.(*Rules).Methods = map[string][]string{"logging/setLevel": {"y"}} }, "y",
			`Rules.Methods["logging/setLevel"]`,
		},
		"Prompts": {
			func(c *Config) { c.Policy.(*Rules).Prompts = map[string][]string{"p": {"y"}} }, "y", `Rules.Prompts["p"]`,
		},
		"Resources": {
			func(c *Config) { c.Policy.(*Rules).Resources = map[string][]string{"file:///*": {"y"}} }, "y",
			`Rules.Resources["file:///*"]`,
		},
		"first":     {func(c *Config) { c.FirstScopes = []string{"z"} }, "z", "FirstScopes"},
		"published": {func(c *Config) { c.Metadata.ScopesSupported = []string{"z"} }, "z", "Metadata.ScopesSupported"},
		"resource":  {func(c *Config) { c.Resource += "/" + "other" }, "", ""},
		"alias":     {func(c *Config) { c.Aliases = []string{resource + "@unknown"} }, "", ""},
	} {
		var mismatch *MismatchError
		if err := make(has, tt.change); !errors.As(err, &mismatch) || mismatch.Scope != tt.scope ||
			mismatch.Place != tt.place {
			t.Errorf("%s: got %v", name, err)
		} else if text := err.Error(); !strings.Contains(text, authServer) ||
			tt.scope != "" && (!strings.Contains(text, "notes:read") || !strings.Contains(text, tt.scope)) {
			t.Errorf("%s: the message does not name both sides: %s", name, text)
		}
	}
	for name, change := range map[string]func(*Config){
		"what fits":      func(c *Config) { c.Policy.(*Rules).Tools = map[string][]string{"add": {"notes:write"}} },
		"offline_access": func(c *Config) { c.FirstScopes = []string{"notes:read", oauth.OfflineAccess} },
	} {
		if err := make(has, change); err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := make(knows{err: errors.New("store")}, func(*Config) {}); err != nil {
		t.Errorf("a server that cannot answer now does not prevent a start: got %v", err)
	}
}

// TestMismatchWithRemote does the same for a remote authorization server that publishes its scopes.
func TestMismatchWithRemote(t *testing.T) {
	for name, tt := range map[string]struct {
		more  string
		scope string // of the mismatch; "-" for the resource
	}{
		"it has the scope":   {`, "protected_resource_scopes": {"` + resource + `": ["mcp"]}`, ""},
		"it has another one": {`, "protected_resource_scopes": {"` + resource + `": ["notes:read"]}`, "mcp"},
		"it has another resource": {
			`, "protected_resource_scopes": {"https://other.example.com/mcp": ["mcp"]}`, "-",
		},
		"it has none at all": {`, "protected_resource_scopes": {}`, "-"},
		"it says nothing": {
			`, "protected_resources": ["https://other.example.com/mcp"], "scopes_supported": ["x"]`, "",
		},
		"it has the URI written else": {
			`, "protected_resource_scopes": {"HTTPS://MCP.example.com:443/mcp": ["mcp"]}`, "",
		},
	} {
		var s *httptest.Server
		s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": "%s/jwks.json"%s}`, s.URL, s.URL, tt.more)
		}))
		v, err := Discover(t.Context(), s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(Config{
			Resource: resource, AuthorizationServers: []string{s.URL}, Validator: v,
			Policy: &Rules{Base: []string{"mcp"}},
		})
		var mismatch *MismatchError
		switch got := errors.As(err, &mismatch); {
		case got != (tt.scope != ""), err != nil && !got, got && tt.scope != "-" && mismatch.Scope != tt.scope,
			got && tt.scope == "-" && mismatch.Scope != "":
			t.Errorf("%s: got %v", name, err)
		}
		s.Close()
	}
}
