package ways

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Ceremony is the data that a browser needs to continue.
type Ceremony struct {
	// Options are the options for navigator.credentials.create or get as JSON, or nil for an app.
	Options []byte
	// Sealed comes back with the answer. It is valid for five minutes, only in the same browser,
	// and for one answer.
	Sealed string
}

// Answer is the browser's answer to a Ceremony.
type Answer struct {
	Sealed string
	// Response is the credential in the form of toJSON (WebAuthn §5.1.8).
	Response []byte
}

// Purpose is the purpose of a passkey request. An answer is valid only for its purpose.
type Purpose string

// These are the purposes.
const (
	// SignIn means that the passkey is the only proof, so it must verify the user.
	SignIn Purpose = "sign-in"
	// Second means that the user has already used another method.
	Second Purpose = "second"
	// StepUp means that a signed-in user needs an authentication context class. The passkey must
	// verify the user, since the session's other proof may be old.
	StepUp Purpose = "step-up"
	// Proof means that a signed-in user proves to be still present.
	Proof Purpose = "proof"

	enrol    Purpose = "enrol"
	enrolApp Purpose = "app"
)

const (
	// ceremonyTTL is the time limit for the user.
	ceremonyTTL = 5 * time.Minute
	// maxAnswer is the maximum size of a browser's answer in bytes.
	maxAnswer = 64 << 10

	sealPurpose = "way in under way"
	spent       = "webauthn"
)

// state is the content of Sealed. Sealing also binds it to the browser.
type state struct {
	Purpose   Purpose `json:"p"`
	UserID    string  `json:"u,omitempty"`
	Challenge string  `json:"c,omitempty"`
	RPID      string  `json:"r,omitempty"`
	Secret    []byte  `json:"s,omitempty"` // of a new app
	ExpiresAt int64   `json:"e"`           // in milliseconds
}

func (s state) expires() time.Time { return time.UnixMilli(s.ExpiresAt) }

// seal encrypts a state and binds it to a browser.
func (w *Ways) seal(browser string, s state) string {
	s.ExpiresAt = w.cfg.Now().Add(ceremonyTTL).UnixMilli()
	text, err := json.Marshal(s)
	if err != nil {
		panic("ways: " + err.Error()) // cannot fail
	}
	return encode(w.cfg.Ring.Seal(sealPurpose, text, []byte(browser)))
}

// open decrypts a sealed state. It returns ErrOver unless the state was sealed for this browser and
// purpose less than five minutes ago.
func (w *Ways) open(browser string, p Purpose, sealed string) (s state, err error) {
	if len(sealed) > maxAnswer || browser == "" { // without a browser, it would be valid in all browsers
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

// refused wraps ErrRefused with its cause, for the log.
func refused(cause error) error { return fmt.Errorf("%w: %w", ErrRefused, cause) }

// ended wraps ErrOver with its cause, for the log.
func ended(cause string) error { return fmt.Errorf("%w: %s", ErrOver, cause) }

// over returns ErrOver if a state was already used, or the store's error.
func over(err error) error {
	if errors.Is(err, storage.ErrSpent) {
		return ended("it was answered before")
	}
	return fmt.Errorf("ways: %w", err)
}
