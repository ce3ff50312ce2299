package mcpresource

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	workURL     = resource + "@work"
	workPRM     = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp@work"
	wrongServer = `Bearer error="invalid_token", error_description="The access token is not valid for this server.", ` +
		`scope="mcp", resource_metadata=`
)

// aliased returns a rig with an alias and a token of bob for it.
func aliased(t *testing.T, change func(*Config)) *rig {
	tokens := people(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	atWork := *tokens["bob"]
	atWork.Audience = []string{workURL}
	tokens["bob-at-work"] = &atWork
	both := *tokens["bob"]
	both.Audience = []string{resource, workURL}
	tokens["both"] = &both
	return newRig(t, func(c *Config) {
		c.Aliases, c.Metadata.Name = []string{"https://MCP.example.com/mcp@work/"}, "Notes"
		c.Validator = ValidatorFunc(func(_ context.Context, c Credential) (*Principal, error) {
			if p, ok := tokens[c.Token]; ok {
				return p, nil
			}
			return nil, ErrInvalidToken
		})
		if change != nil {
			change(c)
		}
	})
}

// AS-239 RFC 8707 2, RFC 9728 3.3: an alias is a separate resource identifier. A token is valid
// only at the URL that it was issued for, so that two users of one client are never confused.
func TestAliases(t *testing.T) {
	r := aliased(t, nil)
	for _, tt := range []struct {
		name, path, token string
		status            int
		challenge         string
	}{
		{"alice at the resource", "/mcp", "alice", 200, ""},
		{"bob at the alias", "/mcp@work", "bob-at-work", 200, ""},
		{"bob at the alias, escaped by his client", "/mcp%40work", "bob-at-work", 200, ""},
		{"a token for both", "/mcp@work", "both", 200, ""},
		{"the token of the alias at the resource", "/mcp", "bob-at-work", 401, wrongServer + `"` + prmURL + `"`},
		{"the token of the resource at the alias", "/mcp@work", "alice", 401, wrongServer + `"` + workPRM + `"`},
		{"... escaped", "/mcp%40work", "alice", 401, wrongServer + `"` + workPRM + `"`},
		{"no token at the alias", "/mcp@work", "", 401, `Bearer scope="mcp", resource_metadata="` + workPRM + `"`},
		{"no token at the resource", "/mcp", "", 401, `Bearer scope="mcp", resource_metadata="` + prmURL + `"`},
		{"another path", "/mcp@home", "alice", 404, ""},
		{"below the alias", "/mcp@work/x", "bob-at-work", 404, ""},
	} {
		t.Run("AS-239 "+tt.name, func(t *testing.T) {
			var header []string
			if tt.token != "" {
				header = []string{"Authorization", "Bearer " + tt.token}
			}
			w := r.do(http.MethodPost, tt.path, tool("read"), header...)
			if got := w.Header().Get("WWW-Authenticate"); w.Code != tt.status || got != tt.challenge {
				t.Errorf("got %d %s\nwant %d %s", w.Code, got, tt.status, tt.challenge)
			}
		})
	}
	t.Run("RS-04 RFC 9728 3.3: each has a document that names it", func(t *testing.T) {
		for path, want := range map[string][2]string{
			"/.well-known/oauth-protected-resource/mcp":      {resource, "Notes"},
			"/.well-known/oauth-protected-resource/mcp@work": {workURL, "Notes (work)"},
			"/.well-known/oauth-protected-resource":          {"https://mcp.example.com", "Notes"},
		} {
			var got struct {
				Resource string   `json:"resource"`
				Name     string   `json:"resource_name"`
				Scopes   []string `json:"scopes_supported"`
			}
			w := r.do(http.MethodGet, path, "")
			err := json.Unmarshal(w.Body.Bytes(), &got)
			if err != nil || got.Resource != want[0] || got.Name != want[1] ||
				!slices.Equal(got.Scopes, []string{"mcp"}) {
				t.Errorf("%s: got %d %+v, %v", path, w.Code, got, err)
			}
		}
	})
	t.Run("the rules are those of the resource", func(t *testing.T) {
		if w := r.do(http.MethodPost, "/mcp@work", tool("write_logs"), "Authorization",
			"Bearer bob-at-work"); w.Code != http.StatusForbidden ||
			!strings.Contains(w.Header().Get("WWW-Authenticate"), `resource_metadata="`+workPRM+`"`) {
			t.Errorf("got %d %s", w.Code, w.Header())
		}
	})
	t.Run("its URLs", func(t *testing.T) {
		if got := r.Resources(); !slices.Equal(got, []string{resource, workURL}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a session is its person's, at each URL", func(t *testing.T) {
		r.next = func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Mcp-Session-Id", "bobs") }
		r.do(http.MethodPost, "/mcp@work", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
			"Authorization", "Bearer bob-at-work")
		r.next = nil
		session := []string{"Mcp-Session-Id", "bobs"}
		if w := r.call("alice", tool("read"), session...); w.Code != http.StatusNotFound {
			t.Errorf("alice at the resource, in the session of bob: got %d", w.Code)
		}
	})
}

// A guard in front of a handler, without its own mux, distinguishes the URLs by path.
func TestAliasesBehindAnotherMux(t *testing.T) {
	r := aliased(t, nil)
	r.h = r.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	for path, want := range map[string]int{"/mcp@work": 200, "/mcp@work/": 200, "/mcp": 401, "/elsewhere": 401} {
		if w := r.do(http.MethodPost, path, tool("read"), "Authorization", "Bearer bob-at-work"); w.Code != want {
			t.Errorf("%s: got %d, want %d", path, w.Code, want)
		}
	}
}

// Work that outlives its request is checked against the URL of that request.
func TestRecheckAtAnAlias(t *testing.T) {
	r := aliased(t, nil)
	var caller context.Context
	r.next = func(_ http.ResponseWriter, req *http.Request) { caller = context.WithoutCancel(req.Context()) }
	r.do(http.MethodPost, "/mcp@work", tool("read"), "Authorization", "Bearer bob-at-work")
	op := Operation{Method: "tools/call", Name: "read"}
	if err := r.Recheck(caller, op); err != nil {
		t.Errorf("AS-239 the caller of the alias: got %v", err)
	}
	if _, err := r.Verify(t.Context(), Credential{Scheme: "Bearer", Token: "bob-at-work"}); !errors.Is(err,
		ErrInvalidToken) {
		t.Errorf("AS-239 without a request it is for the resource: got %v", err)
	}
}

// OriginAudience does not extend to the aliases on the origin.
func TestOriginAudienceAtAnAlias(t *testing.T) {
	tokens := people(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	r := aliased(t, func(c *Config) {
		c.OriginAudience = true
		c.Validator = ValidatorFunc(func(_ context.Context, c Credential) (*Principal, error) {
			return tokens[c.Token], nil
		})
	})
	for path, want := range map[string]int{"/mcp": 200, "/mcp@work": 401} {
		if w := r.do(http.MethodPost, path, tool("read"), "Authorization", "Bearer origin-audience"); w.Code != want {
			t.Errorf("%s: got %d, want %d", path, w.Code, want)
		}
	}
}

func TestAliasesThatCannotBe(t *testing.T) {
	for name, tt := range map[string]struct{ alias, err string }{
		"another host": {"https://evil.example.com/mcp", "on the origin of its resource"},
		"itself":       {resource, "the resource itself"},
		"a fragment":   {workURL + "#x", "fragment"},
	} {
		c := Config{
			Resource: resource, Aliases: []string{tt.alias}, AuthorizationServers: []string{authServer},
			Validator: ValidatorFunc(func(context.Context, Credential) (*Principal, error) {
				return nil, ErrInvalidToken
			}),
		}
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), "mcpresource: Aliases: ") ||
			!strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: got %v, want %q", name, err, tt.err)
		}
	}
}
