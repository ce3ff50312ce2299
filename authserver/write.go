package authserver

import (
	"errors"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/wire"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// writeError writes a direct protocol error of the client endpoints.
func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e := oauth.AsError(err)
	if e.Code == oauth.InvalidClient && r.Header.Get("Authorization") != "" {
		// RFC 6749 §5.2, AS-84: the response must name the scheme that the client used.
		w.Header().Set("WWW-Authenticate", `Basic realm="`+s.cfg.ProductName+`", charset="UTF-8"`)
	}
	writeDirect(w, r, e.Status(), e)
}

// writeDirect writes a protocol error as JSON, and notes it for the log.
func writeDirect(w http.ResponseWriter, r *http.Request, status int, e *oauth.Error) {
	request.Of(r.Context()).Refuse(e)
	setRetryAfter(w, e, status)
	wire.WriteError(w, status, e)
}

// errTooLarge is a refusal without an OAuth code: the HTTP status shows it, and the body has the
// OAuth form.
var errTooLarge = errors.New("request body too large")

// writeParseError answers a request that could not be read.
func (s *Server) writeParseError(w http.ResponseWriter, r *http.Request, err error) {
	if !errors.Is(err, errTooLarge) {
		s.writeError(w, r, err)
		return
	}
	e := oauth.NewError(oauth.InvalidRequest, "The request body is too large.")
	writeDirect(w, r, http.StatusRequestEntityTooLarge, e)
}

// setRetryAfter sets Retry-After, which a 503 always has.
func setRetryAfter(w http.ResponseWriter, e *oauth.Error, status int) {
	wait := e.RetryAfter
	if wait <= 0 && status == http.StatusServiceUnavailable {
		wait = refusal.StorageRetry
	}
	wire.SetRetryAfter(w.Header(), wait)
}
