// Package refusal says why a request is refused: the protocol errors that more than one room
// answers with, and for operators the causes behind them.
package refusal

import (
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/attempt"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Causes of a refusal that more than the refusal itself depends on.
var (
	// ErrUnknownClient: nothing is known of a client id, rather than something being wrong
	// with it.
	ErrUnknownClient = errors.New("authserver: no such client is known")
	// ErrNotRegistered: the log has it instead of the redirect URI, whose query has no place
	// there.
	ErrNotRegistered = errors.New("the redirect URI is not registered for this client")
	// ErrUnknownToken: no server of this installation has issued a token.
	ErrUnknownToken = errors.New("authserver: not a token of this server")
	// ErrNoScopes: policy leaves a person none of the scopes that were asked for.
	ErrNoScopes = errors.New("authserver: policy permits none of the scopes")
)

// ErrIncomplete answers a form without a decision.
var ErrIncomplete = oauth.NewError(oauth.InvalidRequest, "The form was not complete.")

// StorageRetry is after how long a client should try again when the store failed.
const StorageRetry = 2 * time.Second

// Unavailable is the answer when the store fails: the request changed nothing
// that was acknowledged, and the client should try again.
func Unavailable(err error) error {
	e := oauth.NewError(oauth.TemporarilyUnavailable,
		"The server cannot reach its storage. Please try again.").Because(attempt.CauseStorage.Because(err))
	e.RetryAfter = StorageRetry
	return e
}

// Protocol passes on what says something to clients and people, and the one sentinel
// that does to us. Whatever else a delegation returns is its store that failed.
func Protocol(err error) error {
	var ours *oauth.Error
	if err == nil || errors.As(err, &ours) || errors.Is(err, storage.ErrRevoked) {
		return err
	}
	return Unavailable(err)
}

// Attr is a refusal as the log has it: the protocol's code, and the reason.
func Attr(err error) slog.Attr {
	return slog.Group("", slog.String("error", string(oauth.AsError(err).Code)), slog.String("reason", Reason(err)))
}

// reasons are what operators read of causes.
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

// Reason is why a request is refused, for operators: more than the client may learn.
func Reason(err error) string {
	cause, e := Cause(err), oauth.AsError(err)
	switch cause {
	case attempt.CauseHost:
		return Detail(err)
	case attempt.CauseProvider: // whose words are bounded and printable, and hold no secret
		return e.Description + " " + e.Unwrap().Error()
	}
	if reason, ok := reasons[cause]; ok {
		return reason
	}
	return e.Description
}

// Detail is Reason with what an attempt may say besides, to operators alone: the person and the rule, the host.
func Detail(err error) string {
	switch Cause(err) {
	case attempt.CauseRule, attempt.CauseHost, attempt.CauseDocumentAway:
		return oauth.AsError(err).Unwrap().Error()
	}
	return Reason(err)
}

// Cause is the same for programs, "" where the protocol's code and description say all.
func Cause(err error) attempt.Cause {
	e := oauth.AsError(err)
	cause := e.Unwrap()
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
