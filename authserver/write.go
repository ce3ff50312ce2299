package authserver

import (
	"errors"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/wire"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// writeError writes every direct protocol error that the endpoints of clients answer with.
func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e := oauth.AsError(err)
	if e.Code == oauth.InvalidClient && r.Header.Get("Authorization") != "" {
		// RFC 6749 §5.2, AS-84: the scheme that the client used must be named.
		w.Header().Set("WWW-Authenticate", `Basic realm="`+s.cfg.ProductName+`", charset="UTF-8"`)
	}
	writeDirect(w, r, e.Status(), e)
}

// writeDirect writes a protocol error as JSON, and has it in the log.
func writeDirect(w http.ResponseWriter, r *http.Request, status int, e *oauth.Error) {
	noteError(r, e)
	setRetryAfter(w, e, status)
	wire.WriteError(w, status, e)
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
	writeDirect(w, r, http.StatusRequestEntityTooLarge, e)
}

// setRetryAfter says when to try again, which a 503 always does.
func setRetryAfter(w http.ResponseWriter, e *oauth.Error, status int) {
	wait := e.RetryAfter
	if wait <= 0 && status == http.StatusServiceUnavailable {
		wait = refusal.StorageRetry
	}
	wire.SetRetryAfter(w.Header(), wait)
}
