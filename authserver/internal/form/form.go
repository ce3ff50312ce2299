// Package form has the parameters of an OAuth request under the rules that are common to all
// of them. Reading a request is for the edge.
package form

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Params are the parameters of an OAuth request after the common rules: a
// parameter without a value is treated as absent, an unknown one is ignored, and a
// repeated one is refused, except resource (OAuth 2.1 §3.1, §3.2; RFC 8707 §2; AS-07, AS-08,
// AS-09).
type Params struct {
	Values   url.Values
	repeated string // the first repeated parameter, "" when none is
}

// known are the parameters that this server gives a meaning. Others may
// repeat or not: they are ignored.
var known = []string{
	"response_type", "response_mode", "client_id", "redirect_uri", "scope", "state",
	"code_challenge", "code_challenge_method", "nonce", "prompt", "max_age", "acr_values", "request", "request_uri",
	"grant_type", "code", "code_verifier", "refresh_token", "client_secret",
	"client_assertion", "client_assertion_type", "token", "token_type_hint",
	"subject_token", "subject_token_type", "requested_token_type", "actor_token", "actor_token_type",
	"actor", "expires_in",
	"device_code", "user_code", "dpop_jkt",
}

// New returns the parameters of a form or a query.
func New(values url.Values) Params {
	p := Params{Values: values}
	for _, k := range known {
		v := values[k]
		if len(v) > 1 && p.repeated == "" {
			p.repeated = k
		}
	}
	return p
}

// Get returns a single-valued parameter, "" when absent or repeated.
func (p Params) Get(name string) string {
	if v := p.Values[name]; len(v) == 1 {
		return v[0]
	}
	return ""
}

// Resources returns every resource parameter that has a value, of an authorization request and
// of a token request alike (RFC 8707 §2, AS-103).
func (p Params) Resources() []string {
	var out []string
	for _, v := range p.Values["resource"] {
		if v != "" {
			out = append(out, v)
		}
	}
	return out
}

// MaxAge returns how long ago at most the person may have proved who they are (OpenID Connect Core §3.1.2.1,
// RFC 9470 §4); ok is false when the request does not say. A value that is not a number is refused: to ignore it
// would give the client a token without the proof that it asked for.
func (p Params) MaxAge() (age time.Duration, ok bool, err error) {
	value := p.Get("max_age")
	if value == "" {
		return 0, false, nil
	}
	if strings.Trim(value, "0123456789") != "" {
		return 0, false, oauth.NewError(oauth.InvalidRequest, "The parameter 'max_age' must be a number of seconds.")
	}
	const longest = 1 << 30
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil || seconds > longest { // more digits than fit: as good as no limit
		seconds = longest
	}
	return time.Duration(seconds) * time.Second, true, nil
}

// ACR is what acr_values demand: the weakest of the classes that people can reach here, which are given the
// weakest first. A request for others alone cannot be fulfilled, and the client that makes it would be back
// with the same token at once (RFC 9470 §5, AS-238).
func (p Params) ACR(reachable []string) (string, error) {
	values := strings.Fields(p.Get("acr_values"))
	if len(values) == 0 {
		return "", nil
	}
	for _, acr := range reachable {
		if slices.Contains(values, acr) {
			return acr, nil
		}
	}
	return "", oauth.NewError(oauth.UnmetAuthentication, "This server has none of the requested acr_values.")
}

// CheckRepeated refuses a request that has a known parameter twice.
func (p Params) CheckRepeated() error {
	if p.repeated != "" {
		return oauth.NewError(oauth.InvalidRequest, "The parameter '"+p.repeated+"' is repeated.")
	}
	return nil
}

// Cut returns what a log should hold of a parameter: its first n bytes.
func Cut(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
