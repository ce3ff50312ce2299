package authserver

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// maxFormBytes bounds the body of every form that this server reads.
const maxFormBytes = 64 << 10

// params are the parameters of an OAuth request after the common rules: a
// parameter without a value is treated as absent, an unknown one is ignored, and a
// repeated one is refused, except resource (OAuth 2.1 §3.1, §3.2; RFC 8707 §2; AS-08, AS-09).
type params struct {
	values   url.Values
	repeated string // the first repeated parameter, "" when none is
}

// knownParams are the parameters that this server gives a meaning. Others may
// repeat or not: they are ignored.
var knownParams = []string{
	"response_type", "response_mode", "client_id", "redirect_uri", "scope", "state",
	"code_challenge", "code_challenge_method", "prompt", "max_age", "request", "request_uri",
	"grant_type", "code", "code_verifier", "refresh_token", "client_secret",
	"client_assertion", "client_assertion_type", "token", "token_type_hint",
	"subject_token", "subject_token_type", "requested_token_type", "actor_token", "actor_token_type",
}

func newParams(values url.Values) params {
	p := params{values: values}
	for _, k := range knownParams {
		v := values[k]
		if len(v) > 1 && p.repeated == "" {
			p.repeated = k
		}
	}
	return p
}

// get returns a single-valued parameter, "" when absent or repeated.
func (p params) get(name string) string {
	if v := p.values[name]; len(v) == 1 {
		return v[0]
	}
	return ""
}

// resources returns every resource parameter that has a value.
func (p params) resources() []string {
	var out []string
	for _, v := range p.values["resource"] {
		if v != "" {
			out = append(out, v)
		}
	}
	return out
}

func (p params) checkRepeated() error {
	if p.repeated != "" {
		return oauth.NewError(oauth.InvalidRequest, "The parameter '"+p.repeated+"' is repeated.")
	}
	return nil
}

// credentialParams must never travel in a URL: it is logged on the way.
var credentialParams = []string{"client_secret", "client_assertion", "code", "code_verifier", "refresh_token", "token", "subject_token", "grant_type"}

// readForm reads the form of a direct request. Only the body counts; credentials in
// the query are refused, not ignored, so that a client that leaks them finds out.
func readForm(r *http.Request) (params, error) {
	query := r.URL.Query()
	for _, k := range credentialParams {
		if query.Has(k) {
			return params{}, oauth.NewError(oauth.InvalidRequest, "Parameters must be sent in the request body, not in the URL.")
		}
	}
	values, err := readBody(r)
	if err != nil {
		return params{}, err
	}
	p := newParams(values)
	return p, p.checkRepeated()
}

// readBody parses an application/x-www-form-urlencoded body of bounded size.
func readBody(r *http.Request) (url.Values, error) {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !strings.EqualFold(mediaType, "application/x-www-form-urlencoded") {
		return nil, oauth.NewError(oauth.InvalidRequest, "The request body must be application/x-www-form-urlencoded.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxFormBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, errTooLarge
	case err != nil:
		return nil, oauth.NewError(oauth.InvalidRequest, "The request body could not be read.").Because(err)
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, oauth.NewError(oauth.InvalidRequest, "The request body is not a well-formed form.").Because(err)
	}
	return values, nil
}
