package lab

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// token sends invalid requests to the token endpoint.
func (b *bench) token(ctx context.Context) {
	endpoint := b.server.TokenEndpoint
	if endpoint == "" {
		return
	}
	a, err := b.get(ctx, endpoint+"?grant_type=authorization_code", nil)
	b.judge("AS-79", must, "the token endpoint takes POST alone", a, err,
		func(a *answer) bool { return a.status >= 400 && a.status < 500 })
	id := "nobody-of-the-lab"
	if b.app != nil {
		id = b.app.id
	}
	code := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {id}, "code": {"unknown"}, "redirect_uri": {redirectURI},
		"code_verifier": {verifier},
	}
	a, err = b.post(ctx, endpoint+"?"+code.Encode(), "", nil)
	b.judge("AS-79", must, "parameters in the query are not honoured", a, err,
		refused("invalid_request", "invalid_client", "unsupported_grant_type"))
	for _, c := range []struct {
		id, what, form string
		codes          []string
	}{
		{"AS-83", "a request without grant_type is invalid_request", "client_id=" + url.QueryEscape(id),
			[]string{"invalid_request", "unsupported_grant_type"}},
		{"AS-85", "an unknown grant type is unsupported_grant_type",
			url.Values{"grant_type": {"urn:example:unknown"}, "client_id": {id}}.Encode(),
			[]string{"unsupported_grant_type"}},
		{"AS-03", "the password grant is not there", url.Values{
			"grant_type": {"password"}, "client_id": {id}, "username": {"nobody"}, "password": {"none"},
		}.Encode(), []string{"unsupported_grant_type", "unauthorized_client"}},
		{"AS-49", "a code that was never given out is invalid_grant", code.Encode(), []string{"invalid_grant"}},
		{"AS-97", "a refresh token that was never given out is invalid_grant", url.Values{
			"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {"unknown"},
		}.Encode(), []string{"invalid_grant"}},
		{"AS-09", "a parameter that stands twice is invalid_request", code.Encode() + "&grant_type=authorization_code",
			[]string{"invalid_request"}},
		{"AS-87", "an unknown client is invalid_client", url.Values{
			"grant_type": {"authorization_code"}, "client_id": {"nobody-of-the-lab"}, "code": {"unknown"},
			"code_verifier": {verifier},
		}.Encode(), []string{"invalid_client"}},
	} {
		if b.app == nil && c.id != "AS-87" {
			b.skip(c.id, must, c.what, "there is no client: name one that is registered")
			continue
		}
		ask := b.asClient
		if c.id == "AS-87" {
			ask = b.post
		}
		a, err := ask(ctx, endpoint, c.form, nil)
		b.judge(c.id, must, c.what, a, err, refused(c.codes...))
		if c.id == "AS-49" && err == nil {
			code, text := a.member("error"), a.member("error_description")
			b.want("AS-12", must, "error and error_description keep to ASCII", ascii(code+text), "%q, %q", code, text)
		}
	}
	code.Del("client_id")
	a, err = b.post(ctx, endpoint, code.Encode(), http.Header{"Authorization": {"Basic bm9ib2R5Om5vbmU="}})
	b.judge("AS-84", must, "a wrong secret in the header is 401 with WWW-Authenticate", a, err, func(a *answer) bool {
		return a.status == http.StatusUnauthorized && a.header.Get("WWW-Authenticate") != ""
	})
	a, err = b.post(ctx, endpoint, code.Encode(), http.Header{"Origin": {"https://app.example.com"}})
	b.judge("AS-11", should, "clients in browsers may read the answers of the token endpoint (CORS)", a, err,
		func(a *answer) bool { return a.header.Get("Access-Control-Allow-Origin") != "" })
}

// asClient sends a form, with the client's secret if it has one.
func (b *bench) asClient(ctx context.Context, location, form string, header http.Header) (*answer, error) {
	switch {
	case b.app == nil || b.app.secret == "":
	case slices.Contains(b.server.TokenAuthMethods, "client_secret_basic"):
		pair := url.QueryEscape(b.app.id) + ":" + url.QueryEscape(b.app.secret)
		header = header.Clone()
		if header == nil {
			header = http.Header{}
		}
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	default:
		form += "&client_secret=" + url.QueryEscape(b.app.secret)
	}
	return b.post(ctx, location, form, header)
}

// ascii reports whether s contains only the characters that RFC 6749 §5.2 permits.
func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e || r == '"' || r == '\\' }) < 0
}

// others checks revocation, introspection and pushed requests.
func (b *bench) others(ctx context.Context) {
	const revokes = "an unknown token can be revoked, with 200"
	switch {
	case b.server.RevocationEndpoint == "":
		b.skip("AS-226", must, revokes, "there is no revocation_endpoint")
	case b.app == nil:
		b.skip("AS-226", must, revokes, "there is no client: name one that is registered")
	default:
		a, err := b.asClient(ctx, b.server.RevocationEndpoint,
			url.Values{"token": {"unknown"}, "client_id": {b.app.id}}.Encode(), nil)
		b.judge("AS-226", must, revokes, a, err, func(a *answer) bool { return a.status == http.StatusOK })
	}
	const introspects = "a client without credentials cannot introspect"
	if b.server.IntrospectionEndpoint == "" {
		b.skip("AS-227", must, introspects, "there is no introspection_endpoint")
	} else {
		a, err := b.post(ctx, b.server.IntrospectionEndpoint, "token=unknown", nil)
		b.judge("AS-227", must, introspects, a, err,
			func(a *answer) bool { return a.status == http.StatusUnauthorized || a.status == http.StatusBadRequest })
	}
	const pushes = "a pushed request is 201 with request_uri and expires_in"
	if b.server.PushedRequestEndpoint == "" || b.app == nil {
		b.skip("AS-228", must, pushes, "there is no pushed_authorization_request_endpoint, or no client")
		return
	}
	_, form, _ := strings.Cut(b.request(nil), "?")
	a, err := b.asClient(ctx, b.server.PushedRequestEndpoint, form, nil)
	b.judge("AS-228", must, pushes, a, err, func(a *answer) bool {
		return a.status == http.StatusCreated && a.member("request_uri") != "" &&
			strings.Contains(string(a.body), `"expires_in"`)
	})
	a, err = b.asClient(ctx, b.server.PushedRequestEndpoint, form+"&request_uri=urn:example:x", nil)
	b.judge("AS-228", must, "a request_uri in a pushed request is refused", a, err,
		func(a *answer) bool { return a.status >= 400 && a.status < 500 })
}
