package metadata

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/cors"
)

// cacheControl lets clients cache a document for five minutes. That saves a round trip per login,
// and a changed setting still takes effect soon.
const cacheControl = "public, max-age=300"

// Handler returns a handler that serves doc as JSON, encoded once. It answers GET, HEAD and OPTIONS
// from any origin, supports revalidation by ETag, and answers other methods with 405. If doc has a
// Validate method, Handler calls it first and returns its error.
func Handler(doc any) (http.Handler, error) {
	if v, ok := doc.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, err
		}
	}
	body, err := encode(doc)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	d := document{body: body, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`}
	return allowRead(http.HandlerFunc(d.serve)), nil
}

// NotFound answers an unknown well-known location with 404 and JSON. After a page, a redirect or a
// 5xx, clients give up discovery instead of trying their next location.
func NotFound() http.Handler {
	body := []byte(`{"error":"not_found","error_description":"There is no metadata at this location."}` + "\n")
	return allowRead(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNotFound)
		w.Write(body)
	}))
}

type document struct {
	body []byte
	etag string
}

// serve writes the document directly. http.ServeContent would copy it from a reader, at the cost of
// a second system call.
func (d document) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json") // the exact value: some clients compare all of it
	h.Set("Cache-Control", cacheControl)
	h.Set("ETag", d.etag)
	if MatchesETag(r.Header.Get("If-None-Match"), d.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(d.body)))
	w.WriteHeader(http.StatusOK) // explicit, because gin's writer for a missing route defaults to 404
	w.Write(d.body)              // net/http discards it for HEAD
}

// MatchesETag reports whether If-None-Match matches etag by weak comparison (RFC 9110 §13.1.2):
// caches weaken tags.
func MatchesETag(header, etag string) bool {
	if header == "" {
		return false
	}
	for tag := range strings.SplitSeq(header, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
			return true
		}
	}
	return false
}

// allowRead lets any web page read the response. The documents are public, and clients that run in
// a browser have no other access to them.
func allowRead(next http.Handler) http.Handler {
	const methods = "GET, HEAD, OPTIONS"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		cors.AllowAnyOrigin(h, "ETag, WWW-Authenticate")
		h.Set("X-Content-Type-Options", "nosniff")
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			next.ServeHTTP(w, r)
		case http.MethodOptions:
			cors.Preflight(w, methods)
		default:
			h.Set("Allow", methods)
			h.Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusMethodNotAllowed)
			w.Write([]byte(`{"error":"invalid_request","error_description":"Use GET to read this document."}` + "\n"))
		}
	})
}

// encode returns doc as JSON without HTML escaping, which would make URLs with "&" unreadable.
func encode(doc any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("metadata: encode: %w", err)
	}
	return b.Bytes(), nil
}
