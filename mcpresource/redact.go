package mcpresource

import "strings"

// redact hides a token in an error's text, because a custom Validator or Clearances may quote it.
func redact(err error, token string) error {
	if err == nil || token == "" {
		return err
	}
	return redactedError{err, token}
}

type redactedError struct {
	error
	token string
}

// Error implements error.
func (e redactedError) Error() string { return strings.ReplaceAll(e.error.Error(), e.token, "[token]") }

// Unwrap returns the wrapped error.
func (e redactedError) Unwrap() error { return e.error }
