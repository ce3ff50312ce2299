package authserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// writeJSON writes a direct answer. Whatever these endpoints return is secret or
// about a secret, so nothing is ever cached (OAuth 2.1 §3.2.3, AS-80).
func writeJSON(w http.ResponseWriter, status int, v any) {
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

// errorBody is the JSON form of a protocol error (RFC 6749 §5.2, AS-83).
type errorBody struct {
	Error       oauth.Code `json:"error"`                       // REQUIRED
	Description string     `json:"error_description,omitempty"` // OPTIONAL
}

// writeError is the one writer of direct protocol errors.
func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e := oauth.AsError(err)
	noteError(r, e)
	setRetryAfter(w, e, e.Status())
	if e.Code == oauth.InvalidClient && r.Header.Get("Authorization") != "" {
		// RFC 6749 §5.2, AS-84: the scheme that the client used must be named.
		w.Header().Set("WWW-Authenticate", `Basic realm="`+s.cfg.ProductName+`", charset="UTF-8"`)
	}
	writeJSON(w, e.Status(), errorBody{e.Code, oauth.SafeDescription(e.Description)})
}

// errTooLarge is a refusal that OAuth has no code for: the HTTP status tells, and
// the body stays OAuth-shaped.
var errTooLarge = errors.New("request body too large")

// writeParseError answers a request that could not be read.
func (s *Server) writeParseError(w http.ResponseWriter, r *http.Request, err error) {
	if !errors.Is(err, errTooLarge) {
		s.writeError(w, r, err)
		return
	}
	e := oauth.NewError(oauth.InvalidRequest, "The request body is too large.")
	noteError(r, e)
	writeJSON(w, http.StatusRequestEntityTooLarge, errorBody{e.Code, e.Description})
}

// setRetryAfter says when to try again, which a 503 always does.
func setRetryAfter(w http.ResponseWriter, e *oauth.Error, status int) {
	switch {
	case e.RetryAfter > 0:
		w.Header().Set("Retry-After", retryAfter(e.RetryAfter))
	case status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter(refusal.StorageRetry))
	}
}

func retryAfter(d time.Duration) string {
	return strconv.Itoa(int((d + time.Second - 1) / time.Second))
}
