package oauth_test

import (
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// The vector of RFC 7636 appendix B.
const (
	vectorVerifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	vectorChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

func TestChallengeS256(t *testing.T) {
	t.Run("AS-62 RFC 7636 appendix B: the vector", func(t *testing.T) {
		if got := oauth.ChallengeS256(vectorVerifier); got != vectorChallenge {
			t.Errorf("got %q, want %q", got, vectorChallenge)
		}
	})
}

func TestValidVerifier(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     bool
	}{
		{"AS-66 RFC 7636 4.1: 43 characters", strings.Repeat("a", 43), true},
		{"AS-66 RFC 7636 4.1: 42 characters", strings.Repeat("a", 42), false},
		{"AS-66 RFC 7636 4.1: 128 characters", strings.Repeat("a", 128), true},
		{"AS-66 RFC 7636 4.1: 129 characters", strings.Repeat("a", 129), false},
		{"AS-66 RFC 7636 4.1: unreserved characters", strings.Repeat("a", 39) + "-._~", true},
		{"AS-66 RFC 7636 4.1: plus", strings.Repeat("a", 43) + "+", false},
		{"AS-66 RFC 7636 4.1: space", strings.Repeat("a", 43) + " ", false},
		{"AS-66 RFC 7636 4.1: padding", strings.Repeat("a", 43) + "=", false},
		{"AS-66 RFC 7636 4.1: non-ASCII", strings.Repeat("a", 43) + "é", false},
		{"AS-66 RFC 7636 4.1: NUL", strings.Repeat("a", 43) + "\x00", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := oauth.ValidVerifier(tt.in); got != tt.want {
				t.Errorf("ValidVerifier(%q): got %v, want %v", tt.in, got, tt.want)
			}
		})
	}
}

func TestValidChallenge(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     bool
	}{
		{"AS-62 RFC 7636 4.2: the vector", vectorChallenge, true},
		{"AS-66: 42 characters", vectorChallenge[:42], false},
		{"AS-66: 44 characters", vectorChallenge + "A", false},
		{"AS-66: padded", vectorChallenge + "=", false},
		{"AS-66: base64 of the other alphabet", strings.Replace(vectorChallenge, "-", "+", 1), false},
		{"AS-66: a verifier's tilde", "~" + vectorChallenge[1:], false},
		{"AS-66: line breaks, which the decoder skips", vectorChallenge[:39] + "\n\n\n\n", false},
		{"AS-61: empty", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := oauth.ValidChallenge(tt.in); got != tt.want {
				t.Errorf("ValidChallenge(%q): got %v, want %v", tt.in, got, tt.want)
			}
		})
	}
}
