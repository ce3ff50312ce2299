package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

// Values for scripts of sign-in at a provider. Their configuration contains the client "app", and
// the provider is the fake one.
const (
	appRedirect = "http://127.0.0.1:1/cb"
	appVerifier = "a-verifier-of-the-app-that-is-long-enough-for-anybody"
)

var hiddenStep = regexp.MustCompile(`name="step" value="([^"]*)"`)

// scriptSignIn implements signin VAR URL: a user signs in at the provider for the client "app". VAR
// is set to the access token.
func scriptSignIn(u *fakeidp.Upstream) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		token, err := signIn(u, args[1])
		ts.Check(err)
		ts.Setenv(args[0], token)
	}
}

func signIn(u *fakeidp.Upstream, issuer string) (string, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	browser := &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	challenge := sha256.Sum256([]byte(appVerifier))
	page, err := fetch(browser.Get(issuer + "/authorize?" + url.Values{
		"client_id": {"app"}, "response_type": {"code"}, "redirect_uri": {appRedirect}, "scope": {"mcp"},
		"state":          {"s"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
	}.Encode()))
	if err != nil {
		return "", err
	}
	step := hiddenStep.FindStringSubmatch(page)
	if step == nil || !strings.Contains(page, "You will sign in at") {
		return "", fmt.Errorf("no departure page: %s", page)
	}
	away, err := location(
		browser.PostForm(issuer+"/consent",
			url.Values{"step": {html.UnescapeString(step[1])}, "decision": {"approve"}}),
	)
	if err != nil {
		return "", err
	}
	back, err := u.Visit(away)
	if err != nil {
		return "", err
	}
	page, err = fetch(browser.Get(back.String()))
	if err != nil {
		return "", err
	}
	if step = hiddenStep.FindStringSubmatch(page); step == nil || !strings.Contains(page, "Continue as ") {
		return "", fmt.Errorf("no page names the account: %s", page)
	}
	done, err := location(
		browser.PostForm(issuer+"/consent",
			url.Values{"step": {html.UnescapeString(step[1])}, "decision": {"approve"}}),
	)
	if err != nil {
		return "", err
	}
	at, err := url.Parse(done)
	if err != nil || at.Query().Get("code") == "" {
		return "", errors.Join(err, fmt.Errorf("no code in %s", done))
	}
	account, err := fetch(browser.Get(issuer + "/account"))
	if err != nil || !strings.Contains(account, `data-credential="acc_`) {
		return "", errors.Join(err, fmt.Errorf("the account page does not show the account at the provider: %s", account))
	}
	body, err := fetch(http.PostForm(issuer+"/token", url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"app"}, "redirect_uri": {appRedirect},
		"code": {at.Query().Get("code")}, "code_verifier": {appVerifier},
	}))
	if err != nil {
		return "", err
	}
	var out struct {
		Token string `json:"access_token"`
	}
	return out.Token, json.Unmarshal([]byte(body), &out)
}

func location(resp *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther && resp.StatusCode != http.StatusFound {
		return "", fmt.Errorf("no redirect but %s", resp.Status)
	}
	return resp.Header.Get("Location"), nil
}

// scriptBrokered implements brokered URL TOKEN PROVIDER: the client "robot" gets a token of the
// provider.
func scriptBrokered(ts *testscript.TestScript, _ bool, args []string) {
	out, err := robot(args[0]+"/token", url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "audience": {args[2]},
		"subject_token": {args[1]}, "subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
	})
	ts.Check(err)
	if out["access_token"] == "" || out["issued_token_type"] != "urn:ietf:params:oauth:token-type:access_token" {
		ts.Fatalf("got %v", out)
	}
}

// scriptActive implements active URL TOKEN: introspection reports the token as active.
func scriptActive(ts *testscript.TestScript, _ bool, args []string) {
	out, err := robot(args[0]+"/introspect", url.Values{"token": {args[1]}})
	ts.Check(err)
	if out["active"] != true {
		ts.Fatalf("got %v", out)
	}
}

// scriptSignOut implements signout URL: the provider reports that its user has signed out there.
func scriptSignOut(u *fakeidp.Upstream) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		status, err := u.SendLogout(context.Background(), args[0]+"/callback/corp/logout",
			u.LogoutToken(fakeidp.Alice.Subject, "", nil))
		ts.Check(err)
		if status != http.StatusOK {
			ts.Fatalf("the logout was answered %d", status)
		}
	}
}
