package authserver

import "time"

// TokenPolicy configures lifetimes. Zero fields take the documented defaults.
type TokenPolicy struct {
	// CodeTTL is the lifetime of a code. Default: 60 seconds.
	CodeTTL time.Duration
	// AccessTTL is the lifetime of an access token. Default: 15 minutes. With less than five
	// minutes, clients that refresh five minutes in advance would refresh before every request.
	AccessTTL time.Duration
	// RefreshIdleTTL is the lifetime of an unused refresh token. Default: 30 days.
	RefreshIdleTTL time.Duration
	// RefreshMaxTTL is the lifetime of a grant, including refreshes. Default: 180 days.
	RefreshMaxTTL time.Duration
	// RefreshGrace is how long a spent refresh token gets the same reply again, for parallel and
	// retried refreshes. Default: 60 seconds. Negative: never.
	RefreshGrace time.Duration
	// StatusTTL is how long a resource server may cache a status list. Default: 7 seconds. At
	// resource servers that read the lists, a revoked access token stays valid for this time plus
	// one second, or plus two behind a cache. Negative: tokens refer to no list.
	StatusTTL time.Duration
	// Algorithm is the signature algorithm of access tokens: ES256 (default), EdDSA or RS256.
	Algorithm string
}

// DefaultTokenPolicy returns the defaults of a zero TokenPolicy.
func DefaultTokenPolicy() TokenPolicy {
	return TokenPolicy{
		CodeTTL:        time.Minute,
		AccessTTL:      15 * time.Minute,
		RefreshIdleTTL: 30 * 24 * time.Hour,
		RefreshMaxTTL:  180 * 24 * time.Hour,
		RefreshGrace:   time.Minute,
		StatusTTL:      7 * time.Second,
		Algorithm:      "ES256",
	}
}

// KeyPolicy configures the rotation of the signing key, which Run carries out. Zero fields take the
// documented defaults.
type KeyPolicy struct {
	// RotateEvery is how long a key signs. Default: 90 days. Negative: no rotation.
	RotateEvery time.Duration
	// PublishAhead is how long a key is published before it signs, so that every resource server
	// that reads the JWK Set regularly has it. Default: 10 minutes. Negative: no delay.
	PublishAhead time.Duration
}

// DefaultKeyPolicy returns the defaults of a zero KeyPolicy.
func DefaultKeyPolicy() KeyPolicy {
	return KeyPolicy{RotateEvery: 90 * 24 * time.Hour, PublishAhead: 10 * time.Minute}
}

// ProgramKeyPolicy configures the API keys that users create for their programs. These are not the
// signing keys of KeyPolicy.
type ProgramKeyPolicy struct {
	// Off disables creating keys, and all existing keys.
	Off bool
	// MaxTTL is the maximum lifetime of a new key. Default: 90 days. Existing keys keep their
	// lifetime.
	MaxTTL time.Duration
}

// DefaultProgramKeyTTL is the default of ProgramKeyPolicy.MaxTTL.
const DefaultProgramKeyTTL = 90 * 24 * time.Hour

// Limits of ProgramKeyPolicy.MaxTTL: a forgotten key must expire.
const (
	MinProgramKeyTTL = 24 * time.Hour
	MaxProgramKeyTTL = 366 * 24 * time.Hour
)
