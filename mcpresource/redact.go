package mcpresource

import "strings"

// redact hides a token in the text of an error, which a Validator or Clearances of others may quote.
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

// Unwrap lets errors.Is find the error.
func (e redactedError) Unwrap() error { return e.error }
