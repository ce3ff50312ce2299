package ways

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// Ceremony is what a browser needs to go on with what was begun.
type Ceremony struct {
	// Options are those of navigator.credentials.create or get, as JSON; nil for an app.
	Options []byte
	// Sealed comes back with the answer. It is good for five minutes, in the browser in which it
	// began, and for one answer.
	Sealed string
}

// Answer is what a browser sends back.
type Answer struct {
	Sealed string
	// Response is the credential in the form of toJSON (WebAuthn §5.1.8).
	Response []byte
}

// Purpose is what a passkey is asked for. An answer for one is none for another.
type Purpose string

// The purposes.
const (
	// SignIn: it is all that the person shows, so it must have verified them.
	SignIn Purpose = "sign-in"
	// Second: the person has shown something else before.
	Second Purpose = "second"
	// StepUp is that of a person who is signed in already, for a class of authentication: the passkey has
	// to verify them, since the proof that it stands beside may be an old one.
	StepUp Purpose = "step-up"
	// Proof: a person who is signed in shows that they are still there.
	Proof Purpose = "proof"

	enrol    Purpose = "enrol"
	enrolApp Purpose = "app"
)

const (
	// ceremonyTTL is how long a person has to find their authenticator.
	ceremonyTTL = 5 * time.Minute
	// maxAnswer bounds what a browser sends back, in bytes.
	maxAnswer = 64 << 10

	sealPurpose = "way in under way"
	spent       = "webauthn"
)

// state is what Sealed holds. The browser's mark is bound to it from outside.
type state struct {
	Purpose   Purpose `json:"p"`
	UserID    string  `json:"u,omitempty"`
	Challenge string  `json:"c,omitempty"`
	RPID      string  `json:"r,omitempty"`
	Secret    []byte  `json:"s,omitempty"` // of a new app
	ExpiresAt int64   `json:"e"`           // in milliseconds
}

func (s state) expires() time.Time { return time.UnixMilli(s.ExpiresAt) }

// seal hides and binds a state to a browser.
func (w *Ways) seal(browser string, s state) string {
	s.ExpiresAt = w.cfg.Now().Add(ceremonyTTL).UnixMilli()
	text, err := json.Marshal(s)
	if err != nil {
		panic("ways: " + err.Error()) // texts and bytes always encode
	}
	return encode(w.cfg.Ring.Seal(sealPurpose, text, []byte(browser)))
}

// open is the reverse of seal: ErrOver unless it was sealed for the browser and purpose, less than
// five minutes ago.
func (w *Ways) open(browser string, p Purpose, sealed string) (s state, err error) {
	if len(sealed) > maxAnswer || browser == "" { // bound to no browser is good for all
		return s, ended("it is too long, or no browser has begun it")
	}
	box, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return s, ended("it is not of this server")
	}
	text, err := w.cfg.Ring.Open(sealPurpose, box, []byte(browser))
	if err != nil || json.Unmarshal(text, &s) != nil {
		return s, ended("it began in another browser, or on another server")
	}
	switch {
	case s.Purpose != p:
		return s, ended("it began for another purpose")
	case !w.cfg.Now().Before(s.expires()):
		return s, ended("it took too long")
	}
	return s, nil
}

// refused is ErrRefused with its cause, for the log.
func refused(cause error) error { return fmt.Errorf("%w: %w", ErrRefused, cause) }

// ended is ErrOver with its cause, for the log.
func ended(cause string) error { return fmt.Errorf("%w: %s", ErrOver, cause) }

// over is ErrOver for what was spent before, or the store's error.
func over(err error) error {
	if errors.Is(err, storage.ErrSpent) {
		return ended("it was answered before")
	}
	return fmt.Errorf("ways: %w", err)
}
