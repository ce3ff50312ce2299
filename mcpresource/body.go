package mcpresource

import (
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

// isPlainText reports whether the body is for every server the text that is judged here.
// In another charset the same bytes are another message: to a server that goes by the
// header, as those with body-parser do, "+ACI-" in UTF-7 is a quote. JSON is UTF-8 (RFC 8259
// §8.1). What follows a semicolon is looked at wherever it stands, because parsers
// differ about quotes and repeated parameters.
func isPlainText(h http.Header) bool {
	for _, e := range h.Values("Content-Encoding") {
		if e = strings.TrimSpace(e); e != "" && !strings.EqualFold(e, "identity") {
			return false
		}
	}
	for _, t := range h.Values("Content-Type") {
		_, parameters, _ := strings.Cut(t, ";")
		for parameter := range strings.SplitSeq(parameters, ";") {
			name, value, _ := strings.Cut(strings.ToLower(parameter), "=")
			if value = strings.Trim(value, " \t\""); strings.Contains(name, "charset") && value != "utf-8" && value != "utf8" {
				return false
			}
		}
	}
	return true
}
