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

// cacheControl lets clients keep a document for five minutes: long enough to
// spare a round trip a login, short enough for a changed setting.
const cacheControl = "public, max-age=300"

// Handler serves doc as JSON, encoded once. It answers GET, HEAD and OPTIONS from
// any origin, revalidates by ETag and answers any other method with 405. A doc
// with a Validate method is checked first.
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

// NotFound answers an unknown well-known location with 404 and JSON. A page, a
// redirect or a 5xx there makes clients give up discovery instead of trying their
// next location.
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

// serve writes the document at once: http.ServeContent would copy it from a reader,
// which costs a second system call.
func (d document) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json") // exactly: some clients compare the whole value
	h.Set("Cache-Control", cacheControl)
	h.Set("ETag", d.etag)
	if MatchesETag(r.Header.Get("If-None-Match"), d.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(d.body)))
	w.WriteHeader(http.StatusOK) // a writer of gin for a missing route has 404 otherwise
	w.Write(d.body)              // net/http discards it for HEAD
}

// MatchesETag is the weak comparison of If-None-Match (RFC 9110 §13.1.2), as caches weaken tags.
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

// allowRead admits reading from any web page: the documents are public, and a
// client that runs in a browser has no other way to them.
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

// encode writes doc without the HTML escaping that would obscure URLs with "&".
func encode(doc any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("metadata: encode: %w", err)
	}
	return b.Bytes(), nil
}
