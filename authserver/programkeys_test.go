package authserver

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// programKey is a key on the page that shows it once.
type programKey struct{ id, secret, command string }

func shown(pg page, id string) string {
	m := regexp.MustCompile(`<(?:code|textarea) id="` + id + `"[^>]*>([^<]*)<`).FindStringSubmatch(pg.body)
	if m == nil {
		return ""
	}
	return m[1]
}

// keyForm returns the completed form for a new key.
func (p *person) keyForm(change ...string) url.Values {
	p.t.Helper()
	values := url.Values{
		"step": {p.get("/account/keys").step(p.t)}, "name": {"Nightly report"}, "days": {"7"}, "scope": {"mcp"},
	}
	for i := 0; i+1 < len(change); i += 2 {
		values.Del(change[i])
		for v := range strings.FieldsSeq(change[i+1]) {
			values.Add(change[i], v)
		}
	}
	return values
}

var olderKeys = regexp.MustCompile(`href="(/account\?keys=[^"#]+)#keys"`)

// keys returns the keys on the account page of a user without connections, and on its further
// pages.
func (p *person) keys() (ids []string) {
	p.t.Helper()
	pg := p.get("/account")
	for {
		ids = append(ids, rows(grantRow, pg)...)
		next := olderKeys.FindStringSubmatch(pg.body)
		if next == nil || len(ids) > storage.MaxProgramKeys {
			return ids
		}
		pg = p.get(next[1])
	}
}

// makeKey creates a key on the page.
func (p *person) makeKey(change ...string) programKey {
	p.t.Helper()
	return p.madeKey(p.post("/account/keys", p.keyForm(change...)))
}

func (p *person) madeKey(pg page) programKey {
	p.t.Helper()
	k := programKey{shown(pg, "client_id"), shown(pg, "client_secret"), shown(pg, "command")}
	if pg.status != http.StatusOK || k.id == "" || k.secret == "" {
		p.t.Fatalf("no key: %d %.3000s", pg.status, pg.body)
	}
	return k
}

// use requests a token with a key.
func (p *person) use(k programKey, more ...string) (int, map[string]any) {
	p.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return p.token(form, "Authorization", basic(k.id, k.secret))
}

// refuses fails the test unless a key gets an error.
func (p *person) refuses(k programKey, status int, code string, more ...string) {
	p.t.Helper()
	got, out := p.use(k, more...)
	if got != status || out["error"] != code || out["access_token"] != nil {
		p.t.Errorf("got %d %v, want %d %s", got, out, status, code)
	}
}

func claims(t *testing.T, token any) (out map[string]any) {
	t.Helper()
	part := strings.Split(token.(string), ".")[1]
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil || json.Unmarshal(raw, &out) != nil {
		t.Fatalf("%v in %v", err, token)
	}
	return out
}

