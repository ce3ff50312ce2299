package lab

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// authorization checks the authorization endpoint, as a browser without a signed-in user.
func (b *bench) authorization(ctx context.Context) {
	if b.app == nil || b.server.AuthorizationEndpoint == "" {
		b.skip("AS-40", must, "an unknown redirect URI is never redirected to",
			"there is no client: name one that is registered")
		return
	}
	good, err := b.browse(ctx, b.request(nil))
	if err != nil || !b.goesOn(good) {
		why := "a right request does not lead to a sign-in"
		if err != nil {
			why = err.Error()
		} else {
			why += ": " + good.says()
		}
		b.add("AS-37", must, "an authorization request by GET leads to a sign-in", Fail, why)
		return
	}
	b.want("AS-37", must, "an authorization request by GET leads to a sign-in", true, "")
	b.want("AS-10", must, "other sites cannot read the authorization endpoint (no CORS)",
		good.header.Get("Access-Control-Allow-Origin") == "", "it allows %s",
		good.header.Get("Access-Control-Allow-Origin"))
	b.framing(good)
	b.whoAsks(ctx)
	b.whatIsAsked(ctx)
}

// goesOn reports whether a response is a page or a redirect to one, not back to the client.
func (b *bench) goesOn(a *answer) bool {
	return a.status == http.StatusOK || a.status >= 300 && a.status < 400 && a.back(b.app.redirectURI) == nil
}

// errs reports whether a response is an error page or an error redirect to the client.
func (b *bench) errs(a *answer) bool {
	if to := a.back(b.app.redirectURI); to != nil {
		return to.Query().Get("error") != "" || strings.Contains(to.Fragment, "error=")
	}
	return a.status >= 400 && a.status < 500
}

// browse follows up to five redirects within the server, with cookies. Some servers check a request
// only after a redirect to their sign-in page.
func (b *bench) browse(ctx context.Context, location string) (*answer, error) {
	cookies := http.Header{}
	a, err := b.get(ctx, location, nil)
	for range 5 {
		if err != nil {
			return nil, err
		}
		var given []string
		for _, c := range (&http.Response{Header: a.header}).Cookies() {
			given = append(given, c.Name+"="+c.Value)
		}
		if len(given) > 0 {
			cookies.Set("Cookie", strings.Join(append(given, cookies.Values("Cookie")...), "; "))
		}
		next, badURL := a.at.Parse(a.header.Get("Location"))
		moves := a.status >= 300 && a.status < 400 && badURL == nil && next.Host == a.at.Host
		if !moves || a.back(b.app.redirectURI) != nil {
			return a, nil
		}
		a, err = b.get(ctx, next.String(), cookies)
	}
	return a, err
}

// framing checks the headers of the sign-in page.
func (b *bench) framing(a *answer) {
	const what = "the page on which people sign in cannot be framed"
	if a.status != http.StatusOK {
		b.skip("AS-46", must, what, "people sign in elsewhere")
		return
	}
	policy, frame := a.header.Get("Content-Security-Policy"), a.header.Get("X-Frame-Options")
	b.want("AS-46", must, what, strings.Contains(policy, "frame-ancestors") || frame != "",
		"it has neither frame-ancestors nor X-Frame-Options (%s)", a.at.Path)
}

