package signin

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Proof is the authentication that a challenge requires of the user (RFC 9470 §3). The zero value
// requires nothing.
type Proof struct {
	ACRValues string // acr_values: sufficient authentication contexts, separated by spaces; "": any
	MaxAge    string // max_age: maximum age in seconds; "": any
}

// proofOf returns the proof that a challenge requires. It ignores a max_age that is not a number of
// seconds.
func proofOf(params map[string]string) Proof {
	if oauth.Code(params["error"]) != oauth.InsufficientAuthentication {
		return Proof{}
	}
	p := Proof{ACRValues: strings.Join(strings.Fields(params["acr_values"]), " ")}
	if seconds, err := strconv.ParseUint(params["max_age"], 10, 31); err == nil {
		p.MaxAge = strconv.FormatUint(seconds, 10)
	}
	return p
}

// Demands reports whether the proof requires anything.
func (p Proof) Demands() bool { return p != Proof{} }

// String describes the requirements for users.
func (p Proof) String() string {
	var out []string
	if p.ACRValues != "" {
		out = append(out, "acr_values "+p.ACRValues)
	}
	if p.MaxAge != "" {
		out = append(out, "max_age "+p.MaxAge)
	}
	return strings.Join(out, ", ")
}

// set adds the parameters to an authorization request (RFC 9470 §4).
func (p Proof) set(query url.Values) {
	for name, value := range map[string]string{"acr_values": p.ACRValues, "max_age": p.MaxAge} {
		if value != "" {
			query.Set(name, value)
		}
	}
}
