package authserver

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// maxFormBytes is the maximum size of a form body.
const maxFormBytes = 64 << 10

// credentialParams must never be in a URL, because URLs are logged on the way (AS-06).
var credentialParams = []string{
	"client_secret", "client_assertion", "code", "code_verifier", "refresh_token", "token", "subject_token",
	"actor_token", "device_code", "grant_type",
}

// readForm reads the form of a direct request. Only the body counts. Credentials in the query are
// refused and not ignored, so that developers notice the leak.
func readForm(r *http.Request) (form.Params, error) {
	query := r.URL.Query()
	for _, k := range credentialParams {
		if query.Has(k) {
			return form.Params{},
				oauth.NewError(oauth.InvalidRequest, "Parameters must be sent in the request body, not in the URL.")
		}
	}
	body, err := readText(r)
	if err != nil {
		return form.Params{}, err
	}
	values, err := parseForm(body)
	if err != nil {
		return form.Params{}, err
	}
	request.Of(r.Context()).Sent(values, body)
	p := form.New(values)
	return p, p.CheckRepeated()
}

// readBody parses an application/x-www-form-urlencoded body of limited size.
func readBody(r *http.Request) (url.Values, error) {
	body, err := readText(r)
	if err != nil {
		return nil, err
	}
	return parseForm(body)
}

func readText(r *http.Request) (string, error) {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !strings.EqualFold(mediaType, "application/x-www-form-urlencoded") {
		return "", oauth.NewError(oauth.InvalidRequest, "The request body must be application/x-www-form-urlencoded.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxFormBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return "", errTooLarge
	case err != nil:
		return "", oauth.NewError(oauth.InvalidRequest, "The request body could not be read.").Because(err)
	}
	return string(body), nil
}

func parseForm(body string) (url.Values, error) {
	values, err := url.ParseQuery(body)
	if err != nil {
		return nil, oauth.NewError(oauth.InvalidRequest, "The request body is not a well-formed form.").Because(err)
	}
	return values, nil
}
