package authserver

import "time"

// TokenPolicy holds lifetimes. Zero fields take the defaults named here.
type TokenPolicy struct {
	// CodeTTL: 60 seconds.
	CodeTTL time.Duration
	// AccessTTL: 15 minutes. With less than five minutes, clients that refresh five minutes ahead
	// of time would refresh before every request.
	AccessTTL time.Duration
	// RefreshIdleTTL ends a refresh token that is not used: 30 days.
	RefreshIdleTTL time.Duration
	// RefreshMaxTTL ends a grant however often it is refreshed: 180 days.
	RefreshMaxTTL time.Duration
	// RefreshGrace is how long a spent refresh token gets the same reply again, for parallel and
	// retried refreshes: 60 seconds. Negative: never.
	RefreshGrace time.Duration
	// StatusTTL is how long a resource server may keep a status list: 7 seconds. An access token
	// outlives the revocation of its grant by so much plus one second at resource servers that read
	// the lists, and by one second more behind a cache. Negative: tokens name no list.
	StatusTTL time.Duration
	// Algorithm signs access tokens: ES256 (default), EdDSA or RS256.
	Algorithm string
}

// DefaultTokenPolicy is what the zero TokenPolicy means.
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

// KeyPolicy says when the signing key changes. Zero fields take the defaults named here.
// Run carries it out.
type KeyPolicy struct {
	// RotateEvery is how long a key signs: 90 days. Negative: it is never replaced.
	RotateEvery time.Duration
	// PublishAhead is how long a key is published before it signs, and so known to every
	// resource server that reads the JWK Set as often as it should: 10 minutes.
	// Negative: not at all.
	PublishAhead time.Duration
}

// DefaultKeyPolicy is what the zero KeyPolicy means.
func DefaultKeyPolicy() KeyPolicy {
	return KeyPolicy{RotateEvery: 90 * 24 * time.Hour, PublishAhead: 10 * time.Minute}
}

// ProgramKeyPolicy says whether people may make keys for programs of theirs, and for how long. It
// has nothing to do with the signing keys of KeyPolicy.
type ProgramKeyPolicy struct {
	// Off: no person makes a key, and none that was made is good.
	Off bool
	// MaxTTL is how long a key lives at most: 90 days. What was made stays as it is.
	MaxTTL time.Duration
}

// DefaultProgramKeyTTL is the default of ProgramKeyPolicy.MaxTTL.
const DefaultProgramKeyTTL = 90 * 24 * time.Hour

// The bounds of ProgramKeyPolicy.MaxTTL: a key that nobody remembers must end.
const (
	MinProgramKeyTTL = 24 * time.Hour
	MaxProgramKeyTTL = 366 * 24 * time.Hour
)
