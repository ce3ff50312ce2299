package bench

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/authkit"
)

var optionsField = regexp.MustCompile(`data-options="([^"]*)"`)

// byPasskey completes the form of a page that uses or creates a passkey.
func (br *browser) byPasskey(
	b *testing.B, page, path string, act func(options []byte) ([]byte, error), form url.Values,
) {
	b.Helper()
	options := optionsField.FindStringSubmatch(page)
	if options == nil {
		b.Fatalf("no passkey is asked for: %s", page)
	}
	credential, err := act([]byte(html.UnescapeString(options[1])))
	if err != nil {
		b.Fatal(err)
	}
	form.Set("credential", string(credential))
	br.submit(b, page, path, form)
}

// BenchmarkPasskey measures a sign-in with a passkey, up to the consent page. It excludes the
// authenticator, which is the user's device, except for its signature.
func BenchmarkPasskey(b *testing.B) {
	for _, s := range stores {
		b.Run("store="+s.name, func(b *testing.B) {
			r := newRig(b, s.open(b))
			br, device := r.signedIn(b), authkit.New(issuer)
			page := br.send(b, http.MethodGet, issuer+"/account/passkey", nil).Body.String()
			br.byPasskey(b, page, "/account/passkey", device.Create, url.Values{"name": {"Phone"}})
			b.Run("signin", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					br := &browser{r, map[string]string{}}
					page := br.send(b, http.MethodGet, authorizeURL, nil).Body.String()
					br.byPasskey(b, page, "/login/passkey", device.Get, url.Values{})
					page = br.send(b, http.MethodGet, authorizeURL, nil).Body.String()
					if !strings.Contains(page, `action="/consent"`) {
						b.Fatalf("the person is not asked: %s", page)
					}
				}
			})
		})
	}
}
