// Package logged prepares text that a caller may have chosen for logs and error messages.
package logged

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Reason shortens text that a caller may have chosen.
func Reason(s string) string {
	if len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(s[:maxReason], "") + "..."
}

const maxReason = 300 // bytes

// Cut shortens text to longest bytes, and marks the cut.
func Cut(s string, longest int) string {
	if len(s) > longest {
		return strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}

// Host returns an address without its port.
func Host(addr string) string {
	if ap, err := netip.ParseAddrPort(addr); err == nil {
		return ap.Addr().Unmap().String()
	}
	return addr
}

// Unexpected describes a value of a request or token, and the values that are accepted.
func Unexpected(what, got string, want ...string) string {
	accepted := make([]string, len(want))
	for i, w := range want {
		accepted[i] = strconv.Quote(w)
	}
	return fmt.Sprintf("%s %q, want %s", what, Cut(got, 200), strings.Join(accepted, " or "))
}

// Redact hides a token in an error's text, because a custom Validator or Clearances may quote it.
func Redact(err error, token string) error {
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
