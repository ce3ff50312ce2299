package authserver

import (
	"errors"
	"log/slog"
	"net/url"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// because is a refusal as the log has it: the protocol's code, and the reason.
func because(err error) slog.Attr {
	return slog.Group("", slog.String("error", string(oauth.AsError(err).Code)), slog.String("reason", reason(err)))
}

// reason is why a request is refused, for operators: more than the client may learn.
func reason(err error) string {
	e := oauth.AsError(err)
	cause := e.Unwrap()
	switch {
	case errors.Is(cause, errNotRegistered):
		return errNotRegistered.Error()
	case errors.Is(cause, errUnknown) && errors.Is(cause, storage.ErrRevoked):
		return "the client was deleted"
	case errors.Is(cause, errUnknown):
		return "the client is unknown"
	case e.Code != oauth.InvalidGrant || cause == nil:
		return e.Description
	case errors.Is(cause, storage.ErrSpent):
		return "used before, so the grant was revoked"
	case errors.Is(cause, storage.ErrRevoked):
		return "revoked"
	case errors.Is(cause, storage.ErrExpired):
		return "expired"
	case errors.Is(cause, storage.ErrMismatch):
		return "issued to another client, or for another redirect URI or verifier"
	case errors.Is(cause, storage.ErrNotFound):
		return "unknown: never issued, or ended long ago"
	}
	return e.Description
}

// redirectAsked is the redirect URI of a request, without what it may carry.
func redirectAsked(raw string) slog.Attr {
	u, err := url.Parse(raw)
	if err != nil {
		return slog.String("redirect_uri", "(not a URI)")
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return slog.String("redirect_uri", u.String())
}
