package authserver

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestAccountApplicationAtServers: RU-18, PE-09: an application is one row with a part for each MCP server. One part
// ends alone, and Disconnect ends all of it, however often it has signed in.
func TestAccountApplicationAtServers(t *testing.T) {
	r := newRig(t)
	const elsewhere = "https://elsewhere.example.com/mcp"
	if err := r.store.AddResource(t.Context(), storage.Resource{
		URI: elsewhere, Name: "Elsewhere", Scopes: []storage.ScopeText{{Name: "mcp", Default: true}},
	}); err != nil {
		t.Fatal(err)
	}
	r.advance(recent.TTL)
	p := r.person()
	signIn := func(resource string) map[string]any {
		code := p.approve(authorizeQuery("resource", resource)).Get("code")
		status, out := p.token(codeForm(code, "resource", resource))
		if status != http.StatusOK {
			t.Fatalf("got %d %v", status, out)
		}
		return out
	}
	tokens := []map[string]any{signIn(testResource), signIn(elsewhere), signIn(testResource)}
	active := func(want ...bool) {
		t.Helper()
		var got []bool
		for _, token := range tokens {
			got = append(got, r.introspected(p, token["access_token"])["active"] == true)
		}
		if !slices.Equal(got, want) {
			t.Errorf("RU-18: got %v, want %v", got, want)
		}
	}
	pg := p.get("/account")
	ids := rows(grantRow, pg)
	leave, end := strings.Count(pg.body, `value="leave"`), strings.Count(pg.body, `value="disconnect"`)
	if len(ids) != 1 || leave != 2 || end != 1 {
		t.Fatalf("RU-18: got the rows %v: %s", ids, pg.body)
	}
	for _, want := range []string{"Disconnecting ends 3 connections", elsewhere, testResource} {
		pg.has(t, http.StatusOK, want)
	}
	p.account("connections", "grant", ids[0], "act", "pause").has(t, http.StatusOK, "The application is paused.")
	active(false, true, false)
	p.account("connections", "grant", ids[0], "act", "resume")
	pg = p.account("connections", "grant", ids[0], "act", "leave")
	pg.has(t, http.StatusOK, "disconnected from that server")
	active(false, true, false)
	tokens = append(tokens, signIn(testResource))
	active(false, true, false, true)
	ids = rows(grantRow, p.get("/account"))
	pg = p.account("connections", "grant", ids[0], "act", "disconnect")
	pg.has(t, http.StatusOK, "The application is disconnected")
	pg.has(t, http.StatusOK, "No application is connected")
	active(false, false, false, false)
	if log := r.log.String(); !strings.Contains(log, `"servers":2`) || !strings.Contains(log, `"connections":2`) {
		t.Error("RU-18: the audit log does not name the ended grants")
	}
}
