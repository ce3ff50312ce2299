package oauth_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestRedirectPolicy(t *testing.T) {
	strict := oauth.RedirectPolicy{}
	desktop := oauth.RedirectPolicy{PrivateUseSchemes: oauth.DesktopSchemes}
	dotted := oauth.RedirectPolicy{DottedSchemes: true}
	unwise := oauth.RedirectPolicy{
		PrivateUseSchemes: []string{"javascript", "data", "http", "file"}, DottedSchemes: true,
	}
	for _, tt := range []struct {
		name   string
		policy oauth.RedirectPolicy
		uri    string
		want   bool
	}{
		{"AS-56: https", strict, "https://claude.ai/api/mcp/auth_callback", true},
		{"AS-56: https with query and port", strict, "https://c.example:8443/cb?x=1", true},
		{"AS-43: a state of its own", strict, "https://c.example/cb?x=1&state=y", false},
		{"AS-43: a code of its own, escaped", strict, "https://c.example/cb?c%6Fde=y", false},
		{"AS-43: an issuer of its own", desktop, "cursor://x/cb?iss=https://evil.example", false},
		{"AS-43: an error of its own", strict, "http://127.0.0.1:1/cb?error", false},
		{"AS-43: a parameter whose name is another", strict, "https://c.example/cb?State=y&code_x=z", true},
		{"AS-56: http on 127.0.0.1", strict, "http://127.0.0.1:33418/", true},
		{"AS-56: http on ::1", strict, "http://[::1]:1/cb", true},
		{"AS-56: http on localhost", strict, "http://localhost/callback", true},
		{"AS-52: no path, as some clients register", strict, "http://localhost:3000", true},
		{"AS-52: colon in the path", strict, "https://owui.example/oauth/clients/mcp:x/callback", true},
		{"AS-56: http elsewhere", strict, "http://evil.example/cb", false},
		{"AS-56: http on a look-alike of localhost", strict, "http://localhost.evil.example/cb", false},
		{"AS-56: http on 0.0.0.0", strict, "http://0.0.0.0:1/cb", false},
		{"AS-71: a host with an escaped look-alike letter", strict, "https://%D1%81laude.ai/cb", false},
		{"AS-71: a host with an escaped slash", strict, "https://claude.ai%E2%81%84api.evil.example/cb", false},
		{"AS-71: a host with a semicolon", strict, "https://evil.example;script-src/cb", false},
		{"AS-71: a host in its xn-- form", strict, "https://xn--laude-4ye.ai/cb", true},
		{"AS-56: javascript", strict, "javascript:alert(1)", false},
		{"AS-56: data", strict, "data:text/html,x", false},
		{"AS-56: mixed case does not hide a scheme", strict, "JavaScript://x/%0aalert(1)", false},
		{"AS-57 OAuth 2.1 8.4.3: private-use scheme is off by default", strict, "com.example.app:/cb", false},
		{"AS-57: a preset admits a desktop client", desktop,
			"cursor://anysphere.cursor-retrieval/oauth/user-x/callback", true},
		{"AS-57: a preset admits one with a dot", desktop, "com.raycast:/oauth?package_name=Extension", true},
		{"AS-57: others stay out", desktop, "evilapp://x/cb", false},
		{"AS-57: dotted schemes by policy", dotted, "com.example.app:/cb", true},
		{"AS-57: schemes without a dot stay out", dotted, "myapp://cb", false},
		{"AS-56: no policy admits script", unwise, "javascript:alert(1)", false},
		{"AS-56: no policy admits data", unwise, "data:text/html,x", false},
		{"AS-56: no policy admits files", unwise, "file:///etc/passwd", false},
		{"AS-56: no policy admits http elsewhere", unwise, "http://evil.example/", false},
		{"AS-58 OAuth 2.1 2.3: fragment", strict, "https://c.example/cb#x", false},
		{"AS-58 OAuth 2.1 2.3: empty fragment", strict, "https://c.example/cb#", false},
		{"AS-58 OAuth 2.1 2.3: relative", strict, "/cb", false},
		{"AS-58: scheme-relative", strict, "//c.example/cb", false},
		{"AS-58: no host", strict, "https:///cb", false},
		{"AS-58: opaque https", strict, "https:c.example/cb", false},
		{"AS-58: opaque http", strict, "http:localhost/cb", false},
		{"AS-58: empty", strict, "", false},
		{"user information", strict, "https://c.example@evil.example/cb", false},
		{"empty user information", strict, "https://@evil.example/cb", false},
		{"user information that looks like a loopback port", strict, "http://127.0.0.1:80@evil.example/cb", false},
		{"backslash, which browsers read as a slash", strict, `https://c.example\@evil.example/cb`, false},
		{"white space", strict, "https://c.example/a b", false},
		{"line break", strict, "https://c.example/a\r\nSet-Cookie:x", false},
		{"leading space", strict, " https://c.example/cb", false},
		{"non-ASCII", strict, "https://c.example/é", false},
		{"too long", strict, "https://c.example/" + strings.Repeat("a", oauth.MaxRedirectURILength), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.policy.Check(tt.uri); (err == nil) != tt.want {
				t.Errorf("Check(%q): got %v, want ok=%v", tt.uri, err, tt.want)
			}
		})
	}
}

