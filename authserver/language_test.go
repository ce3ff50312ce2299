package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// spoke returns the language that a page declares.
func spoke(pg page) string {
	_, after, _ := strings.Cut(pg.body, `<html lang="`)
	tag, _, _ := strings.Cut(after, `"`)
	return tag + "/" + pg.header.Get("Content-Language")
}

// PE-13, OpenID Connect Core §3.1.2.1: pages are in the language that the application requests,
// through the whole flow; otherwise in a language of the browser; otherwise in English.
func TestPagesAreInTheLanguageAskedFor(t *testing.T) {
	r := newRig(t)
	const accept = "Accept-Language"
	t.Run("PE-13: Accept-Language, else English", func(t *testing.T) {
		for header, want := range map[string]string{"": "en/en", "fr-CH, de;q=0.5": "fr/fr", "sv": "en/en"} {
			pg := r.person().get("/authorize?"+authorizeQuery().Encode(), accept, header)
			if spoke(pg) != want || pg.header.Get("Vary") != accept {
				t.Errorf("%q: got %s, %v, want %s", header, spoke(pg), pg.header, want)
			}
		}
	})
	t.Run("PE-13: ui_locales, on every page of the flow", func(t *testing.T) {
		p := r.person()
		query := authorizeQuery("ui_locales", "xx de-AT fr")
		form := url.Values{
			"step":     {p.get("/authorize?"+query.Encode(), accept, "ja").step(t)},
			"username": {"alice"}, "password": {"wrong"},
		}
		wrong := p.post("/login", form, accept, "ja")
		form.Set("step", wrong.step(t))
		form.Set("password", "correct horse battery")
		asked := p.post("/login", form, accept, "ja")
		for asked.status/100 == 3 {
			asked = p.get(asked.header.Get("Location"), accept, "ja")
		}
		stale := p.post("/consent", url.Values{"step": {"x"}}, accept, "ja")
		for name, pg := range map[string]page{"login": wrong, "consent": asked, "error": stale} {
			if spoke(pg) != "de/de" {
				t.Errorf("%s: got %s (%d)", name, spoke(pg), pg.status)
			}
		}
		if pg := p.get("/authorize?"+authorizeQuery("prompt", "login").Encode(), accept, "ja"); spoke(pg) != "ja/ja" {
			t.Errorf("the next request, which asks for none: %s", spoke(pg))
		}
		if pg := p.post("/consent", url.Values{"step": {"x"}}, accept, "ja"); spoke(pg) != "ja/ja" {
			t.Errorf("the rest: %s", spoke(pg))
		}
	})
	t.Run("PE-13: a hostile ui_locales is passed over", func(t *testing.T) {
		for _, evil := range []string{"\r\nSet-Cookie: x=y", "\"><script>", strings.Repeat("a ", 1000), "\xff"} {
			pg := r.person().get("/authorize?"+authorizeQuery("ui_locales", evil).Encode(), accept, "es")
			if spoke(pg) != "es/es" || len(pg.header.Values("Set-Cookie")) != 1 {
				t.Errorf("%.20q: got %s, %v", evil, spoke(pg), pg.header)
			}
		}
	})
	t.Run("PE-13: the person's own choice comes first, and leads back to the page", func(t *testing.T) {
		p := r.person()
		from := "/authorize?" + authorizeQuery("ui_locales", "de").Encode()
		pg := p.get(from, accept, "ja")
		if !strings.Contains(pg.body, `<form method="post" action="/language">`) {
			t.Fatalf("the page offers no languages:\n%s", pg.body)
		}
		chosen := p.post("/language", url.Values{"language": {"fr"}, "back": {from}})
		if chosen.status != http.StatusSeeOther || chosen.header.Get("Location") != from {
			t.Fatalf("got %d, %s", chosen.status, chosen.header)
		}
		if got := spoke(p.get(from, accept, "ja")); got != "fr/fr" {
			t.Errorf("the page then: %s", got)
		}
	})
	t.Run("PE-13: a choice of languages leads to our pages alone, and no other site makes it", func(t *testing.T) {
		p := r.person()
		for _, back := range []string{
			"https://evil.example", "//evil.example/x", "/\\evil.example", "/\\/evil.example", "\\\\evil.example",
			"evil",
			"javascript:alert(1)", "/%2f/evil.example", "/../x", "", "/\t/evil.example\r\nX: y", "https:/x", "///evil",
		} {
			pg := p.post("/language", url.Values{"language": {"fr"}, "back": {back}})
			if got := pg.header.Get("Location"); pg.status != http.StatusSeeOther || got != "/" {
				t.Errorf("%q: got %d, %q", back, pg.status, got)
			}
		}
		q := r.person()
		pg := q.post("/language", url.Values{"language": {"fr"}}, "Sec-Fetch-Site", "cross-site")
		if pg.status != http.StatusForbidden || spoke(q.get("/", accept, "ja")) != "ja/ja" {
			t.Errorf("another site chose: %d, %s", pg.status, spoke(q.get("/", accept, "ja")))
		}
		q.post("/language", url.Values{"language": {"xx\r\nSet-Cookie: a=b"}})
		if got := spoke(q.get("/", accept, "ja")); got != "ja/ja" {
			t.Errorf("not a supported language: %s", got)
		}
	})
	t.Run("PE-13: the metadata name the languages", func(t *testing.T) {
		pg := r.person().get("/.well-known/oauth-authorization-server")
		want := `"ui_locales_supported":["en","de","es","fr","ja","pt","zh"]`
		if pg.status != http.StatusOK || !strings.Contains(pg.body, want) {
			t.Errorf("got %d: %s", pg.status, pg.body)
		}
	})
}

