package oauth

import (
	"crypto/sha256"
	"encoding/base64"
)

// S256 is the only supported code_challenge_method (RFC 7636 §4.2; OAuth 2.1 §4.1.1). "plain", the
// default if the method is omitted, is refused.
const S256 = "S256"

// ValidChallenge reports whether c can be an S256 code_challenge: the unpadded
// base64url form of a SHA-256 digest, 43 characters (RFC 7636 §4.2, AS-66).
func ValidChallenge(c string) bool {
	// The decoder skips line breaks, so the length of the decoded digest is checked as well as the
	// text's.
	d, err := base64.RawURLEncoding.DecodeString(c)
	return err == nil && len(c) == 43 && len(d) == sha256.Size
}

// ValidVerifier reports whether v is a code_verifier: 43 to 128 unreserved
// characters (RFC 7636 §4.1, AS-66).
func ValidVerifier(v string) bool {
	if len(v) < 43 || len(v) > 128 {
		return false
	}
	for i := range len(v) {
		switch c := v[i]; {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9',
			c == '-', c == '.', c == '_', c == '~':
		default:
			return false
		}
	}
	return true
}

// ChallengeS256 returns the challenge of a verifier (RFC 7636 §4.2, AS-62).
func ChallengeS256(verifier string) string {
	d := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(d[:])
}
