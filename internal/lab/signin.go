package lab

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// signIn checks codes and tokens. Each code requires a visit; after the first, the user is usually
// still signed in and sees nothing.
func (b *bench) signIn(ctx context.Context) {
	const what = "a code is redeemed with its verifier"
	if b.o.Visit == nil || b.app == nil {
		b.skip("AS-90", must, what, "it needs a client, and a person who signs in")
		return
	}
	code, err := b.visit(ctx)
	if err != nil {
		b.add("AS-90", must, what, Fail, err.Error())
		return
	}
	a, err := b.redeem(ctx, code, verifier)
	b.judge("AS-90", must, what, a, err,
		func(a *answer) bool { return a.status == http.StatusOK && a.member("access_token") != "" })
	if err != nil || a.status != http.StatusOK {
		return
	}
	b.tokens(a)
	again, err := b.redeem(ctx, code, verifier)
	b.judge("AS-49", must, "a code is redeemed once", again, err, refused("invalid_grant"))
	if refresh := a.member("refresh_token"); refresh != "" && err == nil {
		got, err := b.refresh(ctx, refresh)
		b.judge("AS-91", should, "a code that is redeemed twice ends what it has given", got, err,
			refused("invalid_grant"))
	}
	if code, err = b.visit(ctx); err == nil {
		a, err = b.redeem(ctx, code, verifier+"x")
		b.judge("AS-64", must, "a wrong verifier is invalid_grant", a, err, refused("invalid_grant"))
	}
	if code, err = b.visit(ctx); err == nil {
		a, err = b.redeem(ctx, code, "")
		b.judge("AS-65", must, "a code is not redeemed without its verifier", a, err,
			refused("invalid_grant", "invalid_request"))
	}
	b.rotation(ctx)
}

// visit lets a user sign in, and returns the code.
func (b *bench) visit(ctx context.Context) (string, error) {
	back, err := b.o.Visit(ctx, b.request(nil))
	if err != nil {
		return "", err
	}
	q := back.Query()
	if len(q["code"]) != 1 {
		return "", fmt.Errorf("no code came back: %s", q.Get("error"))
	}
	if len(b.visits()) == 0 {
		b.want("AS-43", must, "code and state come back once each", len(q["state"]) == 1 && q.Get("state") == state,
			"state: %q", q["state"])
		b.iss(q, "AS-68", "a code")
	}
	return q.Get("code"), nil
}

// visits returns the results of the first visit. Later visits are not checked.
func (b *bench) visits() (out []Result) {
	for _, r := range b.results {
		if r.Requirement == "AS-43" {
			out = append(out, r)
		}
	}
	return out
}

func (b *bench) redeem(ctx context.Context, code, verifier string) (*answer, error) {
	form := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {b.app.id}, "code": {code},
		"redirect_uri": {b.app.redirectURI},
	}
	if verifier != "" {
		form.Set("code_verifier", verifier)
	}
	if b.o.Resource != "" {
		form.Set("resource", b.o.Resource)
	}
	return b.asClient(ctx, b.server.TokenEndpoint, form.Encode(), nil)
}

func (b *bench) refresh(ctx context.Context, token string) (*answer, error) {
	return b.asClient(ctx, b.server.TokenEndpoint, url.Values{
		"grant_type": {"refresh_token"}, "client_id": {b.app.id}, "refresh_token": {token},
	}.Encode(), nil)
}

// tokens checks a token response.
func (b *bench) tokens(a *answer) {
	b.want("AS-80", must, "tokens are not to be stored on the way (Cache-Control: no-store)",
		strings.Contains(a.header.Get("Cache-Control"), "no-store"), "it is %q", a.header.Get("Cache-Control"))
	b.want("AS-81", must, "tokens come as application/json with token_type and expires_in",
		a.is("application/json") && strings.EqualFold(a.member("token_type"), "Bearer") &&
			strings.Contains(string(a.body), `"expires_in"`), "token_type: %q", a.member("token_type"))
	const kind = "an access token that is a JWT says so (typ at+jwt), and is signed"
	header, _, isJWT := strings.Cut(a.member("access_token"), ".")
	text, err := base64.RawURLEncoding.DecodeString(header)
	var h struct{ Typ, Alg string }
	if !isJWT || err != nil || json.Unmarshal(text, &h) != nil {
		b.skip("AS-118", must, kind, "it is no JWT")
		return
	}
	typ := strings.TrimPrefix(strings.ToLower(h.Typ), "application/")
	b.want("AS-118", must, kind, typ == "at+jwt" && h.Alg != "none" && !strings.HasPrefix(h.Alg, "HS"),
		"typ: %q, alg: %q", h.Typ, h.Alg)
}

// rotation refreshes twice and then reuses the first refresh token.
func (b *bench) rotation(ctx context.Context) {
	const rotates = "a refresh token of a public client is replaced at each use"
	code, err := b.visit(ctx)
	if err != nil {
		return
	}
	a, err := b.redeem(ctx, code, verifier)
	first := ""
	if err == nil {
		first = a.member("refresh_token")
	}
	if first == "" {
		b.skip("AS-94", must, rotates, "no refresh token is given")
		return
	}
	a, err = b.refresh(ctx, first)
	b.judge("AS-94", must, rotates, a, err, func(a *answer) bool {
		return a.status == http.StatusOK && a.member("refresh_token") != "" && a.member("refresh_token") != first
	})
	if err != nil || a.status != http.StatusOK {
		return
	}
	second := a.member("refresh_token")
	if a, err = b.refresh(ctx, second); err != nil || a.status != http.StatusOK {
		return
	}
	newest := a.member("refresh_token")
	again, err := b.refresh(ctx, first)
	const ends = "a refresh token that was replaced ends the grant when it comes again"
	if err == nil && again.status == http.StatusOK && again.member("refresh_token") == second {
		b.skip("AS-95", must, ends, "for a while the server repeats its answer, for clients that have lost it")
		return
	}
	if err == nil {
		a, err = b.refresh(ctx, newest)
	}
	b.judge("AS-95", must, ends, a, err, refused("invalid_grant"))
}
