package attempt

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// How parameters are stored (OB-01). A parameter that is not listed is only counted: neither its
// name nor its value is stored, because secrets can be anywhere.
var (
	plain = []string{
		"response_type", "response_mode", "code_challenge_method", "prompt", "max_age", "acr_values", "grant_type",
		"token_type_hint", "subject_token_type", "requested_token_type", "actor_token_type", "client_assertion_type",
		"client_id", "scope", "error", "decision", "application_type", "token_endpoint_auth_method",
	}
	// addresses are stored without user information, query and fragment.
	addresses = []string{"redirect_uri", "resource", "audience", "iss"}
	// digested values are stored as digests, which show whether two are equal.
	digested = []string{"state", "code", "nonce", "refresh_token"}
	// given values are too short or too secret for a digest; only their length is stored.
	given = []string{
		"client_secret", "client_assertion", "assertion", "subject_token", "actor_token", "actor", "token",
		"device_code", "user_code", "login_hint", "request", "request_uri", "dpop_jkt", "error_description",
	}
)

const (
	maxValue  = 200
	maxParams = 24
	others    = "(others)"
)

// Digester computes keyed digests, which reveal nothing without the key.
type Digester []byte

// Digest returns the digest of the values together, or "" if all are empty.
func (d Digester) Digest(values ...string) string {
	if strings.Join(values, "") == "" {
		return ""
	}
	mac := hmac.New(sha256.New, d)
	for _, v := range values {
		fmt.Fprintf(mac, "%d:%s", len(v), v)
	}
	return hex.EncodeToString(mac.Sum(nil)[:6])
}

// Redact returns the storable part of the parameters, in the order of names. It skips names without
// a value.
func (d Digester) Redact(values url.Values, names []string) (out []Param) {
	unlisted := 0
	for _, name := range names {
		for _, v := range values[name] {
			kept, ok := d.kept(name, v)
			switch {
			case !ok, len(out) == maxParams:
				unlisted++
			default:
				out = append(out, Param{name, kept})
			}
		}
	}
	if unlisted > 0 {
		out = append(out, Param{others, fmt.Sprint(unlisted)})
	}
	return out
}

func (d Digester) kept(name, v string) (string, bool) {
	switch {
	case name == "code_challenge":
		return challengeShape(v), true
	case name == "code_verifier":
		return verifierShape(v), true
	case slices.Contains(plain, name):
		return cut(v, maxValue), true
	case slices.Contains(addresses, name):
		return cut(oauth.Redacted(v), maxValue), true
	case slices.Contains(digested, name):
		return fmt.Sprintf("(%s, digest %s)", characters(v), d.Digest(v)), true
	case slices.Contains(given, name):
		return "(" + characters(v) + ")", true
	}
	return "", false
}

// quoted matches a quotation in a description.
var quoted = regexp.MustCompile(`["'][^"']*["']`)

// Described returns a description for storage. Addresses quoted in it lose their query and
// fragment.
func Described(text string) string {
	return cut(quoted.ReplaceAllStringFunc(text, func(q string) string {
		if inner := q[1 : len(q)-1]; strings.Contains(inner, "://") {
			return q[:1] + cut(oauth.Redacted(inner), maxValue) + q[:1]
		}
		return q
	}), 2*maxValue)
}

// compared returns the first difference of two addresses, without data that must not be stored.
func compared(got string, want []string) *Difference {
	var shown []string
	for _, w := range want {
		if w == got {
			return nil
		}
		shown = append(shown, oauth.Redacted(w))
	}
	d := Nearest(oauth.Redacted(got), shown)
	if d == nil && len(want) > 0 {
		d = Nearest(got, want)
		d.Got, d.Want = "(after the path)", "(after the path)"
	}
	return d
}

// prefixOf returns the stored part of a challenge: enough to compare two.
func prefixOf(challenge string) string { return challenge[:min(len(challenge), 8)] }

// characters returns the length of a value in words.
func characters(v string) string { return label.Count(len(v), "character", "characters") }

func challengeShape(c string) string {
	if !oauth.ValidChallenge(c) {
		return fmt.Sprintf("(%s, not an S256 challenge)", characters(c))
	}
	return prefixOf(c) + "..."
}

// verifierShape returns the challenge of a verifier, since challenges can be compared. For an
// invalid verifier it names the fault.
func verifierShape(v string) string {
	if !oauth.ValidVerifier(v) {
		return fmt.Sprintf("(%s, not a verifier: %s)", characters(v), verifierFault(v))
	}
	return "of the challenge " + prefixOf(oauth.ChallengeS256(v)) + "..."
}

func verifierFault(v string) string {
	for i := range len(v) {
		if oauth.ValidVerifier(strings.Repeat(v[i:i+1], 43)) {
			continue
		}
		return fmt.Sprintf("byte %d is 0x%02x", i, v[i])
	}
	return "it must have 43 to 128"
}
