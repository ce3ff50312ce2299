package signin

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Proof is how a person has to prove who they are, in the words of the challenge that asks for it (RFC 9470 §3). The
// zero value asks for nothing.
type Proof struct {
	ACRValues string // acr_values: the ways, of which one is enough, separated by spaces; "": any
	MaxAge    string // max_age: how long ago at most, in seconds; "": at any time
}

// proofOf is what the parameters of a challenge ask for. A max_age that is no number of seconds asks for nothing.
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

// Demands reports whether it asks for anything.
func (p Proof) Demands() bool { return p != Proof{} }

// String names what is asked for, for people.
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

// set adds the parameters to a request for a sign-in (RFC 9470 §4).
func (p Proof) set(query url.Values) {
	for name, value := range map[string]string{"acr_values": p.ACRValues, "max_age": p.MaxAge} {
		if value != "" {
			query.Set(name, value)
		}
	}
}
