package browser

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

//go:embed gallery.js
var galleryScript string

// screen is how large a page of the gallery is shown, and what is asked of it beside rules.js.
type screen struct {
	Name     string `json:"name"`
	Width    int    `json:"width"`
	Height   int    `json:"height"`
	Script   bool   `json:"script"`
	Axe      string `json:"axe"`      // "all", "quick" (without contrasts, which rules.js measures too), or ""
	Decision bool   `json:"decision"` // is on the screen without scrolling
}

// TestGallery shows every page in every language, as a server would send it, on a screen and on a
// telephone, at 200 % zoom and without script, in light and dark (PE-11, PE-12, PE-13).
func TestGallery(t *testing.T) {
	site := serveGallery(t)
	languages, err := filepath.Glob(filepath.Join(site.dir, "??"))
	if err != nil || len(languages) < 7 {
		t.Fatalf("languages: %v, %v", languages, err)
	}
	for _, scheme := range []string{"light", "dark"} {
		b := open(t, look{scheme, 1280, 900, scheme})
		b.dress(b.l)
		b.visit(site.URL + "/")
		b.focus()
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("void (window.look = (path, screens) => (%s)(path, screens, %s, %s))",
			galleryScript, asJSON(t, rules), asJSON(t, b.axe))))
		for _, dir := range languages {
			language := filepath.Base(dir)
			t.Run(fmt.Sprintf("PE-12 PE-13: all pages in %s, %s", language, scheme), func(t *testing.T) {
				pages, err := filepath.Glob(filepath.Join(dir, "*.html"))
				if err != nil || len(pages) < 40 {
					t.Fatalf("pages: %v, %v", pages, err)
				}
				for _, file := range pages {
					page := strings.TrimSuffix(filepath.Base(file), ".html")
					for _, p := range b.lookAt("/"+language+"/"+page+".html", screens(language, page, scheme)) {
						t.Errorf("%s: %s", page, p)
					}
				}
			})
		}
	}
}

// screens are those on which a page is shown. English is looked at the longest: marks and colours
// are the same in the other languages.
func screens(language, page, scheme string) []screen {
	thorough, quick := "", ""
	switch {
	case language == "en":
		thorough = "all"
	case scheme == "light":
		quick = "quick"
	}
	fits := !slices.ContainsFunc([]string{"-long", "setup"}, func(s string) bool { return strings.Contains(page, s) })
	shown := []screen{
		{"1280x800", 1280, 800, true, thorough, fits},
		{"390x844", 390, 844, true, thorough + quick, fits},
	}
	if scheme == "dark" {
		return shown
	}
	return append(shown,
		screen{"1280x800 at 200 %", 640, 400, true, "", false},
		screen{"without script, 320x640", 320, 640, false, "", false})
}

// lookAt returns what is wrong with a page of the gallery.
func (b *tab) lookAt(path string, screens []screen) []string {
	b.t.Helper()
	call := fmt.Sprintf("window.look(%s, %s)", asJSON(b.t, path), asJSON(b.t, screens))
	problems, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](call, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", path, err)
	}
	return problems
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// gallery serves the pages that web/gallery_test.go writes.
type gallery struct {
	*httptest.Server
	dir string
}

func serveGallery(t *testing.T) gallery {
	t.Helper()
	chromium(t)
	dir := t.TempDir()
	write := exec.Command("go", "test", "../../web", "-count=1", "-run", "^TestRenderGallery$")
	write.Env = append(os.Environ(), "WEB_GALLERY_DIR="+dir)
	if out, err := write.CombinedOutput(); err != nil {
		t.Fatalf("write the gallery: %v\n%s", err, out)
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(dir)))
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<!doctype html><title>Gallery</title><body>")
	})
	mux.HandleFunc("/assets/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		http.FileServer(http.Dir(dir)).ServeHTTP(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return gallery{server, dir}
}
