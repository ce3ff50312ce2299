package provider

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

// Security: no spelling of the client secret in a provider's response reaches logs or attempts.
func TestHiddenSpellings(t *testing.T) {
	const secret = `p/w+1 =&"<ü~Q:x`
	basic := url.QueryEscape("client") + ":" + url.QueryEscape(secret)
	for name, spelled := range map[string]string{
		"as it is":                secret,
		"QueryEscape":             url.QueryEscape(secret),
		"PathEscape":              url.PathEscape(secret),
		"lower-case escapes":      strings.ToLower(url.QueryEscape("p/w+1 =&")) + url.QueryEscape(`"<ü~Q:x`),
		"QueryEscape, twice":      url.QueryEscape(url.QueryEscape(secret)),
		"HTML":                    `p/w+1 =&amp;&#34;&lt;ü~Q:x`,
		"JSON":                    `p\/w+1 =\u0026\"\u003cü~Q:x`,
		"Basic":                   base64.StdEncoding.EncodeToString([]byte(basic)),
		"Basic, not form-encoded": base64.StdEncoding.EncodeToString([]byte("client:" + secret)),
		"Base64 within a path":    "/a/" + base64.RawURLEncoding.EncodeToString([]byte(basic)),
	} {
		got := hide("not ("+spelled+"), nor ("+spelled+")", "", secret)
		if strings.Contains(got, spelled) || strings.Count(got, hidden) != 2 {
			t.Errorf("%s: got %q", name, got)
		}
	}
	const harmless = "AADSTS7000222: The provided keys of https://login.example/abcdefgh are expired."
	if got := hide(harmless, secret); got != harmless {
		t.Errorf("got %q", got)
	}
}

// Security: the same in error and error_description of a token endpoint.
func TestEchoedSecret(t *testing.T) {
	u := fakeidp.Start(t)
	echo := base64.StdEncoding.EncodeToString([]byte(u.ClientID + ":" + u.ClientSecret))
	for _, body := range []string{
		`{"error":"invalid_client","error_description":"not Basic ` + echo + `"}`,
		`{"error":"invalid_client","error_description":"not ` + strings.ReplaceAll(u.ClientSecret, "-", "%2d") + `"}`,
	} {
		u.Fail(fakeidp.Token, fakeidp.Fault{Status: 401, Body: body})
		_, _, err := travel(t, connect(t, toFake(u)), u, nil)
		u.Heal()
		if wantError(t, err, ErrMisconfigured); !strings.Contains(err.Error(), "not "+hidden) &&
			!strings.Contains(err.Error(), "not Basic "+hidden) {
			t.Errorf("%s: got %q", body, err)
		}
	}
}