// The error states which rule the redirect URI breaks.
func TestRedirectReasons(t *testing.T) {
	for uri, want := range map[string]string{
		"":                       "empty",
		"/cb":                    "not absolute",
		"https://c.example/cb#x": "fragment",
		"https://c.example/%zz":  "cannot be parsed",
		"https://u@c.example/cb": "user information",
		"https://c.example;x/cb": "plain ASCII",
		"https:///cb":            "no host",
		"http://c.example/cb":    "use https",
		"http://app.localhost/x": "use https",
		"cursor://x/cb":          "not permitted here",
		"https://c.example/" + strings.Repeat("a", oauth.MaxRedirectURILength-17): "too long",
	} {
		if err := (oauth.RedirectPolicy{}).Check(uri); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("AS-58: %.40q: got %v, want %q", uri, err, want)
		}
	}
	if err := (oauth.RedirectPolicy{}).Check("https://c.example/" +
		strings.Repeat("a", oauth.MaxRedirectURILength-18)); err != nil {
		t.Errorf("AS-58: as long as it may be: got %v", err)
	}
}

func TestMatchRedirectURI(t *testing.T) {
	for _, tt := range []struct {
		name, registered, requested string
		want                        bool
	}{
		{"AS-53 OAuth 2.1 4.1.1: equal", "https://c.example/cb", "https://c.example/cb", true},
		{"AS-53: case of the path", "https://c.example/cb", "https://c.example/CB", false},
		{"AS-53: case of the host", "https://c.example/cb", "https://C.example/cb", false},
		{"AS-53: trailing slash added", "https://c.example/cb", "https://c.example/cb/", false},
		{"AS-53: trailing slash missing", "https://grok.com/cb/", "https://grok.com/cb", false},
		{"AS-53: query added", "https://c.example/cb", "https://c.example/cb?x=1", false},
		{"AS-53: dot segments", "https://c.example/cb", "https://c.example/x/../cb", false},
		{"AS-53: prefix", "https://c.example/cb", "https://c.example/cb/evil", false},
		{"AS-53: escapes are not decoded", "https://c.example/cb", "https://c.example/%63b", false},
		{"AS-53: default port", "https://c.example/cb", "https://c.example:443/cb", false},
		{"AS-53: no port exception for https", "https://localhost:1/cb", "https://localhost:2/cb", false},
		{"AS-53: no port exception off loopback", "http://c.example:1/cb", "http://c.example:2/cb", false},
		{"AS-53: private-use scheme, exactly", "cursor://a/cb", "cursor://a/cb", true},
		{"AS-53: private-use scheme, other path", "cursor://a/cb", "cursor://a/cc", false},
		{"AS-54 RFC 8252 7.3: any port on 127.0.0.1", "http://127.0.0.1:1/cb", "http://127.0.0.1:51004/cb", true},
		{"AS-54 RFC 8252 7.3: registered without port", "http://127.0.0.1/cb", "http://127.0.0.1:51004/cb", true},
		{"AS-54 RFC 8252 7.3: requested without port", "http://127.0.0.1:1/cb", "http://127.0.0.1/cb", true},
		{"AS-54 RFC 8252 7.3: no path at all", "http://127.0.0.1:1", "http://127.0.0.1:2", true},
		{"AS-54: different path", "http://127.0.0.1:1/cb", "http://127.0.0.1:1/other", false},
		{"AS-54: added query", "http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb?x", false},
		{"AS-54: trailing slash", "http://127.0.0.1:1", "http://127.0.0.1:2/", false},
		{"AS-54: fragment", "http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb#x", false},
		{"AS-54: empty port", "http://127.0.0.1:1/cb", "http://127.0.0.1:/cb", false},
		{"AS-54: empty ports, which are no port to choose", "http://127.0.0.1:/cb", "http://localhost:/other", false},
		{"AS-54: upper case schemes, which are exact", "HTTP://127.0.0.1:1/cb", "HTTP://localhost:2/other", false},
		{"AS-54: user information", "http://127.0.0.1:1/cb", "http://x@127.0.0.1:2/cb", false},
		{"AS-54: host hidden behind user information", "http://127.0.0.1:1/cb", "http://127.0.0.1:2@evil.example/cb",
			false},
		{"AS-54: backslash", "http://127.0.0.1:1/cb", `http://127.0.0.1:2\@evil.example/cb`, false},
		{"AS-54: upper case scheme", "http://127.0.0.1:1/cb", "HTTP://127.0.0.1:2/cb", false},
		{"AS-55: any port on localhost", "http://localhost/callback", "http://localhost:3118/callback", true},
		{"AS-55: any port on ::1", "http://[::1]:1/cb", "http://[::1]:2/cb", true},
		{"AS-55: localhost is not 127.0.0.1", "http://localhost:1/cb", "http://127.0.0.1:1/cb", false},
		{"AS-55: 127.0.0.1 is not ::1", "http://127.0.0.1:1/cb", "http://[::1]:1/cb", false},
		{"AS-55: other loopback addresses are exact", "http://127.0.0.2:1/cb", "http://127.0.0.2:2/cb", false},
		{"AS-55: a longer host", "http://localhost:1/cb", "http://localhost.evil.example:1/cb", false},
		{"AS-55: case of localhost", "http://localhost:1/cb", "http://LOCALHOST:2/cb", false},
		{"AS-59: empty", "https://c.example/cb", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			others := []string{"https://other.example/x", tt.registered}
			if got := oauth.MatchRedirectURI(others, tt.requested); got != tt.want {
				t.Errorf("registered %q, requested %q: got %v, want %v", tt.registered, tt.requested, got, tt.want)
			}
		})
	}
	t.Run("AS-52: nothing registered", func(t *testing.T) {
		if oauth.MatchRedirectURI(nil, "http://127.0.0.1:1/cb") {
			t.Error("got a match")
		}
	})
}

