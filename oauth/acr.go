package oauth

import "slices"

// The authentication context classes of this project (RFC 9470 §4, OpenID Connect Core §2), which
// grade how a user authenticated. A stronger class includes the weaker one.
const (
	// ACRMultiFactor means that two factors were used (REFEDS MFA Profile).
	ACRMultiFactor = "https://refeds.org/profile/mfa"
	// ACRPhishingResistant means that a phishing site cannot relay the authentication. Examples are
	// a passkey with user verification, or a passkey after another factor (OpenID Connect Extended
	// Authentication Profile ACR Values 1.0 §3).
	ACRPhishingResistant = "phr"
)

// ACRs returns the classes, weakest first.
func ACRs() []string { return []string{ACRMultiFactor, ACRPhishingResistant} }

// ValidACR reports whether acr is a class that this project knows.
func ValidACR(acr string) bool { return slices.Contains(ACRs(), acr) }

// ACRsFrom returns acr and all stronger classes: any of them satisfies a request for acr. An
// unknown class is returned alone. The result is empty if acr is "".
func ACRsFrom(acr string) []string {
	if acr == "" {
		return nil
	}
	if i := slices.Index(ACRs(), acr); i >= 0 {
		return ACRs()[i:]
	}
	return []string{acr}
}

// ACRSatisfies reports whether an authentication of class held is sufficient where wanted is
// required. Every class satisfies a wanted of ""; a held of "" satisfies only that.
func ACRSatisfies(held, wanted string) bool {
	return wanted == "" || slices.Contains(ACRsFrom(wanted), held)
}

// StrongerACR returns the stronger of two classes.
func StrongerACR(a, b string) string {
	if ACRSatisfies(a, b) {
		return a
	}
	return b
}
