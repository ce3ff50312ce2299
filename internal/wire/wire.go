// Package wire writes the direct responses of OAuth endpoints.
package wire

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Error is the JSON form of a protocol error (RFC 6749 §5.2, RFC 7591 §3.2.2, AS-83, AS-137).
type Error struct {
	Code        oauth.Code `json:"error"`                       // REQUIRED
	Description string     `json:"error_description,omitempty"` // OPTIONAL
}

// StatusHungUp is the status, in logs and metrics, of a request whose client closed the connection
// before the response. It is never sent.
const StatusHungUp = 499

// StrictTransportSecurity keeps browsers on https for a year (RFC 6797 §7.1). Issuers and resources
// with https send it.
const StrictTransportSecurity = "max-age=31536000"

// WriteError writes a protocol error.
func WriteError(w http.ResponseWriter, status int, e *oauth.Error) {
	SetRetryAfter(w.Header(), e.RetryAfter)
	WriteJSON(w, status, Error{e.Code, oauth.SafeDescription(e.Description)})
}

// SetRetryAfter sets Retry-After, rounded up to whole seconds, if wait is positive.
func SetRetryAfter(h http.Header, wait time.Duration) {
	if wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
}

// WriteJSON writes a JSON response that is never cached, because these endpoints return secrets or
// data about them (OAuth 2.1 §3.2.3, AS-80).
func WriteJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"server_error"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Pragma", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}
