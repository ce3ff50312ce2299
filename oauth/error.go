package oauth

import (
	"errors"
	"net/http"
	"strings"
	"time"
)

// Code is a registered OAuth error code, as it stands in the "error" member.
type Code string

// The error codes this project sends, by the document that defines each.
const (
	// RFC 6749 §4.1.2.1 and §5.2.
	InvalidRequest          Code = "invalid_request"
	InvalidClient           Code = "invalid_client"
	InvalidGrant            Code = "invalid_grant"
	UnauthorizedClient      Code = "unauthorized_client"
	UnsupportedGrantType    Code = "unsupported_grant_type"
	UnsupportedResponseType Code = "unsupported_response_type"
	InvalidScope            Code = "invalid_scope"
	AccessDenied            Code = "access_denied"
	ServerError             Code = "server_error"
	TemporarilyUnavailable  Code = "temporarily_unavailable"

	// RFC 6750 §3.1, at the resource server.
	InvalidToken      Code = "invalid_token"
	InsufficientScope Code = "insufficient_scope"

	// RFC 9470 §3, at the resource server.
	InsufficientAuthentication Code = "insufficient_user_authentication"

	// RFC 9449 §7.1 and §8.
	InvalidDPoPProof Code = "invalid_dpop_proof"
	UseDPoPNonce     Code = "use_dpop_nonce"

	// RFC 7009 §2.2.1.
	UnsupportedTokenType Code = "unsupported_token_type"

	// RFC 7591 §3.2.2.
	InvalidRedirectURI       Code = "invalid_redirect_uri"
	InvalidClientMetadata    Code = "invalid_client_metadata"
	InvalidSoftwareStatement Code = "invalid_software_statement"

	// RFC 8707 §2.
	InvalidTarget Code = "invalid_target"

	// OpenID Connect Core §3.1.2.6, for prompt=none; the last one also for a token of an
	// upstream provider that the person has to grant first.
	LoginRequired       Code = "login_required"
	ConsentRequired     Code = "consent_required"
	InteractionRequired Code = "interaction_required"

	// OpenID Connect Core Error Code unmet_authentication_requirements 1.0, for max_age that
	// the server cannot prove, and acr_values that the person cannot meet (RFC 9470 §5).
	UnmetAuthentication Code = "unmet_authentication_requirements"

	// RFC 8628 §3.5, for a device that polls.
	AuthorizationPending Code = "authorization_pending"
	ExpiredToken         Code = "expired_token"

	// Of RFC 8628 §3.5, too, where it is a 400. Elsewhere it is not registered: what an overloaded
	// or rate-limited endpoint answers with 429.
	SlowDown Code = "slow_down"
)

// status is the one table from code to HTTP status of a direct (JSON) answer.
var status = map[Code]int{
	InvalidRequest:             http.StatusBadRequest,
	InvalidClient:              http.StatusUnauthorized, // RFC 6749 §5.2, AS-84
	InvalidGrant:               http.StatusBadRequest,
	UnauthorizedClient:         http.StatusBadRequest,
	UnsupportedGrantType:       http.StatusBadRequest,
	UnsupportedResponseType:    http.StatusBadRequest,
	InvalidScope:               http.StatusBadRequest,
	AccessDenied:               http.StatusForbidden,
	InteractionRequired:        http.StatusBadRequest,
	ServerError:                http.StatusInternalServerError,
	TemporarilyUnavailable:     http.StatusServiceUnavailable,
	InvalidToken:               http.StatusUnauthorized, // RFC 6750 §3.1
	InsufficientScope:          http.StatusForbidden,    // RFC 6750 §3.1
	InsufficientAuthentication: http.StatusUnauthorized, // RFC 9470 §3
	InvalidDPoPProof:           http.StatusBadRequest,   // RFC 9449 §5; a resource server answers 401
	UseDPoPNonce:               http.StatusBadRequest,   // RFC 9449 §8; a resource server answers 401
	UnsupportedTokenType:       http.StatusBadRequest,
	InvalidRedirectURI:         http.StatusBadRequest,
	InvalidClientMetadata:      http.StatusBadRequest,
	InvalidSoftwareStatement:   http.StatusBadRequest,
	InvalidTarget:              http.StatusBadRequest,
	LoginRequired:              http.StatusBadRequest,
	ConsentRequired:            http.StatusBadRequest,
	UnmetAuthentication:        http.StatusBadRequest,
	AuthorizationPending:       http.StatusBadRequest,
	ExpiredToken:               http.StatusBadRequest,
	SlowDown:                   http.StatusTooManyRequests,
}

// Error is the one protocol error. Code and Description go on the wire; the
// cause is for the log and never leaves the process.
type Error struct {
	Code        Code
	Description string        // public, static prose in the character set of RFC 6749 §5.2
	RetryAfter  time.Duration // sent as Retry-After, rounded up to seconds, when not zero
	cause       error
}

// NewError returns the protocol error code with a public description.
func NewError(code Code, description string) *Error {
	return &Error{Code: code, Description: description}
}

// Because returns a copy of e that carries cause for the log.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// Error implements error. It includes the cause and is meant for logs only.
func (e *Error) Error() string {
	s := string(e.Code)
	if e.Description != "" {
		s += ": " + e.Description
	}
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is a protocol error with the same code, so that
// errors.Is(err, oauth.NewError(oauth.InvalidGrant, "")) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Status is the HTTP status of a direct answer carrying e. A code outside the
// table is a programming error and is answered as 500.
func (e *Error) Status() int {
	if s, ok := status[e.Code]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// AsError returns the protocol error in err's chain. Anything else becomes
// server_error with a fixed sentence, so that no internal text reaches the wire.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return NewError(ServerError, "The server could not handle the request. Please try again later.").Because(err)
}

// SafeDescription replaces every character that RFC 6749 §5.2 (AS-12, RS-19) does not permit in
// error_description (it allows %x20-21 / %x23-5B / %x5D-7E) by an apostrophe or a
// question mark, so that text quoting client input stays inside the grammar.
func SafeDescription(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"' || r == '\\':
			return '\''
		case r < 0x20 || r > 0x7e:
			return '?'
		}
		return r
	}, s)
}
