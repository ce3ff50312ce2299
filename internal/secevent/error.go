package secevent

import "errors"

// Code is the error code of a refused delivery (RFC 8935 §2.4).
type Code string

// The codes.
const (
	InvalidRequest       Code = "invalid_request"
	InvalidKey           Code = "invalid_key"
	InvalidIssuer        Code = "invalid_issuer"
	InvalidAudience      Code = "invalid_audience"
	AuthenticationFailed Code = "authentication_failed"
	AccessDenied         Code = "access_denied" // only from receivers: they do not accept the event
)

// Error is a permanent refusal of a delivery.
type Error struct {
	Code Code
	Why  string // a fixed sentence that does not quote the sender
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Why }

func refuse(c Code, why string) *Error { return &Error{c, why} }

var (
	// ErrUnavailable means that the keys of the issuer are unavailable or the store fails. The
	// sender may retry.
	ErrUnavailable = errors.New("secevent: it cannot be judged now")
	// ErrKey means that no key of the issuer verifies the signature.
	ErrKey = errors.New("secevent: it is signed by no key of the issuer")
	// ErrRepeated means that the token was already processed.
	ErrRepeated = errors.New("secevent: it was carried out before")
)
