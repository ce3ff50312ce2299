package pages

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkConsent measures the page of each sign-in with a browser session.
func BenchmarkConsent(b *testing.B) {
	p, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range samples() {
		if s.name != "consent" {
			continue
		}
		b.ReportAllocs()
		for b.Loop() {
			s.show(p, httptest.NewRecorder())
		}
	}
}

// TestConstant: values that are the same on every page are in the templates, escaped as the
// template package does. No page looks them up again.
func TestConstant(t *testing.T) {
	p := newPages(t, Config{ProductName: `<b>"A & B" {{.}}`, Prefix: "/auth"})
	for name, made := range p.pages {
		page, err := made()
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range page.Templates() {
			for _, call := range []string{"{{product}}", "{{home}}", "{{asset "} {
				if part.Tree != nil && strings.Contains(part.Tree.Root.String(), call) {
					t.Errorf("page %s asks for %s in %s", name, call, part.Name())
				}
			}
		}
	}
	body := record(p, func(p *Pages, w http.ResponseWriter) { p.SignedOut(w, SignedOut{}) }).Body.String()
	for _, want := range []string{
		`<span class="product">&lt;b&gt;&#34;A &amp; B&#34; {{.}}</span>`, `href="/auth/"`, `href="` + p.Icon() + `"`,
		`href="/auth/assets/style.`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in:\n%s", want, body)
		}
	}
}

// TestIcons: provider types with an icon show it, selected by the ID of the type.
func TestIcons(t *testing.T) {
	p := newPages(t, Config{})
	icon := func(name string) string {
		body := record(p, func(p *Pages, w http.ResponseWriter) {
			p.Login(w, http.StatusOK, Login{Choices: []Choice{{Provider: Provider{Name: "X", Icon: name}, URL: "/"}}})
		}).Body.String()
		_, after, _ := strings.Cut(body, `<svg class="icon"`)
		drawn, _, _ := strings.Cut(after, "</svg>")
		return drawn
	}
	neutral := icon("a name of the operator's")
	if neutral == "" {
		t.Fatal("there is no icon on the page")
	}
	for _, id := range []string{
		"google", "github", "gitlab", "entra", "okta", "auth0", "keycloak", "slack", "discord", "apple",
	} {
		if icon(id) == neutral {
			t.Errorf("%s has the icon of an unknown provider", id)
		}
	}
}