func TestProgramKeys(t *testing.T) {
	r := newRig(t)
	p := r.alice()
	pg := p.post("/account/keys", p.keyForm("scope", "mcp notes:write"))
	k := p.madeKey(pg)
	t.Run("PE-17 the secret is shown once, on an answer that nothing keeps", func(t *testing.T) {
		if got := pg.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control: got %q, want no-store", got)
		}
		for _, path := range []string{"/account", "/account/keys"} {
			if strings.Contains(p.get(path).body, k.secret) {
				t.Errorf("%s shows the secret", path)
			}
		}
		if strings.Contains(r.log.String(), k.secret) {
			t.Error("the log has the secret")
		}
		want := "curl -u '" + k.id + ":" + k.secret + "' -d grant_type=client_credentials '" + r.as.Issuer + "/token'"
		if got := html.UnescapeString(k.command); got != want {
			t.Errorf("got the command %q, want %q", got, want)
		}
	})
	t.Run("PE-17 its tokens say both who and which program, and there is no refresh token", func(t *testing.T) {
		status, out := p.use(k)
		if status != http.StatusOK || out["refresh_token"] != nil || out["scope"] != "mcp notes:write" {
			t.Fatalf("got %d %v", status, out)
		}
		c := claims(t, out["access_token"])
		alice, err := r.store.UserByName(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		if c["sub"] != alice.ID || c["client_id"] != k.id || c["act"] != nil || c["auth_time"] != nil {
			t.Errorf("got %v", c)
		}
		if got := r.introspected(p, out["access_token"]); got["active"] != true || got["sub"] != alice.ID {
			t.Errorf("introspection: got %v", got)
		}
	})
	t.Run("PE-17 it is listed apart from the apps, with its end and its last use", func(t *testing.T) {
		body := p.get("/account").body
		_, section, ok := strings.Cut(body, `id="keys"`)
		section, _, _ = strings.Cut(section, "</section>")
		if !ok || len(rows(grantRow, page{body: body})) != 1 {
			t.Fatalf("no section, or not one grant: %.4000s", body)
		}
		for _, want := range []string{
			"Nightly report", k.id, `data-grant="grt_`, "127.0.0.0/24", `value="disconnect"`,
		} {
			if !strings.Contains(section, want) {
				t.Errorf("no %q in %s", want, section)
			}
		}
	})
	t.Run("PE-17 its person is told, and the log knows", func(t *testing.T) {
		p.get("/account/notices").has(t, http.StatusOK, "Nightly report")
		for _, want := range []string{"programkey.made", "key-made", k.id} {
			if !strings.Contains(r.log.String(), want) {
				t.Errorf("no %s in the log", want)
			}
		}
	})
	t.Run("the other ways to authenticate as it", func(t *testing.T) {
		form := url.Values{"grant_type": {"client_credentials"}, "client_id": {k.id}, "client_secret": {k.secret}}
		if status, out := p.token(form); status != http.StatusOK {
			t.Errorf("client_secret_post: got %d %v", status, out)
		}
		p.refuses(programKey{id: k.id, secret: k.secret + "x"}, http.StatusUnauthorized, "invalid_client")
		p.refuses(programKey{id: k.id}, http.StatusUnauthorized, "invalid_client")
	})
}