// locale returns the language that a user has chosen.
func (r *rig) locale(name string) string {
	r.t.Helper()
	u, err := r.store.UserByName(r.t.Context(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	return u.Locale
}

// choose chooses a language at the foot of the account page.
func (p *person) choose(tag string) {
	p.t.Helper()
	p.post("/language", url.Values{"language": {tag}, "back": {"/account"}}).leads(p.t, "/account")
}

// PE-13: a user's choice is stored in their account and follows them to another browser. A choice
// before the sign-in is also stored.
func TestLanguageIsKeptAtTheAccount(t *testing.T) {
	r := newRig(t)
	locale := func() string { return r.locale("alice") }
	choose := (*person).choose
	stranger := r.person()
	choose(stranger, "fr")
	if got := locale(); got != "" {
		t.Fatalf("PE-13: a stranger changed it to %q", got)
	}
	if stranger.enter(); locale() != "fr" {
		t.Errorf("PE-13: the choice before the sign-in: got %q, want fr", locale())
	}
	pg := stranger.get("/account", "Accept-Language", "ja")
	if pg.header.Get("Content-Language") != "fr" ||
		!strings.Contains(pg.body, `<option value="fr" lang="fr" selected>`) {
		t.Errorf("PE-13: got %s", pg.header.Get("Content-Language"))
	}
	choose(stranger, "de")
	for _, tag := range []string{"no language!", "tlh", "de, en", "de-x-none", ""} { // Klingon is nearest to English
		choose(stranger, tag)
		got := stranger.get("/account", "Accept-Language", "ja").header.Get("Content-Language")
		if locale() != "de" || got != "de" {
			t.Errorf("PE-13: %q must not be a choice: got %q, and pages in %s, want de", tag, locale(), got)
		}
	}
	other := r.person()
	if got := other.get("/login", "Accept-Language", "es").header.Get("Content-Language"); got != "es" {
		t.Errorf("PE-13: before the sign-in: got %s, want es", got)
	}
	other.enter()
	if got := other.get("/account", "Accept-Language", "es").header.Get("Content-Language"); got != "de" {
		t.Errorf("PE-13: another browser: got %s, want de", got)
	}
}

// PE-13: a user without a language does not get the previous user's language in the same browser,
// on pages or in their account. A choice before the sign-in is theirs.
func TestLanguageOfThePersonBefore(t *testing.T) {
	r := twoPeople(t)
	p := r.person()
	check := func(when, pages, alice, bob string) {
		t.Helper()
		got := p.get("/account", "Accept-Language", "es").header.Get("Content-Language")
		if got != pages || r.locale("alice") != alice || r.locale("bob") != bob {
			t.Errorf("PE-13 %s: pages in %q, alice has %q, bob has %q, want %q, %q and %q",
				when, got, r.locale("alice"), r.locale("bob"), pages, alice, bob)
		}
	}
	again := func() page { return p.get("/authorize?" + authorizeQuery("prompt", "login").Encode()) }
	p.signInAs(p.get("/login"), "alice", alicesPassword)
	p.choose("ja")
	check("the choice of alice", "ja", "ja", "")
	p.signInAs(again(), "bob", bobsPassword)
	check("bob beside alice", "es", "ja", "")
	p.chooses(p.get("/authorize?"+authorizeQuery("prompt", "select_account").Encode()), "alice")
	check("alice is chosen", "ja", "ja", "")
	p.post("/logout", p.get("/").signOutForm(t))
	p.signInAs(again(), "bob", bobsPassword)
	check("bob after alice", "es", "ja", "")
	p.post("/logout", p.get("/").signOutForm(t))
	p.choose("fr")
	p.signInAs(p.get("/login"), "bob", bobsPassword)
	check("bob chose before the sign-in", "fr", "ja", "fr")
}

// PE-04: a session without recent authentication does not set the language of mails that warn about
// it. The pages of its browser use it, and the account gets it after authentication there.
func TestLanguageWithoutAProof(t *testing.T) {
	r := newRig(t)
	alice := r.alice()
	thief := r.stolen(alice)
	thief.choose("ja")
	if got := thief.get("/account").header.Get("Content-Language"); got != "ja" || r.locale("alice") != "" {
		t.Errorf("PE-04 the thief: pages in %q, letters in %q, want ja and none", got, r.locale("alice"))
	}
	alice.choose("de")
	thief.choose("ja")
	if got := r.locale("alice"); got != "de" {
		t.Errorf("PE-04 after a choice of the person: letters in %q, want de", got)
	}
	r.advance(time.Hour)
	alice.choose("fr")
	pages := func() string { return alice.get("/account").header.Get("Content-Language") }
	if got := pages(); got != "fr" || r.locale("alice") != "de" {
		t.Errorf("PE-04 an old proof: pages in %q, letters in %q, want fr and de", got, r.locale("alice"))
	}
	alice.signInAs(alice.get("/authorize?"+authorizeQuery("prompt", "login").Encode()), "alice", alicesPassword)
	if pages() != "fr" || r.locale("alice") != "fr" {
		t.Errorf("PE-13 with a proof: pages in %q, letters in %q, want fr for both", pages(), r.locale("alice"))
	}
}
