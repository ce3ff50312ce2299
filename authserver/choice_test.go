package authserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// markedScopes has a scope of each kind.
func markedScopes(c *Config) {
	c.Resources[0].Scopes = []storage.ScopeText{
		{Name: "mcp", Description: "use the server", Default: true, Access: storage.AccessRead, Required: true},
		{Name: "notes:read", Description: "read notes", Access: storage.AccessRead},
		{Name: "notes:write", Description: "add notes", Access: storage.AccessWrite},
		{Name: "notes:delete", Description: "delete notes", Access: storage.AccessAdmin, Dangerous: true},
		{Name: "notes:all", Description: "do all", Implies: []string{"notes:read", "notes:write", "notes:delete"}},
	}
}

// firstHourScopes sets the scopes of docs/first-hour.md: the first sign-in requests all, and every
// call needs one.
func firstHourScopes(c *Config) {
	c.Resources[0].Scopes = []storage.ScopeText{
		{Name: "notes", Description: "read your notes", EveryCall: true, Access: storage.AccessRead},
		{Name: "notes:write", Description: "add and change notes", Default: true, Access: storage.AccessWrite},
	}
}

// grantedAfter approves a page with additional fields, and returns the scope of the token response
// and of introspection.
func (p *person) grantedAfter(shown page, fields url.Values) string {
	p.t.Helper()
	pg := p.decided(shown, fields)
	status, out := p.token(codeForm(responseOf(p.t, pg).Get("code")))
	if status != http.StatusOK {
		p.t.Fatalf("token: got %d %v", status, out)
	}
	scope, _ := out["scope"].(string)
	seen := p.post("/introspect", url.Values{"token": {out["access_token"].(string)}},
		"Authorization", basic("machine", testSecret))
	if !strings.Contains(seen.body, `"scope":"`+scope+`"`) {
		p.t.Errorf("introspection does not say %q: %s", scope, seen.body)
	}
	return scope
}

func (p *person) decided(shown page, fields url.Values) page {
	p.t.Helper()
	form := url.Values{"step": {consentStep(p.t, shown)}, "decision": {"approve"}}
	for k, v := range fields {
		form[k] = v
	}
	return p.post("/consent", form)
}

