package oauth

import "slices"

// The authentication context classes of this project (RFC 9470 §4, OpenID Connect Core §2): how well a
// person has proved who they are. The stronger one includes the other.
const (
	// ACRMultiFactor is two factors (REFEDS MFA Profile).
	ACRMultiFactor = "https://refeds.org/profile/mfa"
	// ACRPhishingResistant is a proof that a page of another site cannot pass on, such as a passkey that
	// verified the person, or that followed another factor (OpenID Connect Extended Authentication Profile
	// ACR Values 1.0 §3).
	ACRPhishingResistant = "phr"
)

// ACRs returns the classes, the weakest first.
func ACRs() []string { return []string{ACRMultiFactor, ACRPhishingResistant} }

// ValidACR reports whether this project knows a class.
func ValidACR(acr string) bool { return slices.Contains(ACRs(), acr) }

// ACRsFrom returns a class and the stronger ones: what satisfies a demand for it. A class of others has
// no stronger one, "" none at all.
func ACRsFrom(acr string) []string {
	if acr == "" {
		return nil
	}
	if i := slices.Index(ACRs(), acr); i >= 0 {
		return ACRs()[i:]
	}
	return []string{acr}
}

// ACRSatisfies reports whether a proof of the class held is enough where wanted is. "" is no class: it
// satisfies nothing but itself.
func ACRSatisfies(held, wanted string) bool {
	return wanted == "" || slices.Contains(ACRsFrom(wanted), held)
}

// StrongerACR returns the one of two classes that includes the other.
func StrongerACR(a, b string) string {
	if ACRSatisfies(a, b) {
		return a
	}
	return b
}
