package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"
)

//go:embed assets
var assetFiles embed.FS

// assets are the embedded files by the path under which they are served, and that
// path by their source name.
type assets struct {
	prefix string
	files  map[string]asset
	paths  map[string]string
}

type asset struct {
	contentType string
	body        []byte
	small       func() []byte // body by gzip, when a browser first asks for it; nil: it is not smaller
}

func loadAssets(prefix string) (assets, error) {
	a, err := ourAssets()
	return assets{prefix: prefix, files: maps.Clone(a.files), paths: maps.Clone(a.paths)}, err
}

// ourAssets are those that are part of the program.
var ourAssets = sync.OnceValues(func() (assets, error) {
	a := assets{files: make(map[string]asset), paths: make(map[string]string)}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return a, fmt.Errorf("web: list the assets: %w", err)
	}
	for _, e := range entries {
		body, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			return a, fmt.Errorf("web: read asset %s: %w", e.Name(), err)
		}
		a.add(e.Name(), uncommented.ReplaceAll(body, nil))
	}
	return a, nil
})

// uncommented matches the comments of our assets: browsers load them without. A comment of a script
// fills whole lines.
var uncommented = regexp.MustCompile(`(?m)/\*[^*]*\*/|^\s*// .*\n`)

// StyleSheet is that of the pages, for a page that stands alone.
func StyleSheet() string {
	css, _ := assetFiles.ReadFile("assets/style.css") // it is there: the pages have it
	return string(css)
}

func (a *assets) add(name string, body []byte) {
	sum, ext := sha256.Sum256(body), path.Ext(name)
	served := "/assets/" + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	a.files[served] = asset{contentType(ext), body, sync.OnceValue(func() []byte { return compressed(body) })}
	a.paths[name] = served
}

// words are what templates call by these names and what is the same on every page.
func (a assets) words(c Config) map[string]string {
	out := map[string]string{"product": c.ProductName, "home": c.Prefix + "/"}
	for name, served := range a.paths {
		out[fmt.Sprintf("asset %q", name)] = a.prefix + served
	}
	return out
}

func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	file, ok := a.files[r.URL.Path]
	if !ok {
		h.Set("Cache-Control", "no-store") // an older page must not teach a cache that a name is missing
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "Use GET.", http.StatusMethodNotAllowed)
		return
	}
	h.Set("Content-Type", file.contentType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Vary", "Accept-Encoding")
	body := file.body
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		if small := file.small(); small != nil {
			h.Set("Content-Encoding", "gzip")
			body = small
		}
	}
	h.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body)
	}
}

// compressed returns a file in gzip, nil when that is not smaller. Assets hold no secret. Pages do, and
// are not compressed, so that their length tells nothing of what is on them (BREACH).
func compressed(body []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil
	}
	if _, err := w.Write(body); err != nil || w.Close() != nil || b.Len() >= len(body) {
		return nil
	}
	return b.Bytes()
}

// acceptsGzip reports whether a browser names gzip among what it accepts (RFC 9110 §12.5.3).
func acceptsGzip(accepted []string) bool {
	for _, list := range accepted {
		for part := range strings.SplitSeq(list, ",") {
			name, weight, _ := strings.Cut(part, ";")
			refused := weight != "" && strings.Trim(weight, " q=0.") == ""
			if strings.EqualFold(strings.TrimSpace(name), "gzip") && !refused {
				return true
			}
		}
	}
	return false
}

// contentType does not ask the machine's MIME table for what we know.
func contentType(ext string) string {
	switch ext {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	}
	return "application/octet-stream"
}