func TestIsLoopbackRedirect(t *testing.T) {
	for uri, want := range map[string]bool{
		"http://localhost:1/cb": true, "http://127.0.0.1/": true, "http://[::1]": true,
		"https://localhost/cb": false, "http://c.example/": false, "cursor://localhost/": false, "%": false,
	} {
		if got := oauth.IsLoopbackRedirect(uri); got != want {
			t.Errorf("IsLoopbackRedirect(%q): got %v, want %v", uri, got, want)
		}
	}
}

// Security H1: an approval is remembered for the destination of the response. Two URIs have the
// same destination only if the same party controls both.
func TestRedirectPlace(t *testing.T) {
	for uri, want := range map[string]string{
		"https://claude.ai/cb":             "https://claude.ai",
		"https://Claude.AI:443/other?x=1":  "https://claude.ai",
		"https://claude.ai:/cb":            "https://claude.ai",
		"https://claude.ai":                "https://claude.ai",
		"https://claude.ai:8443/cb":        "https://claude.ai:8443",
		"https://claude.ai.evil.example/":  "https://claude.ai.evil.example",
		"https://localhost:1/cb":           "https://localhost:1",
		"http://c.example:443/cb":          "http://c.example:443",
		"http://c.example/cb":              "http://c.example",
		"http://127.0.0.1:1/cb":            "loopback",
		"http://localhost:2":               "loopback",
		"HTTP://LOCALHOST/x":               "loopback",
		"http://[::1]:3/cb":                "loopback",
		"http://127.0.0.2/cb":              "loopback",
		"cursor://anysphere/callback":      "cursor:",
		"com.raycast:/oauth":               "com.raycast:",
		"http://localhost.evil.example/cb": "http://localhost.evil.example",
		"%":                                "%",
	} {
		if got := oauth.RedirectPlace(uri); got != want {
			t.Errorf("AS-74: %q: got %q, want %q", uri, got, want)
		}
	}
}

