package oauth

import (
	"errors"
	"net/http"
	"strings"
	"time"
)

// Code is a registered OAuth error code, the value of the "error" member.
type Code string

// The error codes that this project sends, by defining document.
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

	// OpenID Connect Core §3.1.2.6, for prompt=none. InteractionRequired is also sent when the user
	// must first authorize access to an upstream provider.
	LoginRequired       Code = "login_required"
	ConsentRequired     Code = "consent_required"
	InteractionRequired Code = "interaction_required"

	// OpenID Connect Core Error Code unmet_authentication_requirements 1.0: a max_age that the
	// server cannot prove, or acr_values that the user cannot meet (RFC 9470 §5).
	UnmetAuthentication Code = "unmet_authentication_requirements"

	// RFC 8628 §3.5, for a polling device.
	AuthorizationPending Code = "authorization_pending"
	ExpiredToken         Code = "expired_token"

	// RFC 8628 §3.5, where its status is 400. Overloaded or rate-limited endpoints also send it
	// with 429; that use is not registered.
	SlowDown Code = "slow_down"
)

// status maps each code to the HTTP status of a direct (JSON) response.
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

// Error is a protocol error. Code and Description are sent to the client. The cause is only for the
// log.
type Error struct {
	Code        Code
	Description string        // public, static text in the character set of RFC 6749 §5.2
	RetryAfter  time.Duration // sent as Retry-After, rounded up to seconds, unless zero
	cause       error
}

// NewError returns a protocol error with a public description.
func NewError(code Code, description string) *Error {
	return &Error{Code: code, Description: description}
}

// Because returns a copy of e with cause, which is only logged. If the present cause has a method
// Because(error) error, that method is called with the new cause, and its result is the cause.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	if outer, ok := e.cause.(interface{ Because(cause error) error }); ok {
		c.cause = outer.Because(cause)
	}
	return &c
}

// Error implements error. The text includes the cause: use it only in logs.
func (e *Error) Error() string {
	s := string(e.Code)
	if e.Description != "" {
		s += ": " + e.Description
	}
	if e.cause != nil {
		if cause := e.cause.Error(); cause != "" {
			s += ": " + cause
		}
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is an Error with the same code. For example, errors.Is(err,
// oauth.NewError(oauth.InvalidGrant, "")) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Status returns the HTTP status of a direct response with e. It is 500 for a code that the table
// lacks, which is a programming error.
func (e *Error) Status() int {
	if s, ok := status[e.Code]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// AsError returns the protocol error in err's chain. For any other error it returns server_error
// with a fixed sentence, so that no internal text is sent to the client.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return NewError(ServerError, "The server could not handle the request. Please try again later.").Because(err)
}

// SafeDescription returns s with characters that error_description must not contain replaced by an
// apostrophe or a question mark. RFC 6749 §5.2 allows %x20-21 / %x23-5B / %x5D-7E (AS-12, RS-19),
// and s may quote client input.
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
