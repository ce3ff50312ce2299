package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestClearanceUnion checks a client that adds each challenge to its earlier scopes, like the
// TypeScript SDK: it gets the new tool call approval, whatever happened to the earlier ones.
func TestClearanceUnion(t *testing.T) {
	r := newRig(t)
	p := r.person()
	token := p.signIn()["access_token"]
	scope := "mcp"
	for _, verdict := range []string{"deny", "approve", "deny"} {
		path := p.waits(demandForm(token, "tool", "tool"+strings.Repeat("x", len(scope))))
		scope += " clearance:" + strings.TrimPrefix(path, "/clearance/")
		pg := p.get("/authorize?" + authorizeQuery("scope", scope).Encode())
		if pg.status != http.StatusOK || !strings.Contains(pg.body, path) {
			t.Fatalf("RS-217: the scope %q: got %d, want the page of %s: %s", scope, pg.status, path, pg.body)
		}
		pg = p.post(path, url.Values{"step": {decideStep(t, pg)}, "decision": {verdict}})
		if pg.status != http.StatusSeeOther {
			t.Fatalf("RS-217 %s: got %d %s", verdict, pg.status, pg.body)
		}
	}
}
