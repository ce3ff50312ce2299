package attempt

import "errors"

// Cause names why a request was refused. The code that refuses sets it, and it decides the verdict,
// because the protocol's error code was chosen for the client. "" means that the step and the error
// code are sufficient.
type Cause string

// The causes.
const (
	CauseUnregisteredURI Cause = "redirect_uri_not_registered"
	CauseScheme          Cause = "redirect_scheme" // missing in registration.private_use_schemes
	CauseInClear         Cause = "redirect_in_clear"
	CauseClientUnknown   Cause = "client_unknown"
	CauseClientDeleted   Cause = "client_deleted"
	CauseDocument        Cause = "document_unusable"      // the client's metadata document violates a rule
	CauseDocumentAway    Cause = "document_not_available" // it could not be fetched
	CauseSpent           Cause = "spent"
	CauseRevoked         Cause = "revoked"
	CausePaused          Cause = "paused" // by the user
	CauseHeld            Cause = "held"   // the administrator has paused or blocked the application
	CauseExpired         Cause = "expired"
	CauseMismatch        Cause = "mismatch" // belongs to another client, redirect URI or verifier
	CauseUnknown         Cause = "unknown"
	CauseNotPermitted    Cause = "not_permitted"   // the user may have none of the requested scopes
	CauseRule            Cause = "rule"            // a rule of the provider does not admit the user
	CauseProvider        Cause = "provider"        // the provider refused, or gave no usable answer
	CauseForm            Cause = "form_unknown"    // a form arrived without its page's cookie, or too late
	CauseOrigin          Cause = "form_of_another" // Origin or Sec-Fetch-Site shows that another site sent the form
	CauseHost            Cause = "host_unknown"    // the request named a host that this server does not serve
	CauseStorage         Cause = "storage"         // the database failed
)

// causes lists every cause.
var causes = []Cause{
	CauseUnregisteredURI, CauseScheme, CauseInClear, CauseClientUnknown, CauseClientDeleted, CauseDocument,
	CauseDocumentAway, CauseSpent, CauseRevoked, CausePaused, CauseHeld, CauseExpired, CauseMismatch,
	CauseUnknown, CauseNotPermitted, CauseRule, CauseProvider, CauseForm, CauseOrigin, CauseHost, CauseStorage,
}

// caused is an error with a cause.
type caused struct {
	cause Cause
	error
}

// Unwrap returns the wrapped error.
func (c caused) Unwrap() error { return c.error }

// Because returns err with the cause c, for [oauth.Error.Because].
func (c Cause) Because(err error) error { return caused{c, err} }

// CauseOf returns the cause of err from [Cause.Because], or "".
func CauseOf(err error) Cause {
	var c caused
	errors.As(err, &c)
	return c.cause
}
