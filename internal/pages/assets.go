package pages

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/mcp-authd/mcp-authd/web"
)

// assets maps the served paths of the embedded files to their content, and the source names to the
// paths.
type assets struct {
	prefix string
	files  map[string]asset
	paths  map[string]string
}

type asset struct {
	contentType string
	body        []byte
	small       func() []byte // gzip of body, created on first use; nil: not smaller
}

func loadAssets(prefix string) (assets, error) {
	a, err := ourAssets()
	return assets{prefix: prefix, files: maps.Clone(a.files), paths: maps.Clone(a.paths)}, err
}

// ourAssets returns the assets embedded in the program.
var ourAssets = sync.OnceValues(func() (assets, error) {
	a := assets{files: make(map[string]asset), paths: make(map[string]string)}
	entries, err := web.Files.ReadDir("assets")
	if err != nil {
		return a, fmt.Errorf("pages: list the assets: %w", err)
	}
	for _, e := range entries {
		body, err := web.Files.ReadFile("assets/" + e.Name())
		if err != nil {
			return a, fmt.Errorf("pages: read asset %s: %w", e.Name(), err)
		}
		a.add(e.Name(), uncommented.ReplaceAll(body, nil))
	}
	return a, nil
})

// uncommented matches the comments of embedded assets, which are removed. A comment in a script
// must fill whole lines.
var uncommented = regexp.MustCompile(`(?m)/\*[^*]*\*/|^\s*// .*\n`)

// StyleSheet returns the pages' style sheet, for a self-contained page.
func StyleSheet() string {
	css, _ := web.Files.ReadFile("assets/style.css") // cannot fail: the file is embedded
	return string(css)
}

func (a *assets) add(name string, body []byte) {
	sum, ext := sha256.Sum256(body), path.Ext(name)
	served := "/assets/" + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	a.files[served] = asset{contentType(ext), body, sync.OnceValue(func() []byte { return compressed(body) })}
	a.paths[name] = served
}

// words returns the template expressions that are the same on every page, with their values.
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
		h.Set("Cache-Control", "no-store") // an older page must not make a cache store that a name is missing
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

// compressed returns the gzip form of a file, or nil if it is not smaller. Assets contain no
// secret. Pages do, so they are not compressed: their length must not reveal their content
// (BREACH).
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

// acceptsGzip reports whether an Accept-Encoding header includes gzip (RFC 9110 §12.5.3).
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

// contentType does not use the machine's MIME table.
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
