package bench

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// browser is a user's browser, with the cookies of this server.
type browser struct {
	*rig
	cookies map[string]string
}

func (br *browser) send(b *testing.B, method, target string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for name, value := range br.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	br.ServeHTTP(w, r)
	if w.Code != http.StatusOK && w.Code != http.StatusSeeOther {
		b.Fatalf("%s %s: status %d: %s", method, target, w.Code, w.Body)
	}
	for _, c := range w.Result().Cookies() {
		br.cookies[c.Name] = c.Value
	}
	return w
}

var stepField = regexp.MustCompile(`name="step" value="([^"]+)"`)

// submit posts the form of a page whose action is path.
func (br *browser) submit(b *testing.B, page, path string, form url.Values) *httptest.ResponseRecorder {
	at := strings.Index(page, `action="`+path+`"`)
	if at < 0 {
		b.Fatalf("no form for %s in %s", path, page)
	}
	form.Set("step", html.UnescapeString(stepField.FindStringSubmatch(page[at:])[1]))
	return br.send(b, http.MethodPost, issuer+path, form)
}

var authorizeURL = issuer + "/authorize?" + asking("app").Encode()

// asking returns the parameters of an authorization request.
func asking(client string) url.Values {
	return url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect}, "resource": {resource},
		"scope": {"mcp"}, "state": {"bench"},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {oauth.S256},
	}
}

// signedIn returns a browser after signing in with the password of the rig's user.
func (r *rig) signedIn(b *testing.B) *browser {
	br := &browser{r, map[string]string{}}
	page := br.send(b, http.MethodGet, authorizeURL, nil).Body.String()
	br.submit(b, page, "/login", url.Values{"username": {"bench"}, "password": {"bench-password"}})
	return br
}

// BenchmarkSignIn measures a sign-in with the password up to the consent page, and one with a
// browser session: the consent page, the approval, and the code exchange.
func BenchmarkSignIn(b *testing.B) {
	for _, s := range stores {
		b.Run("store="+s.name, func(b *testing.B) {
			r := newRig(b, s.open(b))
			br := r.signedIn(b)
			var page, location string
			b.Run("password", func(b *testing.B) { // including the password hash
				b.ReportAllocs()
				for b.Loop() {
					r.signedIn(b)
				}
			})
			b.Run("page", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					page = br.send(b, http.MethodGet, authorizeURL, nil).Body.String()
				}
			})
			b.Run("whole", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					page = br.send(b, http.MethodGet, authorizeURL, nil).Body.String()
					location = br.submit(b, page, "/consent",
						url.Values{"decision": {"approve"}}).Header().Get("Location")
					back, err := url.Parse(location)
					if err != nil {
						b.Fatal(err)
					}
					r.redeem(b, back.Query().Get("code"))
				}
			})
		})
	}
}
