package pages

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var contentHash = regexp.MustCompile(`\.[0-9a-f]{12}\.`)

func TestGolden(t *testing.T) {
	p := newPages(t, Config{})
	for _, s := range samples() {
		t.Run("AS-70: the page "+s.name+" reads as agreed", func(t *testing.T) {
			got := contentHash.ReplaceAllString(record(p, s.show).Body.String(), ".HASH.")
			file := "testdata/" + s.name + ".golden.html"
			if *update {
				write(t, file, []byte(got))
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v; make it with: go test ./internal/pages -run TestGolden -update", err)
			}
			if got != string(want) {
				t.Errorf("differs from %s; look at it, then run with -update. Got:\n%s", file, got)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	p := newPages(t, Config{})
	for _, s := range samples() {
		h := record(p, s.show).Header()
		csp := h.Get("Content-Security-Policy")
		t.Run("AS-46 OAuth 2.1 7.10: "+s.name+" refuses framing", func(t *testing.T) {
			if !strings.Contains(csp, "frame-ancestors 'none'") || h.Get("X-Frame-Options") != "DENY" {
				t.Errorf("got %q and %q", csp, h.Get("X-Frame-Options"))
			}
		})
		t.Run("SP-26: "+s.name+" allows our style, and script where a page has one alone", func(t *testing.T) {
			if !strings.HasPrefix(csp, "default-src 'none'; style-src 'self'; ") || strings.Contains(csp, "unsafe") {
				t.Errorf("got %q", csp)
			}
			body := record(p, s.show).Body.String()
			needed := ofPerson(s.name) || strings.HasPrefix(s.name, "setup") &&
				!strings.HasPrefix(s.name, "setupdone") ||
				slices.ContainsFunc([]string{`value="approve"`, " data-passkey=", " data-accepted=", " data-state="},
					func(mark string) bool { return strings.Contains(body, mark) })
			if want := strings.Contains(body, "<script"); want != needed {
				t.Errorf("L11: the page has a script: %v", want)
			} else if strings.Contains(csp, "script-src 'self'") != want {
				t.Errorf("script allowed: %v, want %v", !want, want)
			}
		})
		t.Run(s.name+" is not kept, sniffed or told on", func(t *testing.T) {
			for name, want := range map[string]string{
				"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
				"Content-Type": "text/html; charset=utf-8",
			} {
				if got := h.Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
		})
	}
}

// ofPerson reports whether a page shows data of a signed-in user. The browser must reload such a
// page when it restores it from memory.
func ofPerson(name string) bool {
	return slices.ContainsFunc([]string{
		"account", "home", "helpers", "notices", "stopeverything", "makekey", "newpassword", "addapp", "addpasskey",
	}, func(page string) bool { return name == page || strings.HasPrefix(name, page+"-") }) || answersForm(name)
}

// answersForm reports whether a user's page is the response to a form.
func answersForm(name string) bool {
	return slices.ContainsFunc([]string{"keymade", "recoverycodes", "wayadded", "remotedone"}, func(page string) bool {
		return name == page || strings.HasPrefix(name, page+"-")
	})
}

// Issue 32, A5: a page that answers a form opens another page when a browser restores it from
// memory. Reloading it would send the form again and create another secret.
func TestAnswersAreNotSentAgain(t *testing.T) {
	p := newPages(t, Config{})
	asks := []string{"recoverycodes-ask", "recoverycodes-second"} // pages with a form, loaded with GET
	for _, s := range samples() {
		elsewhere := strings.Contains(record(p, s.show).Body.String(), ` data-to="/`)
		if want := answersForm(s.name) && !slices.Contains(asks, s.name); elsewhere != want {
			t.Errorf("RU-05 %s opens another page: %v, want %v", s.name, elsewhere, want)
		}
	}
}

// An address with a fragment (#decide) moves the keyboard focus to the element with that ID. Tab
// and Enter, pressed before the user has read the page, would then decide.
func TestNoAddressLeadsToADecision(t *testing.T) {
	p, pages := newPages(t, Config{}), 0
	id := regexp.MustCompile(`\sid="([^"]*)"`)
	for _, s := range samples() {
		body := record(p, s.show).Body.String()
		if s.name != "stopeverything" && !strings.Contains(body, ` name="decision" `) {
			continue
		}
		pages++
		for _, found := range id.FindAllStringSubmatch(body, -1) {
			if !random.MatchString(found[1]) {
				t.Errorf("SP-27 %s: the address #%s leads into the page", s.name, found[1])
			}
		}
	}
	if pages < 8 {
		t.Errorf("only %d pages with a decision were looked at", pages)
	}
	if unguessable("one") == unguessable("another") || !random.MatchString(unguessable("one")) {
		t.Error("the id does not depend on the state of the form")
	}
}

var random = regexp.MustCompile(`^e[0-9a-f]{16}(-[a-z]+)?$`)

// A popup opened by a web client must still be able to report to it afterwards.
func TestOpener(t *testing.T) {
	p := newPages(t, Config{})
	for _, s := range samples() {
		kept := !slices.Contains([]string{
			"error", "deadend", "error-empty", "setup", "setup-problem", "setupdone",
			"setupdone-second", "forgotten", "answer",
			"notices"}, s.name) &&
			!slices.ContainsFunc([]string{"home", "device", "prove", "add", "recoverycodes", "newpassword", "way",
				"account", "stopeverything", "signedout", "makekey", "keymade", "helpers", "remoteask", "remotedone",
				"link"},
				func(account string) bool { return strings.HasPrefix(s.name, account) })
		want := "same-origin"
		if kept {
			want = ""
		}
		if got := record(p, s.show).Header().Get("Cross-Origin-Opener-Policy"); got != want {
			t.Errorf("%s: got %q, want %q", s.name, got, want)
		}
	}
}

// TestFormAction: a form that can end at an application or a provider has no form-action, because
// Chromium applies it to redirects of other sites. All other pages have one.
func TestFormAction(t *testing.T) {
	p := newPages(t, Config{})
	leaves := []string{
		"login", "consent", "chooser", "confirm", "paused", "providerconsent", "connect", "claim", "second", "prove",
		"addpasskey", "addapp",
		"clearance", "clearanceelsewhere", "home", "account",
	}
	for _, s := range samples() {
		is := func(page string) bool { return s.name == page || strings.HasPrefix(s.name, page+"-") }
		want := !slices.ContainsFunc(leaves, is)
		csp := record(p, s.show).Header().Get("Content-Security-Policy")
		if strings.Contains(csp, "form-action 'self';") != want || strings.Contains(csp, "form-action") != want {
			t.Errorf("RU-01 %s: got %q", s.name, csp)
		}
	}
}

func TestConsentText(t *testing.T) {
	p := newPages(t, Config{})
	body := func(change func(*Consent)) string { return record(p, sampleConsent().with(change)).Body.String() }
	const unverified, careful = "has not been verified", "Approve only if you just started"
	loopback := body(func(c *Consent) { c.RedirectIsLoopback, c.RedirectHost = true, "localhost:1" })
	for _, c := range []struct {
		name, body, text string
		want             bool
	}{
		{"AS-71: names the redirect host", body(func(*Consent) {}), `<strong class="host"><bdi>claude.ai</bdi>`, true},
		{"AS-71: names the loopback host", loopback, `localhost:1`, true},
		{"AS-72 SP-27: warns of loopback", loopback, careful, true},
		{"AS-72: warns of a private-use scheme", body(func(c *Consent) { c.RedirectHost = "cursor:" }), careful, true},
		{"AS-72: does not cry wolf", body(func(*Consent) {}), careful, false},
		{"AS-73: names the host of a client document", body(func(c *Consent) { c.Client.Host = "docs.example" }),
			`<bdi class="host">docs.example</bdi>`, true},
		{"AS-70: a name that the client chose is called so", body(func(*Consent) {}), unverified, true},
		{"AS-70: a name from the operator is not", body(func(c *Consent) { c.SelfRegistered = false }), unverified,
			false},
		{"AS-48: a client's name stands in its own element", body(func(*Consent) {}),
			`“<strong><bdi>Claude</bdi></strong>” wants to use`, true},
		{"AS-70: names scopes in plain words", body(func(*Consent) {}), "Read your notes", true},
		{"AS-237: marks what is allowed already", body(func(c *Consent) { c.Allowed = []Scope{{Name: "mcp"}} }),
			"allowed already", true},
		{"AS-237: a box for what can be left out", body(func(*Consent) {}),
			`<input type="checkbox" name="scope" value="mcp" form="` + unguessable("sealed-step") + `" checked>`, true},
		{"AS-237: none for what cannot", body(func(c *Consent) { c.Scopes[0].Fixed = true }), `value="mcp"`, false},
		{"AS-70: offers to deny", body(func(*Consent) {}), `<button name="decision" value="deny">`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Contains(c.body, c.text); got != c.want {
				t.Errorf("%q on the page: got %v, want %v", c.text, got, c.want)
			}
		})
	}
}

func TestSelfContained(t *testing.T) {
	p := newPages(t, Config{Prefix: "/auth"})
	reference := regexp.MustCompile(`(?:src|href)="([^"]*)"`)
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script(?:>| [^s])`)
	served := http.StripPrefix("/auth", p.Assets())
	for _, s := range samples() {
		body := record(p, s.show).Body.String()
		if found := inline.FindString(body); found != "" {
			t.Errorf("%s has inline style or script: %q", s.name, found)
		}
		for _, ref := range reference.FindAllStringSubmatch(body, -1) {
			if !strings.HasPrefix(ref[1], "/auth/assets/") {
				continue
			}
			w := httptest.NewRecorder()
			served.ServeHTTP(w, httptest.NewRequest(http.MethodGet, ref[1], nil))
			if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" {
				t.Errorf("%s: %s got %d, %q", s.name, ref[1], w.Code, w.Header().Get("Cache-Control"))
			}
		}
		if !strings.Contains(body, `href="/auth/assets/style.`) {
			t.Errorf("%s does not link the style under the prefix", s.name)
		}
	}
}

func TestAssets(t *testing.T) {
	p := newPages(t, Config{})
	for name, path := range p.assets.paths {
		if !contentHash.MatchString(path) {
			t.Errorf("%s is served as %s, without the hash of its content", name, path)
		}
	}
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", p.assets.paths["style.css"], 200}, {"HEAD", p.assets.paths["style.css"], 200},
		{"POST", p.assets.paths["style.css"], 405},
		{"GET", "/assets/style.css", 404}, {"GET", "/assets/style.000000000000.css", 404},
		{"GET", "/assets/../pages.go", 404}, {"GET", "/assets/", 404},
	} {
		w := httptest.NewRecorder()
		p.Assets().ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.want {
			t.Errorf("%s %s: got %d, want %d", c.method, c.path, w.Code, c.want)
		}
		if w.Code == 404 && w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: an answer of 404 may be kept", c.path)
		}
		if got := w.Header().Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: X-Content-Type-Options %q", c.path, got)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, prefix := range []string{"auth", "/", "/auth/"} {
		if _, err := New(Config{Prefix: prefix}); err == nil {
			t.Errorf("New took the prefix %q", prefix)
		}
	}
	body := record(newPages(t, Config{ProductName: "Acme <ID>"}), samples()[0].show).Body.String()
	if !strings.Contains(body, "<title>Sign in · Acme &lt;ID&gt;</title>") {
		t.Error("the page does not bear the product's name")
	}
}
