package mcpclient

import (
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Error says which step on the way to a token failed, why, and what to do about it. It holds no
// token.
type Error struct {
	Step   string     // see Step
	Code   oauth.Code // what the authorization server answered; "": the step failed otherwise
	Why    string
	Advice string // "": none

	temporary bool
	after     time.Duration // how long the server asks to wait; 0: it does not say
}

// Error implements error.
func (e *Error) Error() string { return "mcpclient: " + e.Step + ": " + e.Why }

// Temporary reports whether the same request may succeed later although nothing was changed, as when
// a server cannot be reached. A refusal of the authorization server is not temporary.
func (e *Error) Temporary() bool { return e.temporary }

func fail(step, advice, format string, args ...any) *Error {
	return &Error{Step: step, Why: fmt.Sprintf(format, args...), Advice: advice}
}

// of makes an Error of what a step returned.
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

// maxText bounds what is repeated of an answer of a server, in bytes.
const maxText = 300

// printable is what a server says about its refusal, without what could change a terminal or a log.
func printable(s string) string {
	if s = oauth.SafeDescription(s); len(s) > maxText {
		return s[:maxText] + "..."
	}
	return s
}
