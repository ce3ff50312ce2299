package mcpresource

import (
	"mime"
	"net/http"
	"strings"
	"time"
)

// bodyTime is how long the body of a request may take to arrive.
const bodyTime = 30 * time.Second

// hurry sets a deadline for the body, if there is one, so that nobody holds a
// connection by sending slowly; with or without a token, because net/http waits for
// what a handler has left. It reports whether there is a deadline to lift, so that no
// stream ends at it. A shorter timeout of the server stays.
func (g *Guard) hurry(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength == 0 {
		return false
	}
	wait := g.bodyTime
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.ReadTimeout > 0 {
		wait = min(wait, s.ReadTimeout)
	}
	return http.NewResponseController(w).SetReadDeadline(time.Now().Add(wait)) == nil
}

// relax lifts the deadline.
func relax(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // it could be set a moment ago
}

// leave gives up what a client sends with a method that has no body.
func leave(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // whatever remains, the server closes the connection
	}
}

// isPlain reports whether a server reads the bytes that the guard judges. Some MCP
// libraries decode whatever charset a client names, and in UTF-7 or UTF-16 the same
// bytes may call another tool; so they may when they are decompressed.
func isPlain(h http.Header) bool {
	for _, v := range h.Values("Content-Encoding") {
		if !strings.EqualFold(strings.TrimSpace(v), "identity") {
			return false
		}
	}
	kind := h.Get("Content-Type")
	if !strings.Contains(kind, ";") {
		return true
	}
	_, params, err := mime.ParseMediaType(kind)
	charset, named := params["charset"]
	return err == nil && (!named || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8"))
}