// AS-76, AS-237: a user grants fewer scopes than requested, and never more than shown.
func TestChosenScopes(t *testing.T) {
	const all = "mcp notes:read notes:write notes:delete"
	ticked := func(s ...string) url.Values { return url.Values{"scope": s} }
	preset := func(name string, s ...string) url.Values { return url.Values{"preset": {name}, "scope": s} }
	many := slices.Repeat([]string{"notes:read", "notes:all", "offline_access", "x"}, 100)
	for _, c := range []struct {
		name, asked string
		posted      url.Values
		want        string
	}{
		{"nothing dangerous is preselected", all, nil, "mcp notes:read notes:write"},
		{"what is ticked", all, ticked("notes:read"), "mcp notes:read"},
		{"what is ticked, as a browser says", all, preset("choose", "notes:write"), "mcp notes:write"},
		{"what is required, when nothing is ticked", all, preset("choose"), "mcp"},
		{"read only", all, preset("read", "notes:write", "notes:delete"), "mcp notes:read"},
		{"all but dangerous", all, preset("all", "notes:read"), "mcp notes:read notes:write"},
		{"all, and a dangerous one", all, preset("all", "notes:delete"), all},
		{"a dangerous one that is ticked", all, ticked("notes:delete"), "mcp notes:delete"},
		{"one that includes a dangerous one", "mcp notes:all", nil, "mcp"},
		{"attack: more than was shown", "mcp notes:read", ticked("notes:read", "notes:delete", "notes:all"),
			"mcp notes:read"},
		{"attack: all is all that was shown", "mcp notes:read", preset("all", "notes:delete"), "mcp notes:read"},
		{"attack: unknown ones, and as one", all, ticked("admin", "*", "notes:read notes:delete"), "mcp"},
		{"attack: ten times the scopes", all, url.Values{"scope": many}, "mcp notes:read"},
		{"attack: two presets count as the first", all, url.Values{"preset": {"read", "all"}}, "mcp notes:read"},
	} {
		t.Run("AS-237 "+c.name, func(t *testing.T) {
			p := newRig(t, markedScopes).person()
			if got := p.grantedAfter(p.login(authorizeQuery("scope", c.asked)), c.posted); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("AS-237 an unknown preset approves nothing", func(t *testing.T) {
		p := newRig(t, markedScopes).person()
		pg := p.decided(p.login(authorizeQuery("scope", all)), preset("everything"))
		if pg.status != http.StatusBadRequest || !strings.Contains(pg.body, "not complete") {
			t.Errorf("got %d %.300s", pg.status, pg.body)
		}
	})
	t.Run("AS-237 nothing is no approval", func(t *testing.T) {
		p := newRig(t, func(c *Config) {
			c.Resources[0].Scopes = []storage.ScopeText{{Name: "admin", Description: "do all", Dangerous: true}}
		}).person()
		pg := p.decided(p.login(authorizeQuery("scope", "admin")), preset("choose"))
		wantPage(t, pg, "Tick at least one permission")
		if got := p.grantedAfter(pg, ticked("admin")); got != "admin" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("RU-17 what every call needs cannot be left out", func(t *testing.T) {
		p := newRig(t, firstHourScopes).person()
		pg := p.login(authorizeQuery("scope", ""))
		if strings.Contains(pg.body, `name="scope" value="notes"`) ||
			!strings.Contains(pg.body, `name="scope" value="notes:write"`) {
			t.Errorf("the page lets people leave out what every call needs, or not the rest: %s", pg.body)
		}
		if got := p.grantedAfter(pg, preset("choose")); got != "notes" {
			t.Errorf("no box ticked: got %q", got)
		}
	})
	for name, c := range map[string]struct {
		asked, want string
		posted      url.Values
	}{
		"read only":                    {"", "notes", preset("read")},
		"all that is asked for first":  {"", "notes notes:write", nil},
		"a request that names another": {"unknown", "notes notes:write", nil},
	} {
		t.Run("RU-17 "+name+" has what every call needs", func(t *testing.T) {
			p := newRig(t, firstHourScopes).person()
			if got := p.grantedAfter(p.login(authorizeQuery("scope", c.asked)), c.posted); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("AS-237 one harmless scope is no choice", func(t *testing.T) {
		p := newRig(t).person()
		pg := p.login(authorizeQuery())
		if strings.Contains(pg.body, `name="scope"`) || strings.Contains(pg.body, "preset") {
			t.Errorf("got %s", pg.body)
		}
	})
}

// AS-76: consent is remembered for the granted scopes.
func TestRememberedChoice(t *testing.T) {
	const both = "mcp notes:write"
	t.Run("AS-76 AS-237 what was declined is asked again, alone, and widens the grant", func(t *testing.T) {
		p := newRig(t).person()
		if got := p.grantedAfter(p.login(authorizeQuery("scope", both)), url.Values{"scope": {"mcp"}}); got != "mcp" {
			t.Fatalf("got %q", got)
		}
		if got := p.approve(authorizeQuery()); !got.Has("code") {
			t.Fatalf("what was granted is asked again: %v", got)
		}
		pg := p.get("/authorize?" + authorizeQuery("scope", both).Encode())
		wantPage(t, pg, "allowed already")
		if strings.Contains(pg.body, `name="scope" value="mcp"`) {
			t.Error("an allowed scope is asked again")
		}
		if got := p.grantedAfter(pg, url.Values{"scope": {"notes:write"}, "preset": {"choose"}}); got != both {
			t.Errorf("got %q, want %q", got, both)
		}
		if got := p.approve(authorizeQuery("scope", both, "prompt", "none")); !got.Has("code") {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-76 what is declined later is no longer remembered, nor what includes it", func(t *testing.T) {
		for _, asked := range []string{"mcp notes:read notes:write", "mcp notes:all notes:write"} {
			p := newRig(t, markedScopes).person()
			everything := url.Values{"preset": {"all"}, "scope": {"notes:all"}}
			p.grantedAfter(p.login(authorizeQuery("scope", asked)), everything)
			again := p.get("/authorize?" + authorizeQuery("scope", asked, "prompt", "consent").Encode())
			if got := p.grantedAfter(again, url.Values{"preset": {"choose"}}); got != "mcp" {
				t.Fatalf("got %q", got)
			}
			silent := responseOf(t, p.get("/authorize?"+authorizeQuery("scope", "mcp notes:write", "prompt", "none",
				"client_id", "app").Encode()))
			if silent.Get("error") != string(oauth.ConsentRequired) {
				t.Errorf("%s: got %v", asked, silent)
			}
		}
	})
}
