package pages

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcp-authd/mcp-authd/web"
)

const svgLogo = `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`

// PE-13: administrators can set the pages' name, logo, colours and texts, under the same content
// security policy.
func TestBranding(t *testing.T) {
	p := newPages(t, Config{ProductName: "Acme", Prefix: "/auth", Branding: Branding{
		Logo: []byte(svgLogo), AccentLight: "#0047ab",
		Texts: fstest.MapFS{
			"en/signedout.json": {Data: []byte(`{"lead": "See <you> soon."}`)},
			"he/signedout.json": {Data: []byte(`{"lead": "להתראות"}`)},
		},
	}})
	body := record(p, func(p *Pages, w http.ResponseWriter) { p.SignedOut(w, SignedOut{}) }).Body.String()
	logo := regexp.MustCompile(`<img class="mark" src="(/auth/assets/logo\.[0-9a-f]{12}\.svg)" alt="">`).
		FindStringSubmatch(body)
	style := regexp.MustCompile(`<link rel="stylesheet" href="(/auth/assets/brand\.[0-9a-f]{12}\.css)">`).
		FindStringSubmatch(body)
	if logo == nil || style == nil || !strings.Contains(body, "See &lt;you&gt; soon.") ||
		!strings.Contains(body, `<span class="product">Acme</span>`) || strings.Contains(body, "<rect") {
		t.Fatalf("the page:\n%s", body)
	}
	if strings.Index(body, "/style.") > strings.Index(body, "/brand.") {
		t.Error("the colours come before the style sheet")
	}
	for path, want := range map[string]string{logo[1]: "image/svg+xml", style[1]: "text/css; charset=utf-8"} {
		w := httptest.NewRecorder()
		http.StripPrefix("/auth", p.Assets()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != want ||
			w.Header().Get("Content-Security-Policy") != "default-src 'none'; frame-ancestors 'none'" {
			t.Errorf("%s: %d, %v", path, w.Code, w.Header())
		}
		if path == style[1] && !strings.Contains(w.Body.String(),
			"--accent: light-dark(#0047ab, #84d6be);\n  --on-accent: light-dark(#ffffff, #000000);") {
			t.Errorf("the colours:\n%s", w.Body)
		}
	}
	body = record(p.For("he"), func(p *Pages, w http.ResponseWriter) { p.SignedOut(w, SignedOut{}) }).Body.String()
	if !strings.Contains(body, `<html lang="he" dir="rtl">`) || !strings.Contains(body, "להתראות") ||
		!strings.Contains(body, "You are signed out") {
		t.Errorf("a language of the operator's:\n%s", body)
	}
}

// PE-13: each invalid part of a branding is reported.
func TestBrandingIsChecked(t *testing.T) {
	texts := func(s string) fstest.MapFS { return fstest.MapFS{"de/signedout.json": {Data: []byte(s)}} }
	for _, c := range []struct {
		name     string
		branding Branding
		part     error
		want     string
	}{
		{"nothing", Branding{}, nil, ""},
		{"all", Branding{[]byte(svgLogo), "#0047ab", "#8ab4f8", texts(`{"lead": "x"}`)}, nil, ""},
		{"a PNG", Branding{Logo: []byte("\x89PNG\r\n\x1a\nx")}, nil, ""},
		{"another image", Branding{Logo: []byte("GIF89a")}, ErrLogo, "is neither an SVG nor a PNG image"},
		{"a page", Branding{Logo: []byte("<html><svg>")}, ErrLogo, "is neither an SVG nor a PNG image"},
		{"a large logo", Branding{Logo: []byte("<svg" + strings.Repeat(" ", MaxLogo))}, ErrLogo,
			"has 262148 bytes, the limit is 262144"},
		{"no colour", Branding{AccentLight: "red;} body{"}, ErrAccentLight,
			`"red;} body{" is not a colour such as #0f5c4d`},
		{"a pale colour", Branding{AccentLight: "#ffcc00"}, ErrAccentLight,
			"#ffcc00 on the background #f3f1ec has a contrast of 1.33 to 1, and text needs 4.5 to 1"},
		{"a deep colour", Branding{AccentDark: "#0047ab"}, ErrAccentDark, "choose a lighter colour"},
		{"an unknown text", Branding{Texts: texts(`{"lede": "x"}`)}, ErrTexts,
			"text: de/signedout.json: lede is unknown: English has no such text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.branding.Check()
			if c.part == nil && err != nil ||
				c.part != nil && (!errors.Is(err, c.part) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %v: %s", err, c.part, c.want)
			}
			if _, newErr := New(Config{Branding: c.branding}); (newErr == nil) != (err == nil) {
				t.Errorf("New says %v, Check %v", newErr, err)
			}
		})
	}
}

// Accents are checked against the colours of the style sheet.
func TestColoursAreThoseOfTheStyleSheet(t *testing.T) {
	css, err := web.Files.ReadFile("assets/style.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"--accent: light-dark(" + ourLight + ", " + ourDark + ");",
		"--page: light-dark(" + lightPage[0] + ", " + darkPage[0] + ");",
		"--card: light-dark(" + lightPage[1] + ", " + darkPage[1] + ");",
		"--sunk: light-dark(" + lightPage[2] + ", " + darkPage[2] + ");",
	} {
		if !strings.Contains(string(css), line) {
			t.Errorf("the style sheet has no %s", line)
		}
	}
	for _, c := range []struct {
		a, b string
		want float64
	}{{"#000000", "#ffffff", 21}, {"#777777", "#ffffff", 4.48}, {"#ffffff", "#ffffff", 1}} {
		if got := contrast(c.a, c.b); got < c.want-0.01 || got > c.want+0.01 {
			t.Errorf("%s on %s: got %.3f, want %.2f", c.a, c.b, got, c.want)
		}
	}
}
