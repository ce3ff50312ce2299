package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestClearanceOtherWays checks step-ups for a tool call approval that do not start at /authorize.
func TestClearanceOtherWays(t *testing.T) {
	r, tv := withDevice(t)
	p := r.person()
	token := p.signIn()["access_token"]
	scopeOf := func(path string) string { return "mcp clearance:" + strings.TrimPrefix(path, "/clearance/") }
	t.Run("RS-217 AS-228: one that is pushed shows the page, and the clearance goes over", func(t *testing.T) {
		form := demandForm(token, "tool", "pushed")
		path := p.waits(form)
		query := p.bring(p.reference(authorizeQuery("scope", scopeOf(path))))
		pg := p.get("/authorize?" + query.Encode())
		pg = p.post(path, url.Values{"step": {decideStep(t, pg)}, "decision": {"approve"}})
		if pg.status != http.StatusSeeOther {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		pg = p.get(p.there(pg))
		_, out := p.token(codeForm(responseOf(t, pg).Get("code")))
		if scope := out["scope"]; scope != "mcp" && scope != nil {
			t.Errorf("got the scope %v", scope)
		}
		if _, got := p.demand(demandForm(out["access_token"], "tool", "pushed")); got["cleared"] != true {
			t.Errorf("under the new grant: got %v, want it cleared", got)
		}
	})
	t.Run("RS-217 AS-240: a device is told that it cannot ask for one", func(t *testing.T) {
		path := p.waits(demandForm(token, "tool", "device"))
		status, out := tv.ask("scope", scopeOf(path))
		if status != http.StatusBadRequest || out.Error != "invalid_scope" || out.DeviceCode != "" {
			t.Errorf("got %d %+v, want invalid_scope", status, out)
		}
	})
}
