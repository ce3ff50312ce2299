// Package refusal defines protocol errors that several packages return, and the reasons for the
// log.
package refusal

import (
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Causes of a refusal that other code checks for.
var (
	// ErrUnknownClient reports that a client id is unknown, not that the client is invalid.
	ErrUnknownClient = errors.New("authserver: no such client is known")
	// ErrNotRegistered is logged in place of the redirect URI, whose query must not be logged.
	ErrNotRegistered = errors.New("the redirect URI is not registered for this client")
	// ErrUnknownToken reports a token that no server of this installation has issued.
	ErrUnknownToken = errors.New("authserver: not a token of this server")
	// ErrNoScopes reports that policy allows a user none of the requested scopes.
	ErrNoScopes = errors.New("authserver: policy permits none of the scopes")
)

// ErrIncomplete is the error for a form without a decision.
var ErrIncomplete = sentence.NewError(oauth.InvalidRequest, "The form was not complete.", "form_incomplete")

// StorageRetry is the Retry-After of an error after the store failed.
const StorageRetry = 2 * time.Second

// Unavailable returns the error for a failed store: no change was confirmed to the client, and it
// should try again.
func Unavailable(err error) error {
	e := sentence.NewError(oauth.TemporarilyUnavailable,
		"The server cannot reach its storage. Please try again.", "storage").Because(attempt.CauseStorage.Because(err))
	e.RetryAfter = StorageRetry
	return e
}

// Protocol returns *oauth.Errors and storage.ErrRevoked unchanged. Every other error of a
// delegation means that its store failed.
func Protocol(err error) error {
	var ours *oauth.Error
	if err == nil || errors.As(err, &ours) || errors.Is(err, storage.ErrRevoked) {
		return err
	}
	return Unavailable(err)
}

// Attr returns the log fields of a refusal: the protocol's code, and the reason.
func Attr(err error) slog.Attr {
	return slog.Group("", slog.String("error", string(oauth.AsError(err).Code)), slog.String("reason", Reason(err)))
}

// reasons are the operators' texts for causes.
var reasons = map[attempt.Cause]string{
	attempt.CauseUnregisteredURI: ErrNotRegistered.Error(),
	attempt.CauseClientDeleted:   "the client was deleted",
	attempt.CauseClientUnknown:   "the client is unknown",
	attempt.CauseSpent:           "used before, so the grant was revoked",
	attempt.CauseRevoked:         "revoked",
	attempt.CauseExpired:         "expired",
	attempt.CauseMismatch:        "issued to another client, or for another redirect URI or verifier",
	attempt.CauseUnknown:         "unknown: never issued, or ended long ago",
}

// Reason returns why a request was refused, for operators. It may tell more than the client may
// learn.
func Reason(err error) string {
	cause, e := Cause(err), oauth.AsError(err)
	switch cause {
	case attempt.CauseHost:
		return Detail(err)
	case attempt.CauseProvider: // a provider's text is bounded, printable and free of secrets
		return e.Description + " " + sentence.Cause(e).Error()
	}
	if reason, ok := reasons[cause]; ok {
		return reason
	}
	return e.Description
}

// Detail is Reason with further facts that only operators may see in attempts: the user and the
// rule, or the host.
func Detail(err error) string {
	switch Cause(err) {
	case attempt.CauseRule, attempt.CauseHost, attempt.CauseDocumentAway:
		return sentence.Cause(oauth.AsError(err)).Error()
	}
	return Reason(err)
}

// Cause returns the machine-readable reason, or "" if the protocol's code and description are
// sufficient.
func Cause(err error) attempt.Cause {
	e := oauth.AsError(err)
	cause := sentence.Cause(e)
	if known := attempt.CauseOf(cause); known != "" {
		return known
	}
	switch {
	case errors.Is(cause, ErrNotRegistered):
		return attempt.CauseUnregisteredURI
	case errors.Is(cause, ErrUnknownClient) && errors.Is(cause, storage.ErrRevoked):
		return attempt.CauseClientDeleted
	case errors.Is(cause, ErrUnknownClient):
		return attempt.CauseClientUnknown
	case errors.Is(cause, ErrNoScopes):
		return attempt.CauseNotPermitted
	case errors.Is(cause, storage.ErrPaused):
		return attempt.CausePaused
	case e.Code != oauth.InvalidGrant || cause == nil:
		return ""
	case errors.Is(cause, storage.ErrSpent):
		return attempt.CauseSpent
	case errors.Is(cause, storage.ErrRevoked):
		return attempt.CauseRevoked
	case errors.Is(cause, storage.ErrExpired):
		return attempt.CauseExpired
	case errors.Is(cause, storage.ErrMismatch):
		return attempt.CauseMismatch
	case errors.Is(cause, storage.ErrNotFound), errors.Is(cause, ErrUnknownToken):
		return attempt.CauseUnknown
	}
	return ""
}
