package authserver

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	grantRow   = regexp.MustCompile(`data-grant="(grt_[^"]+)"`)
	sessionRow = regexp.MustCompile(`data-session="(ses_[^"]+)"`)
)

func rows(pattern *regexp.Regexp, pg page) (ids []string) {
	for _, m := range pattern.FindAllStringSubmatch(pg.body, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// formStep returns the sealed state of the forms that a page posts to an address.
func formStep(t *testing.T, pg page, action string) string {
	t.Helper()
	form := regexp.MustCompile(`(?s)action="` + action + `"[^>]*>.*?name="step" value="([^"]+)"`)
	m := form.FindStringSubmatch(pg.body)
	if m == nil {
		t.Fatalf("no form for %s (%d): %.2000s", action, pg.status, pg.body)
	}
	return m[1]
}

// account posts a form of the account page and returns the page that follows.
func (p *person) account(section string, form ...string) page {
	p.t.Helper()
	action := "/account/" + section
	pg := p.get("/account")
	if section == "connections" { // a page has forms only for its rows
		pg = page{pg.status, pg.header, strings.ReplaceAll(pg.body, "/account/sign-ins", action)}
	}
	values := url.Values{"step": {formStep(p.t, pg, action)}}
	for i := 0; i+1 < len(form); i += 2 {
		values.Add(form[i], form[i+1])
	}
	pg = p.post(action, values)
	if pg.status == http.StatusSeeOther {
		return p.get(pg.header.Get("Location"))
	}
	return pg
}

// introspected returns the introspection of a token.
func (r *rig) introspected(p *person, token any) map[string]any {
	r.t.Helper()
	answer, err := r.Introspect(r.t.Context(), token.(string))
	if err != nil {
		r.t.Fatal(err)
	}
	raw, _ := json.Marshal(answer)
	var out map[string]any
	_ = json.Unmarshal(raw, &out)
	return out
}

func TestAccountPage(t *testing.T) {
	r := newRig(t)
	p := r.person()
	if pg := p.get("/account"); pg.status != http.StatusSeeOther || pg.header.Get("Location") != "/login" {
		t.Fatalf("a stranger: got %d to %q, want the sign-in page", pg.status, pg.header.Get("Location"))
	}
	p.signIn()
	pg := p.get("/account", "User-Agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0")
	t.Run("PE-09 it shows client, server, scopes in words, who gave it, when and from where", func(t *testing.T) {
		for _, want := range []string{
			`data-grant="grt_`, `name="act" value="disconnect"`, `value="pause"`,
			`data-session="ses_`,
			`value="stop-all"`, "127.0.0.0/24", "Go-http-client", "this browser", "alice",
		} {
			if !strings.Contains(pg.body, want) {
				t.Errorf("no %s in %s", want, pg.body)
			}
		}
		if strings.Contains(pg.body, `value="narrow"`) {
			t.Error("RU-17 what every call needs can be taken away")
		}
		p.wantTokens(p.approve(authorizeQuery("scope", "mcp notes:write")).Get("code"))
		if body := p.get("/account").body; !strings.Contains(body, `value="narrow"`) ||
			!strings.Contains(body, `name="scope" value="notes:write"`) ||
			strings.Contains(body, `name="scope" value="mcp"`) {
			t.Errorf("RU-17 the rest can not, or what every call needs can: %s", body)
		}
	})
	t.Run("PE-12 it needs no script and is small", func(t *testing.T) {
		scripts := regexp.MustCompile(`<script[^>]*>`).FindAllString(pg.body, -1)
		if len(scripts) != 1 || !strings.Contains(scripts[0], "/assets/fresh.") || len(pg.body) > 20_000 {
			t.Errorf("%d bytes, and scripts %q: fresh.js only loads the page again", len(pg.body), scripts)
		}
	})
	t.Run("the start page leads to it", func(t *testing.T) {
		if !strings.Contains(p.get("/").body, `href="/account"`) {
			t.Error("no link")
		}
	})
}

// PE-09: a connected application shows the provider account that its access depends on; after a
// sign-in with a password it shows none.
func TestAccountUsed(t *testing.T) {
	r, f := delegated(t)
	const used = `Account used</dt><dd><bdi>Google</bdi> <span class="address"><bdi>ada@example.com</bdi></span></dd>`
	p := r.person()
	p.signInAt("google")
	p.get("/account").has(t, http.StatusOK, used)
	f.set(func(f *providers) { f.person = "bob" })
	other := r.person()
	other.signInAt("google")
	if pg := other.get("/account"); strings.Contains(pg.body, used) || !strings.Contains(pg.body, "bob@example.com") {
		t.Errorf("another person: got %.3000s", pg.body)
	}
	alice := r.person()
	alice.signIn()
	if pg := alice.get("/account"); !grantRow.MatchString(pg.body) || strings.Contains(pg.body, "Account used") {
		t.Errorf("a password: got %.3000s", pg.body)
	}
}

func TestAccountDisconnects(t *testing.T) {
	r := newRig(t)
	p := r.person()
	first := p.signIn()
	r.nice()
	asNice := []string{"client_id", "nice", "redirect_uri", ""}
	status, second := p.token(codeForm(p.approve(niceQuery()).Get("code"), asNice...))
	if status != http.StatusOK {
		t.Fatalf("got %d %v", status, second)
	}
	ids := rows(grantRow, p.get("/account"))
	if len(ids) != 2 || !slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Fatalf("got %v, want two, the newest first", ids)
	}
	t.Run("PE-09 disconnect ends grant, refresh and access tokens, of one application", func(t *testing.T) {
		pg := p.account("connections", "grant", ids[1], "act", "disconnect")
		if pg.status != http.StatusOK || !strings.Contains(pg.body, "is disconnected") ||
			!slices.Equal(rows(grantRow, pg), ids[:1]) {
			t.Errorf("got %d %v", pg.status, rows(grantRow, pg))
		}
		status, out := p.token(refreshForm(first["refresh_token"]))
		if status != 400 || out["error"] != "invalid_grant" {
			t.Errorf("refresh: got %d %v", status, out)
		}
		if got := r.introspected(p, first["access_token"]); got["active"] != false {
			t.Errorf("introspection: got %v", got)
		}
		if status, _ := p.token(refreshForm(second["refresh_token"], asNice[:2]...)); status != 200 {
			t.Errorf("the other one: got %d", status)
		}
		if log := r.log.String(); !strings.Contains(log, `"event":"grant.revoked"`) ||
			!strings.Contains(log, `"revoked_by":"the person"`) {
			t.Error("no audit event")
		}
	})
	t.Run("PE-09 two tabs: the old form says kindly that it is over", func(t *testing.T) {
		pg := p.account("connections", "grant", ids[1], "act", "disconnect")
		if pg.status != http.StatusOK || !strings.Contains(pg.body, "had ended already") {
			t.Errorf("got %d: %s", pg.status, pg.body)
		}
	})
	t.Run("PE-08 another person's grant and session answer as unknown ones", func(t *testing.T) {
		if _, err := r.Users().Create(t.Context(), "bob", "another horse battery", false); err != nil {
			t.Fatal(err)
		}
		bob := r.person()
		bob.post("/login", url.Values{
			"step": {bob.get("/login").step(t)}, "username": {"bob"}, "password": {"another horse battery"},
		})
		hers := rows(sessionRow, p.get("/account"))[0]
		clean := func(pg page) string { return regexp.MustCompile(`value="[^"]*"`).ReplaceAllString(pg.body, "") }
		for _, act := range []string{"disconnect", "pause", "resume", "narrow"} {
			foreign := bob.account("connections", "grant", ids[0], "act", act)
			unknown := bob.account("connections", "grant", "grt_none", "act", act)
			if foreign.status != unknown.status || clean(foreign) != clean(unknown) {
				t.Errorf("%s: the answers differ", act)
			}
		}
		foreign := bob.account("sign-ins", "session", hers, "act", "end")
		unknown := bob.account("sign-ins", "session", "ses_none", "act", "end")
		if foreign.status != unknown.status || clean(foreign) != clean(unknown) {
			t.Error("sessions: the answers differ")
		}
		if got := rows(grantRow, p.get("/account")); !slices.Equal(got, ids[:1]) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-47 a form of another site, or of another browser, is refused", func(t *testing.T) {
		form := url.Values{
			"step": {formStep(t, p.get("/account"), "/account/connections")}, "grant": {ids[0]}, "act": {"disconnect"},
		}
		if pg := p.post("/account/connections", form, "Sec-Fetch-Site", "cross-site"); pg.status != 403 {
			t.Errorf("another site: got %d", pg.status)
		}
		other := r.person()
		other.login(authorizeQuery())
		if pg := other.post("/account/connections", form); pg.status != 400 {
			t.Errorf("another browser: got %d", pg.status)
		}
		if got := rows(grantRow, p.get("/account")); !slices.Contains(got, ids[0]) {
			t.Error("it was carried out")
		}
	})
}

func TestAccountNarrows(t *testing.T) {
	r := newRig(t)
	p := r.person()
	query := authorizeQuery("scope", "mcp notes:write")
	asked := p.login(query)
	granted := responseOf(t, p.post("/consent", url.Values{
		"step": {consentStep(t, asked)}, "decision": {"approve"}, "preset": {"choose"}, "scope": {"mcp", "notes:write"},
	}))
	_, out := p.token(codeForm(granted.Get("code")))
	if out["scope"] != "mcp notes:write" {
		t.Fatalf("got %v", out)
	}
	id := rows(grantRow, p.get("/account"))[0]
	t.Run("PE-10 narrowed without a new sign-in: refresh and introspection say so", func(t *testing.T) {
		pg := p.account("connections", "grant", id, "act", "narrow", "scope", "mcp")
		if pg.status != http.StatusOK || !strings.Contains(pg.body, "that you left") {
			t.Fatalf("got %d: %s", pg.status, pg.body)
		}
		if got := r.introspected(p, out["access_token"]); got["active"] != true || got["scope"] != "mcp" {
			t.Errorf("the token that is out: got %v", got)
		}
		// Like many clients, this one requests its original scopes.
		status, next := p.token(refreshForm(out["refresh_token"], "scope", "mcp notes:write"))
		if status != 200 || next["scope"] != "mcp" {
			t.Errorf("refresh: got %d %v", status, next)
		}
		out = next
	})
	t.Run("PE-10 wider is refused", func(t *testing.T) {
		pg := p.account("connections", "grant", id, "act", "narrow", "scope", "mcp", "scope", "notes:write")
		if !strings.Contains(pg.body, "cannot be given more") {
			t.Errorf("got %d: %s", pg.status, pg.body)
		}
		if got := r.introspected(p, out["access_token"]); got["scope"] != "mcp" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("PE-10 what was taken away is asked for again", func(t *testing.T) {
		if pg := p.get("/authorize?" + query.Encode()); pg.status != http.StatusOK ||
			!strings.Contains(pg.body, `name="decision"`) {
			t.Errorf("got %d", pg.status)
		}
	})
}

func TestAccountPauses(t *testing.T) {
	r := newRig(t)
	p := r.person()
	out := p.signIn()
	id := rows(grantRow, p.get("/account"))[0]
	if pg := p.account("connections", "grant", id, "act", "pause"); !strings.Contains(pg.body, `value="resume"`) {
		t.Fatalf("got %d: %s", pg.status, pg.body)
	}
	t.Run("PE-09 paused: inactive, and a refresh is put off and spends nothing", func(t *testing.T) {
		if got := r.introspected(p, out["access_token"]); got["active"] != false {
			t.Errorf("got %v", got)
		}
		for range 2 {
			pg := p.post("/token", refreshForm(out["refresh_token"]))
			if pg.status != http.StatusServiceUnavailable || !strings.Contains(pg.body, "temporarily_unavailable") ||
				pg.header.Get("Retry-After") == "" {
				t.Errorf("got %d %s", pg.status, pg.body)
			}
		}
		if strings.Contains(r.log.String(), `"level":"ERROR"`) {
			t.Error("a program that asks again while it is paused fills the log with errors")
		}
	})
	t.Run("PE-09 resumed: everything is as before", func(t *testing.T) {
		p.account("connections", "grant", id, "act", "resume")
		if got := r.introspected(p, out["access_token"]); got["active"] != true {
			t.Errorf("got %v", got)
		}
		if status, next := p.token(refreshForm(out["refresh_token"])); status != 200 {
			t.Errorf("got %d %v", status, next)
		}
	})
}

func TestAccountSignIns(t *testing.T) {
	r := newRig(t)
	p, other, third := r.person(), r.person(), r.person()
	for _, b := range []*person{p, other, third} {
		b.login(authorizeQuery())
	}
	signedIn := func(b *person) bool { return b.get("/account").status == http.StatusOK }
	mine := regexp.MustCompile(`data-session="(ses_[^"]+)">\s*<h3[^>]*>[^\n]*this browser`)
	here := mine.FindStringSubmatch(p.get("/account").body)[1]
	t.Run("PE-09 one sign-in is ended, and the others stay", func(t *testing.T) {
		theirs := mine.FindStringSubmatch(other.get("/account").body)[1]
		pg := p.account("sign-ins", "session", theirs, "act", "end")
		if !strings.Contains(pg.body, "has ended") || signedIn(other) || !signedIn(p) || !signedIn(third) {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("PE-09 all others are ended", func(t *testing.T) {
		pg := p.account("sign-ins", "act", "end-others")
		if !slices.Equal(rows(sessionRow, pg), []string{here}) || signedIn(third) {
			t.Errorf("got %v", rows(sessionRow, pg))
		}
	})
	t.Run("PE-09 one's own is ended", func(t *testing.T) {
		p.account("sign-ins", "session", here, "act", "end")
		if signedIn(p) {
			t.Error("still signed in")
		}
	})
}

func TestStopEverything(t *testing.T) {
	r := newRig(t)
	p, other := r.person(), r.person()
	out := p.signIn()
	other.login(authorizeQuery())
	asked := p.account("stop", "act", "stop-all")
	t.Run("PE-10 it asks once", func(t *testing.T) {
		if asked.status != http.StatusOK || p.get("/account").status != http.StatusOK {
			t.Errorf("got %d", asked.status)
		}
	})
	t.Run("PE-10 and ends all sessions and grants in one act", func(t *testing.T) {
		pg := p.post("/account/stop", url.Values{
			"step": {formStep(t, asked, "/account/stop")}, "act": {"stop-all"},
		})
		if pg.status != http.StatusOK || p.get("/account").status == http.StatusOK ||
			other.get("/account").status == http.StatusOK {
			t.Errorf("got %d", pg.status)
		}
		if got := r.introspected(p, out["access_token"]); got["active"] != false {
			t.Errorf("introspection: got %v", got)
		}
		if status, got := p.token(refreshForm(out["refresh_token"])); status != 400 || got["error"] != "invalid_grant" {
			t.Errorf("refresh: got %d %v", status, got)
		}
		if !strings.Contains(r.log.String(), `"event":"account.stopped"`) {
			t.Error("no audit event")
		}
	})
}

// EN-02: a paused application cannot return without a page: not silently, and not with a code that
// it has kept. When resumed, it continues with its tokens.
func TestPausedApplicationsAsk(t *testing.T) {
	r := newRig(t)
	p := r.person()
	first := p.signIn()
	kept := p.approve(authorizeQuery()).Get("code")
	id := rows(grantRow, p.get("/account"))[0]
	p.account("connections", "grant", id, "act", "pause").has(t, http.StatusOK, "paused")
	if status, out := p.token(codeForm(kept)); status != 400 || out["error"] != "invalid_grant" {
		t.Errorf("an earlier code: got %d %v", status, out)
	}
	if pg := p.get("/authorize?" + authorizeQuery().Encode()); pg.status != http.StatusOK ||
		!strings.Contains(pg.body, "You have paused this application") || strings.Contains(pg.body, `value="approve"`) {
		t.Errorf("a request: got %d, want the page with the reason", pg.status)
	}
	if pg := p.get("/authorize?" + authorizeQuery("prompt", "none").Encode()); pg.status == http.StatusSeeOther &&
		strings.Contains(pg.header.Get("Location"), "code=") {
		t.Errorf("a silent request: got %s", pg.header.Get("Location"))
	}
	p.account("connections", "grant", id, "act", "resume").has(t, http.StatusOK, "")
	if status, out := p.token(refreshForm(first["refresh_token"])); status != http.StatusOK {
		t.Errorf("resumed: got %d %v", status, out)
	}
}

// EN-02: an application has one row, however often it has connected. Actions on the row apply to
// all its connections.
func TestAccountShowsAnApplicationOnce(t *testing.T) {
	r := newRig(t)
	p := r.person()
	var tokens []map[string]any
	for range 7 {
		tokens = append(tokens, p.signIn())
	}
	pg := p.get("/account")
	ids := rows(grantRow, pg)
	if len(ids) != 1 {
		t.Fatalf("got %v, want one row", ids)
	}
	p.account("connections", "grant", ids[0], "act", "disconnect").has(t, http.StatusOK, "is disconnected")
	if got := rows(grantRow, p.get("/account")); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	for i, token := range tokens {
		if status, out := p.token(refreshForm(token["refresh_token"])); status != http.StatusBadRequest {
			t.Errorf("connection %d: got %d %v", i, status, out)
		}
	}
}
