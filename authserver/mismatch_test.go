package authserver

import (
	"html"
	"strings"
	"testing"
)

// TestMismatch checks a guard that requests a resource or scope that this server does not know. The
// log contains both names, and the page shows the mismatch (issue 11, 4.1).
func TestMismatch(t *testing.T) {
	r := newRig(t)
	t.Run("a resource that is not known", func(t *testing.T) {
		r.log.Reset()
		pg := r.person().get("/authorize?" + authorizeQuery("resource", testResource+"/notes").Encode())
		text := html.UnescapeString(pg.body)
		if pg.status != 400 || !strings.Contains(text, testResource+"/notes") ||
			!strings.Contains(text, "Reference for the operator") {
			t.Errorf("got %d %s", pg.status, text)
		}
		if log := r.log.String(); !strings.Contains(log, `"resource":"`+testResource+`/notes"`) ||
			!strings.Contains(log, "authorize.refused") {
			t.Errorf("the log says %s", log)
		}
	})
	t.Run("a scope that is not known", func(t *testing.T) {
		r.log.Reset()
		if pg := r.person().get("/authorize?" +
			authorizeQuery("scope", "mcp notes:reed openid offline_access").Encode()); pg.status != 200 {
			t.Errorf("got %d", pg.status)
		}
		if log := r.log.String(); !strings.Contains(log, `"scope_unknown":"notes:reed"`) ||
			!strings.Contains(log, `"scope":"mcp offline_access"`) {
			t.Errorf("the log says %s", log)
		}
	})
	t.Run("what a guard in the process compares itself with", func(t *testing.T) {
		for uri, want := range map[string]bool{
			testResource: true, testResource + "/": true, testResource + "/notes": false,
		} {
			scopes, known, err := r.ResourceScopes(t.Context(), uri)
			if err != nil || known != want || known && strings.Join(scopes, " ") != "mcp notes:write" {
				t.Errorf("%s: got %v, %t, %v", uri, scopes, known, err)
			}
		}
	})
}