func FuzzRedirectURI(f *testing.F) {
	for _, s := range []string{
		"https://c.example/cb", "http://localhost:1/cb", "http://127.0.0.1", "http://[::1]:2/?q", "cursor://x/y",
		"com.raycast:/oauth",
		"javascript:alert(1)", "http://127.0.0.1:1@evil/", `http://localhost\@evil/`, "http://localhost:/",
		"HTTP://localhost/", "http:localhost",
		"https://x/#", "http://127.0.0.1:1/cb/../x", "https://%65vil/", "http://[::ffff:127.0.0.1]/",
	} {
		f.Add(s)
	}
	policy := oauth.RedirectPolicy{PrivateUseSchemes: oauth.DesktopSchemes}
	f.Fuzz(func(t *testing.T, raw string) {
		matched := oauth.MatchRedirectURI([]string{"http://127.0.0.1:1/cb"}, raw)
		if matched && !strings.HasPrefix(raw, "http://127.0.0.1") {
			t.Errorf("%q matched a loopback registration", raw)
		}
		if matched && policy.Check(raw) != nil {
			t.Errorf("%q matches but could not be registered", raw)
		}
		if policy.Check(raw) != nil {
			return
		}
		if strings.ContainsAny(raw, "# \r\n\t\\\"<>") {
			t.Errorf("%q was admitted", raw)
		}
		u, err := url.Parse(raw)
		if err != nil || u.User != nil || u.Scheme == "http" && !oauth.IsLoopbackHost(u.Hostname()) {
			t.Errorf("%q was admitted: %#v, %v", raw, u, err)
		}
		if !oauth.MatchRedirectURI([]string{raw}, raw) {
			t.Errorf("%q does not match itself", raw)
		}
	})
}

// Mutation 21: no policy allows a scheme whose content a browser executes or reads. The policy here
// would allow any scheme missing from the list.
func TestSchemesThatAreNeverPermitted(t *testing.T) {
	for _, scheme := range []string{
		"javascript", "data", "file", "vbscript", "blob", "about", "ftp", "ws", "wss", "view-source", "filesystem",
		"chrome", "intent",
	} {
		policy := oauth.RedirectPolicy{PrivateUseSchemes: []string{scheme}}
		for _, raw := range []string{scheme + ":x", scheme + "://host/x", strings.ToUpper(scheme) + "://host/x"} {
			if err := policy.Check(raw); err == nil || !strings.Contains(err.Error(), "never permitted") {
				t.Errorf("AS-56: %s: got %v", raw, err)
			}
		}
	}
}

// Mutation 21: each character that would break a header or an attribute is refused on its own.
func TestCharactersOfURIs(t *testing.T) {
	policy := oauth.RedirectPolicy{}
	for _, c := range []string{" ", "\t", "\n", "\x00", "\x1f", "\x7f", "\x80", "é", `\`, `"`, "<", ">"} {
		if err := policy.Check("https://a.example/" + c + "x"); err == nil ||
			!strings.Contains(err.Error(), "a character that a URI cannot have") {
			t.Errorf("AS-56: redirect URI with %q: got %v", c, err)
		}
		if _, err := oauth.CanonicalResource("https://a.example/" + c + "x"); err == nil {
			t.Errorf("AS-104: resource with %q is accepted", c)
		}
	}
	if err := policy.Check("https://a.example/!$&'()*+,;=:@%5B~"); err != nil {
		t.Errorf("got %v", err)
	}
}
