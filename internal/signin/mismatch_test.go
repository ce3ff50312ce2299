package signin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestMismatch: issue 11, 4.1. Check detects that an MCP server and its authorization server do not
// match.
func TestMismatch(t *testing.T) {
	for name, tt := range map[string]struct {
		scopes func(w *world) map[string][]string
		failed string // text of the failing finding; "" for none
		advice string
	}{
		"it fits": {
			func(w *world) map[string][]string { return map[string][]string{w.URL + "/mcp/": {"mcp", "x"}} }, "", "",
		},
		"it says nothing": {func(*world) map[string][]string { return nil }, "", ""},
		"another scope": {
			func(w *world) map[string][]string { return map[string][]string{w.URL + "/mcp": {"mpc"}} }, "each scope",
			`"mpc"`,
		},
		"an unknown resource": {
			func(w *world) map[string][]string { return map[string][]string{w.URL + "/else": {"mcp"}} },
			"knows this MCP server", "resource add",
		},
	} {
		w := newWorld(t, nil)
		if scopes := tt.scopes(w); scopes != nil {
			w.as["protected_resource_scopes"] = scopes
		}
		found := ""
		for _, f := range New().Check(t.Context(), w.URL+"/mcp") {
			if (f.Requirement == "AS-105" || f.Requirement == "AS-111") && f.Level == "fail" {
				found = f.What
				if !strings.Contains(f.Advice, tt.advice) {
					t.Errorf("%s: the advice is %q", name, f.Advice)
				}
			}
		}
		if (found != "") != (tt.failed != "") || !strings.Contains(found, tt.failed) {
			t.Errorf("%s: got %q", name, found)
		}
	}
}

// TestTry checks that a request that is refused to every caller ends the sign-in immediately.
func TestTry(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   string // "" for a sign-in page
	}{
		"a page to sign in": {func(w http.ResponseWriter, _ *http.Request) {}, ""},
		"busy": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, "",
		},
		"to a provider": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://idp.example.com/?state=1", http.StatusSeeOther)
		}, ""},
		"an error page": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			_, _ = w.Write([]byte(`<div role="alert"><p><bdi>The MCP server &#34;x&#34; is not known.</bdi></p></div>`))
		}, `The MCP server "x" is not known.`},
		"an error for the client": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/callback?error=invalid_target&error_description=not+known",
				http.StatusSeeOther)
		}, "invalid_target: not known"},
	} {
		s := httptest.NewServer(tt.answer)
		err := New().Try(t.Context(), Request{URL: s.URL + "/authorize?x=1"})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v", name, err)
		}
		s.Close()
	}
}
