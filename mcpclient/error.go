package mcpclient

import (
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Error reports which step on the way to a token failed, the reason, and a remedy. It contains no
// token.
type Error struct {
	Step   string     // see Step
	Code   oauth.Code // the authorization server's error code; "" for other failures
	Why    string
	Advice string // may be ""

	temporary bool
	after     time.Duration // the wait that the server requests; 0 if it names none
}

// Error implements error.
func (e *Error) Error() string { return "mcpclient: " + e.Step + ": " + e.Why }

// Temporary reports whether the same request may succeed later without any change, for example when
// a server cannot be reached. A refusal by the authorization server is not temporary.
func (e *Error) Temporary() bool { return e.temporary }

func fail(step, advice, format string, args ...any) *Error {
	return &Error{Step: step, Why: fmt.Sprintf(format, args...), Advice: advice}
}

// of converts the error of a step to an *Error.
func of(step string, err error) *Error {
	var found *discovery.Error
	if errors.As(err, &found) {
		return &Error{Step: found.Step, Why: found.Why, Advice: found.Advice, temporary: found.Temporary}
	}
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	return fail(step, "", "%v", err)
}

// maxText is the maximum length of text quoted from a server's response, in bytes.
const maxText = 300

// printable returns a server's error text, shortened and without characters that could affect a
// terminal or a log.
func printable(s string) string {
	if s = oauth.SafeDescription(s); len(s) > maxText {
		return s[:maxText] + "..."
	}
	return s
}
