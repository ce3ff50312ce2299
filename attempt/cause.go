package attempt

import "errors"

// Cause names why a request was refused. The code that refuses knows it, and it decides the verdict: the code of
// the protocol was chosen for the client. "": the step and the protocol say all.
type Cause string

// The causes.
const (
	CauseUnregisteredURI Cause = "redirect_uri_not_registered"
	CauseScheme          Cause = "redirect_scheme" // registration.private_use_schemes lacks it
	CauseInClear         Cause = "redirect_in_clear"
	CauseClientUnknown   Cause = "client_unknown"
	CauseClientDeleted   Cause = "client_deleted"
	CauseDocument        Cause = "document_unusable"      // the client's metadata document breaks a rule
	CauseDocumentAway    Cause = "document_not_available" // it could not be fetched
	CauseSpent           Cause = "spent"
	CauseRevoked         Cause = "revoked"
	CausePaused          Cause = "paused" // by the person
	CauseHeld            Cause = "held"   // the operator has paused or blocked the application
	CauseExpired         Cause = "expired"
	CauseMismatch        Cause = "mismatch" // of another client, redirect URI or verifier
	CauseUnknown         Cause = "unknown"
	CauseNotPermitted    Cause = "not_permitted"   // the person may have none of the requested scopes
	CauseRule            Cause = "rule"            // a rule of the provider's entry does not admit the person
	CauseProvider        Cause = "provider"        // the provider refused, or gave no usable answer
	CauseForm            Cause = "form_unknown"    // a form arrived without the cookie of its page, or too late
	CauseOrigin          Cause = "form_of_another" // by Origin or Sec-Fetch-Site, another site sent the form
	CauseHost            Cause = "host_unknown"    // the request named a host that this server does not serve
	CauseStorage         Cause = "storage"         // the database failed
)

// causes lists every cause.
var causes = []Cause{
	CauseUnregisteredURI, CauseScheme, CauseInClear, CauseClientUnknown, CauseClientDeleted, CauseDocument,
	CauseDocumentAway, CauseSpent, CauseRevoked, CausePaused, CauseHeld, CauseExpired, CauseMismatch,
	CauseUnknown, CauseNotPermitted, CauseRule, CauseProvider, CauseForm, CauseOrigin, CauseHost, CauseStorage,
}

// caused is an error with a known cause.
type caused struct {
	cause Cause
	error
}

// Unwrap returns the error.
func (c caused) Unwrap() error { return c.error }

// Because returns err with the cause c, for [oauth.Error.Because].
func (c Cause) Because(err error) error { return caused{c, err} }

// CauseOf returns the cause that [Cause.Because] gave err, or "".
func CauseOf(err error) Cause {
	var c caused
	errors.As(err, &c)
	return c.cause
}
