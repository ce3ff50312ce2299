package api

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/metadata"
)

// answer is the response to an operation, without headers that depend on the moment.
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
	_, _ = w.Write(a.Body) // fails only if the client is gone
}

// writeTagged writes a read result, or 304 if the caller already has it.
func (a answer) writeTagged(w http.ResponseWriter, r *http.Request, etag string) {
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Set("ETag", etag)
	if metadata.MatchesETag(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	a.write(w)
}
