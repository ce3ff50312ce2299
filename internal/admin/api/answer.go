package api

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/metadata"
)

// answer is what the caller of an operation gets, but for headers that are about the moment.
type answer struct {
	Status int    `json:"status"`
	Type   string `json:"type,omitempty"` // of the body
	Body   []byte `json:"body,omitempty"`
}

func (a answer) write(w http.ResponseWriter) {
	h := w.Header()
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("X-Content-Type-Options", "nosniff")
	if a.Type != "" {
		h.Set("Content-Type", a.Type)
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the client is gone when this fails
}

// writeTagged writes what was read, unless the caller has it.
func (a answer) writeTagged(w http.ResponseWriter, r *http.Request, etag string) {
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Set("ETag", etag)
	if metadata.MatchesETag(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	a.write(w)
}