// PE-17: a key cannot get more scopes, neither when it is created nor later.
func TestProgramKeyIsNotWidened(t *testing.T) {
	r := newRig(t)
	p := r.alice()
	k := p.makeKey()
	t.Run("PE-17 to a scope that it has not", func(t *testing.T) {
		p.refuses(k, http.StatusBadRequest, "invalid_scope", "scope", "notes:write")
		if status, out := p.use(k, "scope", "mcp notes:write"); status != 200 || out["scope"] != "mcp" {
			t.Errorf("got %d %v, want those of them that it has", status, out)
		}
	})
	t.Run("PE-17 to another resource", func(t *testing.T) {
		other := storage.Resource{URI: "https://other.example.com/mcp", Name: "Other"}
		if err := r.store.AddResource(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		r.advance(3 * time.Second)
		p.refuses(k, http.StatusBadRequest, "invalid_target", "resource", other.URI)
		p.refuses(k, http.StatusBadRequest, "invalid_target", "resource", "https://unknown.example.com/mcp")
		if err := r.store.RemoveResource(t.Context(), other.URI, r.now()); err != nil {
			t.Fatal(err)
		}
		r.advance(3 * time.Second)
	})
	t.Run("PE-17 to another grant type", func(t *testing.T) {
		auth := basic(k.id, k.secret)
		for _, form := range []url.Values{
			{"grant_type": {"refresh_token"}, "refresh_token": {"mcprt_x"}}, codeForm("x"),
		} {
			form.Del("client_id")
			status, out := p.token(form, "Authorization", auth)
			code := out["error"]
			if status != http.StatusBadRequest || code != "unauthorized_client" && code != "invalid_grant" {
				t.Errorf("got %d %v", status, out)
			}
		}
		if pg := p.get("/authorize?" + authorizeQuery("client_id", k.id).Encode()); pg.status != http.StatusBadRequest {
			t.Errorf("authorize: got %d", pg.status)
		}
	})
	t.Run("PE-17 by the form", func(t *testing.T) {
		p.post("/account/keys", p.keyForm("scope", "mcp admin")).has(t, http.StatusForbidden, "Nothing was made")
		for _, days := range []string{"", "0", "-1", "91", "36500", "x"} {
			p.post("/account/keys", p.keyForm("days", days)).has(t, http.StatusBadRequest, "how long the key")
		}
		if got := len(rows(grantRow, p.get("/account"))); got != 1 {
			t.Errorf("got %d keys, want 1", got)
		}
	})
	t.Run("PE-17 by a narrowed one", func(t *testing.T) {
		wide := p.makeKey("scope", "mcp notes:write")
		id := rows(grantRow, p.get("/account"))[0]
		p.account("connections", "grant", id, "act", "narrow", "scope", "mcp").has(t, 200, "keeps only the")
		p.refuses(wide, http.StatusBadRequest, "invalid_scope", "scope", "notes:write")
		if status, out := p.use(wide); status != 200 || out["scope"] != "mcp" {
			t.Errorf("got %d %v", status, out)
		}
		p.account("connections", "grant", id, "act", "narrow").has(t, 200, "keeps only the")
		if status, out := p.use(wide); status != 200 || out["scope"] != "mcp" {
			t.Errorf("RU-17 without a ticked box: got %d %v", status, out)
		}
	})
}

// PE-17: the end of a key ends its tokens.
func TestProgramKeyEnds(t *testing.T) {
	ended := func(t *testing.T, r *rig, p *person, k programKey, token any) {
		t.Helper()
		p.refuses(k, http.StatusUnauthorized, "invalid_client")
		if got := r.introspected(p, token); got["active"] != false {
			t.Errorf("introspection: got %v", got)
		}
	}
	begin := func(t *testing.T) (*rig, *person, programKey, any) {
		t.Helper()
		r := newRig(t)
		p := r.alice()
		k := p.makeKey()
		status, out := p.use(k)
		if status != http.StatusOK {
			t.Fatalf("got %d %v", status, out)
		}
		return r, p, k, out["access_token"]
	}
	t.Run("PE-17 its expiry, which no token outlives", func(t *testing.T) {
		r, p, k, _ := begin(t)
		r.advance(7*24*time.Hour - 3*time.Minute)
		status, out := p.use(k)
		if status != http.StatusOK {
			t.Fatalf("got %d %v", status, out)
		}
		if left := out["expires_in"].(float64); left > 180 {
			t.Errorf("the token lives %v seconds, the key 180", left)
		}
		r.advance(3 * time.Minute)
		ended(t, r, p, k, out["access_token"])
	})
	t.Run("PE-17 a disconnection, and its client goes with it", func(t *testing.T) {
		r, p, k, token := begin(t)
		p.account("connections", "grant", rows(grantRow, p.get("/account"))[0], "act", "disconnect")
		ended(t, r, p, k, token)
		if got := rows(grantRow, p.get("/account")); len(got) > 0 {
			t.Errorf("got %v", got)
		}
		r.advance(25 * time.Hour)
		if _, err := r.store.Sweep(t.Context(), storage.Retention{Now: r.now()}, 100); err != nil {
			t.Fatal(err)
		}
		p.refuses(k, http.StatusUnauthorized, "invalid_client")
	})
	t.Run("PE-17 the end of the account", func(t *testing.T) {
		r, p, k, token := begin(t)
		alice, err := r.store.UserByName(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.store.SetUserDisabled(t.Context(), alice.ID, true, r.now()); err != nil {
			t.Fatal(err)
		}
		ended(t, r, p, k, token)
		if err := r.store.SetUserDisabled(t.Context(), alice.ID, false, r.now()); err != nil {
			t.Fatal(err)
		}
		ended(t, r, p, k, token)
	})
	t.Run("PE-17 everything stops", func(t *testing.T) {
		r, p, k, token := begin(t)
		pg := p.account("stop", "act", "stop-all")
		p.post("/account/stop", url.Values{"step": {formStep(t, pg, "/account/stop")}, "act": {"stop-all"}})
		ended(t, r, p, k, token)
	})
	t.Run("PE-17 the program itself, by revocation", func(t *testing.T) {
		r, p, k, token := begin(t)
		p.post("/revoke", url.Values{"token": {token.(string)}}, "Authorization", basic(k.id, k.secret))
		ended(t, r, p, k, token)
	})
	t.Run("PE-17 a pause lets it wait, and gives it nothing", func(t *testing.T) {
		r, p, k, token := begin(t)
		id := rows(grantRow, p.get("/account"))[0]
		p.account("connections", "grant", id, "act", "pause")
		p.refuses(k, http.StatusServiceUnavailable, "temporarily_unavailable")
		if got := r.introspected(p, token); got["active"] != false {
			t.Errorf("introspection: got %v", got)
		}
		p.account("connections", "grant", id, "act", "resume")
		if status, out := p.use(k); status != http.StatusOK {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("PE-17 the operator's switch", func(t *testing.T) {
		r, p, k, _ := begin(t)
		r.restart(func(c *Config) { c.ProgramKeys.Off = true })
		p.refuses(k, http.StatusBadRequest, "unauthorized_client")
		if pg := p.get("/account/keys"); pg.status == http.StatusOK {
			t.Error("there is a form")
		}
		if strings.Contains(p.get("/account").body, `href="/account/keys"`) {
			t.Error("the page offers it")
		}
		if len(rows(grantRow, p.get("/account"))) != 1 {
			t.Error("the key cannot be ended")
		}
	})
}

func TestProgramKeyForm(t *testing.T) {
	r := newRig(t)
	p := r.alice()
	t.Run("PE-17 a double click makes one key, and shows it both times", func(t *testing.T) {
		form := p.keyForm()
		first, second := p.madeKey(p.post("/account/keys", form)), p.madeKey(p.post("/account/keys", form))
		if first != second {
			t.Errorf("got %v, then %v", first, second)
		}
		if got := len(rows(grantRow, p.get("/account"))); got != 1 {
			t.Errorf("got %d keys, want 1", got)
		}
		form.Set("name", "Another")
		p.post("/account/keys", form).has(t, http.StatusConflict, "another key already")
		if n := strings.Count(r.log.String(), `"event":"programkey.made"`); n != 1 {
			t.Errorf("the log has %d keys, want 1", n)
		}
	})
	t.Run("PE-17 a name with what cannot be seen is refused", func(t *testing.T) {
		for _, name := range []string{
			"", "  ", "a\x00b", "a\nb", "a\u202eb", "a\u200bb", strings.Repeat("x", 65), "\xff", "\u3164", "\u115f",
		} {
			form := p.keyForm()
			form.Set("name", name)
			p.post("/account/keys", form).has(t, http.StatusBadRequest, "all of them visible")
		}
		form := p.keyForm()
		form.Set("name", "夜間　レポート é")
		p.madeKey(p.post("/account/keys", form))
	})
	t.Run("PE-17 there is room for no more than the bound", func(t *testing.T) {
		r.advance(4 * time.Minute) // changes are limited
		for range storage.MaxProgramKeys - 2 {
			p.makeKey()
		}
		p.post("/account/keys", p.keyForm()).has(t, http.StatusConflict, "End one of them first")
		if got := p.keys(); len(got) != storage.MaxProgramKeys {
			t.Errorf("got %d keys", len(got))
		}
	})
	t.Run("PE-17 PE-04 a stolen session without a proof makes none", func(t *testing.T) {
		form := p.keyForm()
		before := p.keys()
		p.account("connections", "grant", before[0], "act", "disconnect")
		r.advance(6 * time.Minute)
		for _, pg := range []page{p.get("/account/keys"), p.post("/account/keys", form)} {
			if pg.status != http.StatusSeeOther || !strings.Contains(pg.header.Get("Location"), "/prove") {
				t.Errorf("got %d to %q, want the way to a proof", pg.status, pg.header.Get("Location"))
			}
		}
		if got := p.keys(); !slices.Equal(got, before[1:]) {
			t.Errorf("got %v, want %v", got, before[1:])
		}
	})
	t.Run("PE-17 a form of another browser is of no use", func(t *testing.T) {
		thief, owner := r.alice(), r.alice()
		form := owner.keyForm()
		if pg := thief.post("/account/keys", form); pg.status == http.StatusOK || shown(pg, "client_secret") != "" {
			t.Errorf("got %d", pg.status)
		}
	})
}
