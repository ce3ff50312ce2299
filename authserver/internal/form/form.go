// Package form applies the rules that are common to the parameters of all OAuth requests. The edge
// reads the requests.
package form

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Params are the parameters of an OAuth request after the common rules. A parameter without a value
// is treated as absent, an unknown one is ignored, and a repeated one is refused, except resource
// (OAuth 2.1 §3.1, §3.2; RFC 8707 §2; AS-07, AS-08, AS-09).
type Params struct {
	Values   url.Values
	repeated string // the first repeated parameter, or ""
}

// known lists the parameters that this server uses. Others are ignored and may repeat.
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

// Get returns a single-valued parameter, or "" if it is absent or repeated.
func (p Params) Get(name string) string {
	if v := p.Values[name]; len(v) == 1 {
		return v[0]
	}
	return ""
}

// Resources returns all resource parameters with a value, for authorization requests and token
// requests (RFC 8707 §2, AS-103).
func (p Params) Resources() []string {
	var out []string
	for _, v := range p.Values["resource"] {
		if v != "" {
			out = append(out, v)
		}
	}
	return out
}

// MaxAge returns the maximum age of the user's authentication (OpenID Connect Core §3.1.2.1,
// RFC 9470 §4). ok is false if the request has none. A value that is not a number is refused: if it
// were ignored, the client would get a token without the authentication that it requested.
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
	if err != nil || seconds > longest { // more digits than fit: effectively no limit
		seconds = longest
	}
	return time.Duration(seconds) * time.Second, true, nil
}

// ACR returns the weakest class in acr_values that users can reach here; reachable lists these,
// weakest first. A request with only other classes is refused: the client would otherwise return
// with an equally weak token (RFC 9470 §5, AS-238).
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
	return "", sentence.NewError(oauth.UnmetAuthentication, "This server has none of the requested acr_values.", "no_acr")
}

// CheckRepeated refuses a request that repeats a known parameter.
func (p Params) CheckRepeated() error {
	if p.repeated != "" {
		return oauth.NewError(oauth.InvalidRequest, "The parameter '"+p.repeated+"' is repeated.")
	}
	return nil
}

// Cut returns the first n bytes of a parameter, for the log.
func Cut(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
