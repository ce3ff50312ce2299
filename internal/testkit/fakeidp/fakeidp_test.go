package fakeidp

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

const verifier = "a-verifier-of-at-least-forty-three-characters-in-length"

// signIn sends the authorization request of a correct client and returns the response parameters.
func signIn(t *testing.T, u *Upstream, extra url.Values) url.Values {
	t.Helper()
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"client_id": {u.ClientID}, "redirect_uri": {"http://127.0.0.1:1/callback"}, "response_type": {"code"},
		"state": {"s"}, "nonce": {"n"},
		"scope": {"openid profile"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"},
	}
	for name, values := range extra {
		q[name] = values
	}
	back, err := u.Visit(u.URL + "/authorize?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return back.Query()
}

func post(t *testing.T, u *Upstream, form url.Values) (int, map[string]any) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+"/token", strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(u.ClientID, u.ClientSecret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

func redeem(code string) url.Values {
	return url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {"http://127.0.0.1:1/callback"},
		"code_verifier": {verifier},
	}
}

func TestRotation(t *testing.T) {
	u := Start(t)
	status, first := post(t, u, redeem(signIn(t, u, nil).Get("code")))
	if status != http.StatusOK || first["id_token"] == nil {
		t.Fatalf("got %d %v", status, first)
	}
	renew := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first["refresh_token"].(string)}}
	if status, _ := post(t, u, renew); status != http.StatusOK {
		t.Fatalf("refresh: got %d", status)
	}
	if v := u.Violations(); len(v) != 0 {
		t.Fatalf("a good client violates %q", v)
	}
	if status, _ := post(t, u, renew); status != http.StatusBadRequest {
		t.Fatalf("the same refresh token again: got %d", status)
	}
	if v := u.Violations(); len(v) != 1 || len(u.Sessions(Alice.Subject)) != 0 {
		t.Fatalf("got %q with %q live, want the reuse remembered and the session ended", v, u.Sessions(Alice.Subject))
	}
}

func TestNotices(t *testing.T) {
	u := Start(t)
	if got := signIn(t, u, url.Values{"resource": {"https://mcp.example.com"}}); got.Get("error") != "invalid_target" {
		t.Errorf("resource: got %v", got)
	}
	if got := signIn(t, u, url.Values{"code_challenge": nil}); got.Get("error") != "invalid_request" {
		t.Errorf("no PKCE: got %v", got)
	}
	form := redeem(signIn(t, u, nil).Get("code"))
	form.Set("code_verifier", "another")
	if status, _ := post(t, u, form); status != http.StatusBadRequest {
		t.Errorf("wrong verifier: got %d", status)
	}
	if v := u.Violations(); len(v) != 3 {
		t.Errorf("got %q, want three", v)
	}
}

func TestFaults(t *testing.T) {
	u := Start(t)
	u.Fail(Keys, Fault{Times: 2, Status: 500}, Fault{Times: 1, Down: true})
	var got []int
	// Use a new connection each time: a request that is cut off on a reused one is sent again.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 4 {
		status := 0
		if resp, err := client.Get(u.URL + "/keys"); err == nil {
			status = resp.StatusCode
			resp.Body.Close()
		}
		got = append(got, status)
	}
	if want := []int{500, 500, 0, 200}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestInteractive(t *testing.T) {
	u := Start(t)
	u.Behave(func(b *Behaviour) { b.Interactive = true })
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"client_id": {u.ClientID}, "redirect_uri": {"http://127.0.0.1:1/callback"}, "response_type": {"code"},
		"state": {"s"}, "login_hint": {"bob"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	resp, err := http.Get(u.URL + "/authorize?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, _ := io.ReadAll(resp.Body)
	bob, alice := strings.Index(string(page), "Bob Example"), strings.Index(string(page), "Alice Example")
	if resp.StatusCode != http.StatusOK || bob < 0 || alice < bob || !strings.Contains(string(page), `value="deny"`) {
		t.Errorf("got %d %s", resp.StatusCode, page)
	}
	if got := signIn(t, u, nil); got.Get("code") == "" || got.Get("iss") != u.URL {
		t.Errorf("approved: got %v", got)
	}
	u.Behave(func(b *Behaviour) { b.Deny = "access_denied" })
	if got := signIn(t, u, nil); got.Get("error") != "access_denied" || got.Get("state") != "s" {
		t.Errorf("denied: got %v", got)
	}
}
