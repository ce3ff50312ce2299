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

	"github.com/mcp-authd/mcp-authd/internal/testkit/browsertest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
)

//go:embed gallery.js
var galleryScript string

// screen is a size for showing a page of the gallery, with checks in addition to rules.js.
type screen struct {
	Name     string `json:"name"`
	Width    int    `json:"width"`
	Height   int    `json:"height"`
	Dark     bool   `json:"dark"`
	Script   bool   `json:"script"`
	Axe      string `json:"axe"`      // "all", "quick" (all but contrast), "contrast", or ""
	Decision bool   `json:"decision"` // must be visible without scrolling
}

// TestGallery shows every page in every language at phone and desktop sizes, at 200 % zoom, without
// script, in light and dark (PE-11, PE-12, PE-13). Axe checks each page. It checks contrast only in
// English, because all languages have the same colors.
func TestGallery(t *testing.T) {
	lane.Long(t, "web tests what templates show")
	t.Parallel()
	site := serveGallery(t)
	languages, err := filepath.Glob(filepath.Join(site.dir, "??"))
	if err != nil || len(languages) < 7 {
		t.Fatalf("languages: %v, %v", languages, err)
	}
	for _, dir := range languages {
		language := filepath.Base(dir)
		t.Run("PE-12 PE-13: all pages in "+language, func(t *testing.T) {
			t.Parallel()
			pages, err := filepath.Glob(filepath.Join(dir, "*.html"))
			if err != nil || len(pages) < 40 {
				t.Fatalf("pages: %v, %v", pages, err)
			}
			axe := "quick"
			if language == "en" {
				axe = "all"
			}
			b := site.open(t)
			for _, file := range pages {
				page := strings.TrimSuffix(filepath.Base(file), ".html")
				for _, p := range b.lookAt("/"+language+"/"+page+".html", screens(page, axe)) {
					t.Errorf("%s: %s", page, p)
				}
			}
		})
	}
}

func (g gallery) open(t *testing.T) *tab {
	t.Helper()
	b := open(t, looks[0])
	b.visit(g.URL + "/")
	look := fmt.Sprintf("(path, screens) => (%s)(path, screens, %s, %s)", galleryScript, asJSON(t, rules), asJSON(t, b.axe))
	b.Do(chromedp.Evaluate[chromedp.Void]("void (window.look = " + look + ")"))
	return b
}

func screens(page, axe string) []screen {
	inDark := ""
	if axe == "all" {
		inDark = "contrast" // other checks do not depend on the color scheme
	}
	fits := !slices.ContainsFunc([]string{"-long", "setup"}, func(s string) bool { return strings.Contains(page, s) })
	return []screen{
		{Name: "1280x800", Width: 1280, Height: 800, Script: true, Decision: fits},
		{Name: "1280x800, dark", Width: 1280, Height: 800, Dark: true, Script: true},
		{Name: "390x844, dark", Width: 390, Height: 844, Dark: true, Script: true, Axe: inDark},
		{Name: "390x844", Width: 390, Height: 844, Script: true, Axe: axe, Decision: fits},
		{Name: "1280x800 at 200 %", Width: 640, Height: 400, Script: true},
		{Name: "without script, 320x640", Width: 320, Height: 640},
	}
}

// lookAt returns the faults of a page of the gallery.
func (b *tab) lookAt(path string, screens []screen) []string {
	b.TB.Helper()
	call := fmt.Sprintf("window.look(%s, %s)", asJSON(b.TB, path), asJSON(b.TB, screens))
	return eval[[]string](b, call)
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// gallery serves the pages that internal/pages/gallery_test.go writes.
type gallery struct {
	*httptest.Server
	dir string
}

func serveGallery(t *testing.T) gallery {
	t.Helper()
	browsertest.Need(t)
	dir := t.TempDir()
	write := exec.Command("go", "test", "../../internal/pages", "-count=1", "-run", "^TestRenderGallery$")
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