// whoAsks checks that an invalid client or redirect URI never causes a redirect.
func (b *bench) whoAsks(ctx context.Context) {
	stays := func(a *answer) bool { return a.status >= 400 && a.status < 500 }
	for _, c := range []struct {
		id, what string
		change   url.Values
	}{
		{"AS-40", "an unknown client gets an error page, and no redirect",
			url.Values{"client_id": {"nobody-of-the-lab"}}},
		{"AS-40", "an unknown redirect URI gets an error page, and no redirect",
			url.Values{"redirect_uri": {"https://attacker.example.com/cb"}}},
		{"AS-53", "redirect URIs are compared as they are: no longer path",
			url.Values{"redirect_uri": {b.app.redirectURI + "/x"}}},
		{"AS-53", "redirect URIs are compared as they are: no query",
			url.Values{"redirect_uri": {b.app.redirectURI + "?x=y"}}},
		{"AS-53", "redirect URIs are compared as they are: no user in front of the host",
			url.Values{"redirect_uri": {strings.Replace(b.app.redirectURI, "://", "://attacker.example.com@", 1)}}},
	} {
		a, err := b.browse(ctx, b.request(c.change))
		b.judge(c.id, must, c.what, a, err, stays)
	}
	u, err := url.Parse(b.app.redirectURI)
	if err != nil || u.Port() == "" {
		return
	}
	u.Host = u.Hostname() + ":49153"
	a, err := b.browse(ctx, b.request(url.Values{"redirect_uri": {u.String()}}))
	b.judge("AS-54", must, "a redirect URI on loopback is taken with any port (RFC 8252)", a, err, b.goesOn)
}

// whatIsAsked checks other invalid parameters; their errors may go to the client.
func (b *bench) whatIsAsked(ctx context.Context) {
	for _, c := range []struct {
		id, level, what string
		change          url.Values
	}{
		{"AS-61", must, "a request without PKCE is refused",
			url.Values{"code_challenge": nil, "code_challenge_method": nil}},
		{"AS-63", should, "the method plain is refused", url.Values{"code_challenge_method": {"plain"}}},
		{"AS-63", should, "a challenge without a method, which means plain, is refused",
			url.Values{"code_challenge_method": nil}},
		{"AS-66", must, "a challenge that is too short is refused", url.Values{"code_challenge": {"short"}}},
		{"AS-38", must, "a request without response_type is refused", url.Values{"response_type": nil}},
		{"AS-03", must, "the implicit grant is refused", url.Values{"response_type": {"token"}}},
		{"AS-09", must, "a parameter that stands twice is refused",
			url.Values{"code_challenge_method": {"S256", "S256"}}},
		{"AS-104", must, "a resource with a fragment is refused",
			url.Values{"resource": {"https://mcp.example.com/mcp#x"}}},
	} {
		a, err := b.browse(ctx, b.request(c.change))
		b.judge(c.id, c.level, c.what, a, err, b.errs)
		if c.id == "AS-38" && err == nil {
			b.errorAnswer(a)
		}
	}
	a, err := b.browse(ctx, b.request(url.Values{"x_of_tomorrow": {"1"}}))
	b.judge("AS-07", must, "a parameter that is unknown is ignored", a, err, b.goesOn)
	early := url.Values{"resource": nil, "scope": nil}
	if slices.Contains(b.server.ScopesSupported, "openid") && b.server.RegistrationEndpoint == "" {
		early = url.Values{"resource": nil} // an OpenID Connect server, which requires scope
	}
	a, err = b.browse(ctx, b.request(early))
	b.judge("AS-51", should, "a request without scope and resource is taken, as early clients send", a, err, b.goesOn)
}

// errorAnswer checks the parameters of an error redirect.
func (b *bench) errorAnswer(a *answer) {
	const keeps = "the state comes back as it was sent, once"
	to := a.back(b.app.redirectURI)
	if to == nil {
		b.skip("AS-42", must, keeps, "the error is on a page of the server: "+a.says())
		return
	}
	q := to.Query()
	b.want("AS-42", must, keeps, len(q["state"]) == 1 && q.Get("state") == state, "it is %q", q["state"])
	b.iss(q, "AS-69", "an error")
}

// iss checks the issuer in an authorization response (RFC 9207).
func (b *bench) iss(q url.Values, id, of string) {
	what := of + " that goes to the client names the issuer (RFC 9207)"
	if q.Get("iss") == "" && !b.server.AuthorizationResponseIss {
		b.add("AS-67", should, what, Fail, "there is no iss, nor does the metadata promise it")
		return
	}
	b.want(id, must, what, len(q["iss"]) == 1 && q.Get("iss") == b.issuer, "it is %q", q["iss"])
}
