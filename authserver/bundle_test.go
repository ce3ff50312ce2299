package authserver

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestBundlesHoldNoSecret plants a secret in every value that a client, a user or a provider
// chooses, on every way through the server. It checks that no bundle shows a part of it.
func TestBundlesHoldNoSecret(t *testing.T) {
	const mark = "qzxjvkwq"
	redirect := "https://" + mark + ".example.com/cb/" + mark + "?t=" + mark
	r, f := delegated(t, keepAttempts)
	f.person = mark
	r.putClient(storage.Client{
		ID: mark, Name: "The " + mark, RedirectURIs: []string{redirect}, AuthMethod: "none",
		GrantTypes: []string{oauth.GrantCode, oauth.GrantRefresh, oauth.GrantDeviceCode},
		Source:     storage.SourceDynamic, CreatedAt: r.now(),
	})
	query := func(change ...string) url.Values {
		return authorizeQuery(append([]string{
			"client_id", mark, "redirect_uri", redirect, "state", mark, "nonce", mark, "scope", "mcp " + mark,
			"login_hint", mark + "@example.com", "prompt", mark, mark, mark, "acr_values", mark,
		}, change...)...)
	}
	header := []string{"User-Agent", mark + "/1.0 (" + mark + ")", "Cookie", mark + "=" + mark, "Accept", "text/html"}
	p := r.person()
	p.get(wellKnown+"/"+mark, header...)
	pg := p.get("/authorize?" + query("prompt", "", "acr_values", "").Encode())
	p.post("/login", url.Values{"step": {pg.step(t)}, "username": {mark}, "password": {mark}}, header...)
	back := p.back(callback(t, "google", p.leave(query("prompt", "", "acr_values", "", "provider", "google"))))
	code := responseOf(t, back).Get("code")
	for _, form := range []url.Values{
		codeForm(code, "client_id", mark, "redirect_uri", redirect+mark),
		codeForm(code, "client_id", mark, "redirect_uri", redirect, "code_verifier", mark),
		codeForm(code, "client_id", mark, "redirect_uri", redirect, "resource", "https://"+mark+"/"+mark),
		codeForm(code, "client_id", mark, "redirect_uri", redirect, "client_secret", mark),
		codeForm(code, "client_id", mark, "redirect_uri", redirect),
		codeForm(mark, "client_id", mark, "redirect_uri", redirect),
		refreshForm(mark, "client_id", mark), refreshForm(mark, "client_id", "unheard of "+mark),
		{"grant_type": {mark}, "client_id": {mark}, mark: {mark}},
		{"grant_type": {oauth.GrantTokenExchange}, "client_id": {mark}, "subject_token": {mark}, "scope": {mark}},
	} {
		p.token(form, header...)
	}
	for _, q := range []url.Values{
		query("redirect_uri", "http://127.0.0.1/"+mark), query("resource", "https://"+mark+".example.com/"+mark),
		query("client_id", "https://"+mark+".example.com/"+mark), query("code_challenge", mark), query(),
		query("code_challenge_method", mark), query("response_type", mark), query("request", mark),
	} {
		p.get("/authorize?"+q.Encode(), header...)
		p.post("/par", q, header...)
	}
	p.post("/device_authorization", url.Values{"client_id": {mark}, "scope": {mark}, "resource": {"https://" + mark}})
	f.returnErr = oauth.NewError(oauth.AccessDenied, mark+" said '"+mark+"' to \""+mark+"\" at https://"+mark)
	r.person().back(callback(t, "google", r.person().leave(query("prompt", "", "acr_values", "", "provider", "google")),
		"error", mark, "error_description", mark), header...)
	r.advance(time.Hour)
	found := r.attempts(attempt.Query{})
	if len(found) < 5 {
		t.Fatalf("got %d attempts", len(found))
	}
	steps := 0
	for _, a := range found {
		b := attempt.Publish(a, "v1", []string{r.http.URL})
		steps += len(b.Events)
		out, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		page := bytes.NewBuffer(out)
		if err := b.Page(page, ""); err != nil {
			t.Fatal(err)
		}
		text := strings.ToLower(page.String())
		for i := range len(mark) - 3 {
			if at := strings.Index(text, mark[i:i+4]); at >= 0 {
				t.Errorf("OB-03: it shows a part of the secret: %s", text[max(at-200, 0):min(at+60, len(text))])
				break
			}
		}
		if b.Fault != a.Fault {
			t.Errorf("OB-03: the bundle has the fault %s, the attempt %s", b.Fault, a.Fault)
		}
	}
	if steps < 25 {
		t.Errorf("got %d steps: most of the sent steps were not kept", steps)
	}
}
