package secevent

import "errors"

// Code says what is wrong with a delivery (RFC 8935 §2.4).
type Code string

// The codes.
const (
	InvalidRequest       Code = "invalid_request"
	InvalidKey           Code = "invalid_key"
	InvalidIssuer        Code = "invalid_issuer"
	InvalidAudience      Code = "invalid_audience"
	AuthenticationFailed Code = "authentication_failed"
	AccessDenied         Code = "access_denied" // only of receivers: the event is one that they do not take
)

// Error is a permanent refusal of a delivery.
type Error struct {
	Code Code
	Why  string // a fixed sentence: what the sender wrote is not repeated
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Why }

func refuse(c Code, why string) *Error { return &Error{c, why} }

var (
	// ErrUnavailable: the keys of the issuer cannot be had, or the store fails; it may be tried again.
	ErrUnavailable = errors.New("secevent: it cannot be judged now")
	// ErrKey: the signature is by no key of the issuer.
	ErrKey = errors.New("secevent: it is signed by no key of the issuer")
	// ErrRepeated: the token was carried out before.
	ErrRepeated = errors.New("secevent: it was carried out before")
)
