package oauth_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestCanonicalResource(t *testing.T) {
	const mcp = "https://mcp.example.com/mcp"
	for _, tt := range []struct{ name, in, want string }{
		{"CL-48: the canonical spelling", mcp, mcp},
		{"AS-106 CL-48: trailing slash", mcp + "/", mcp},
		{"AS-106 CL-48: upper case scheme and host", "HTTPS://MCP.Example.COM/mcp", mcp},
		{"AS-106: bare origin with slash", "HTTPS://MCP.Example.com/", "https://mcp.example.com"},
		{"CL-48: origin only", "https://mcp.example.com", "https://mcp.example.com"},
		{"AS-106: default port of https", "https://mcp.example.com:443/mcp", mcp},
		{"AS-106: default port of http", "http://localhost:80/mcp", "http://localhost/mcp"},
		{"AS-106: another scheme's default port stays", "https://mcp.example.com:80/mcp",
			"https://mcp.example.com:80/mcp"},
		{"AS-106: empty port", "https://mcp.example.com:/mcp", mcp},
		{"the path is case-sensitive", "https://mcp.example.com/MCP", "https://mcp.example.com/MCP"},
		{"the path keeps its escapes", "https://mcp.example.com/a%2Fb%7e", "https://mcp.example.com/a%2Fb%7e"},
		{"several trailing slashes, so that the result is stable", mcp + "//", mcp},
		{"RFC 8707 2: a query is kept", mcp + "/?tenant=1", mcp + "?tenant=1"},
		{"an empty query is dropped", mcp + "?", mcp},
		{"IPv6 host", "http://[::1]:8080/MCP/", "http://[::1]:8080/MCP"},
		{"IPv6 host in upper case", "http://[FE80::A]/", "http://[fe80::a]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := oauth.CanonicalResource(tt.in)
			if err != nil || got != tt.want {
				t.Errorf("CanonicalResource(%q): got %q, %v, want %q", tt.in, got, err, tt.want)
			}
		})
	}
}

func TestCanonicalResourceRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"AS-104 RFC 8707 2: not absolute":         "mcp.example.com",
		"AS-104: path only":                       "/mcp",
		"AS-104: scheme-relative":                 "//mcp.example.com/mcp",
		"AS-104 RFC 8707 2: fragment":             "https://mcp.example.com/mcp#x",
		"AS-104 RFC 8707 2: empty fragment":       "https://mcp.example.com/mcp#",
		"AS-104: empty":                           "",
		"AS-104: no host":                         "https:///mcp",
		"AS-104: opaque":                          "https:mcp.example.com",
		"AS-104: port without host":               "https://:443/mcp",
		"AS-104: other scheme":                    "urn:example:mcp",
		"AS-104: script":                          "javascript:alert(1)",
		"user information":                        "https://user:pass@mcp.example.com/mcp",
		"empty user information":                  "https://@mcp.example.com/mcp",
		"space":                                   "https://mcp.example.com/a b",
		"line break":                              "https://mcp.example.com/a\r\nb",
		"quote, which would end a header's value": `https://mcp.example.com/?a="b`,
		"non-ASCII host":                          "https://bücher.example/mcp",
		"escaped host":                            "https://b%C3%BCcher.example/mcp",
		"IPv6 zone":                               "http://[fe80::1%25eth0]/mcp",
		"bad escape":                              "https://mcp.example.com/%zz",
		"bad port":                                "https://mcp.example.com:x/",
		"too long": "https://mcp.example.com/" +
			strings.Repeat("a", oauth.MaxResourceLength),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := oauth.CanonicalResource(in); err == nil {
				t.Errorf("CanonicalResource(%q): got %q, want an error", in, got)
			}
		})
	}
}

// The error states which rule the resource indicator breaks.
func TestResourceReasons(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "not an absolute",
		"urn:example:mcp":             "not an absolute",
		"https://h/mcp#x":             "fragment",
		"https://h/a b":               "a character",
		"https://h/%zz":               "not a URI",
		"https:///mcp":                "no host",
		"https:h":                     "no host",
		"https://u@h/mcp":             "user information",
		"https://b%C3%BCcher.example": "escapes",
		"https://h/" + strings.Repeat("a", oauth.MaxResourceLength-9): "too long",
	} {
		if got, err := oauth.CanonicalResource(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("AS-104: %.40q: got %.40q, %v, want %q", in, got, err, want)
		}
	}
	longest := "https://h/" + strings.Repeat("a", oauth.MaxResourceLength-10)
	if got, err := oauth.CanonicalResource(longest); err != nil || got != longest {
		t.Errorf("AS-104: as long as it may be: got %v", err)
	}
}

func TestResourceOrigin(t *testing.T) {
	for in, want := range map[string]string{
		"https://h":              "https://h",
		"https://h/mcp":          "https://h",
		"https://h:8443/a/b?c=d": "https://h:8443",
		"https://h?c=/d":         "https://h",
		"http://[::1]:9/x":       "http://[::1]:9",
		"://h/x":                 "://h",
		"mcp.example.com/mcp":    "mcp.example.com/mcp",
	} {
		if got := oauth.ResourceOrigin(in); got != want {
			t.Errorf("ResourceOrigin(%q): got %q, want %q", in, got, want)
		}
	}
}

func TestLowerOrigin(t *testing.T) {
	for in, want := range map[string]string{
		"HTTPS://MCP.Example.com/A?B": "https://mcp.example.com/A?B",
		"HTTPS://MCP.Example.com?B=/": "https://mcp.example.com?B=/",
		"HTTPS://MCP.Example.com":     "https://mcp.example.com",
		"https://mcp.example.com/A":   "https://mcp.example.com/A",
		"HTTPS:///A":                  "https:///A",
		"MCP.Example.com":             "MCP.Example.com",
		"://A/B":                      "://a/B",
	} {
		if got := oauth.LowerOrigin(in); got != want {
			t.Errorf("CL-48: LowerOrigin(%q): got %q, want %q", in, got, want)
		}
	}
}

func TestInClear(t *testing.T) {
	for url, want := range map[string]bool{
		"http://mcp.example.com/mcp": true, "HTTP://10.0.0.1": true, "http://localhost.example.com": true,
		"https://mcp.example.com/mcp": false, "http://localhost:1/mcp": false, "http://[::1]/": false, "": false,
		"%": false,
	} {
		if got := oauth.InClear(url); got != want {
			t.Errorf("InClear(%q): got %v, want %v", url, got, want)
		}
	}
}

func TestIsLoopbackHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true, "[::1]": true,
		"": false, "localhost.": false, "localhost.example.com": false, "127.0.0.1.example.com": false,
		"0.0.0.0": false, "::": false, "127.1": false, "2130706433": false, "0x7f.0.0.1": false, "128.0.0.1": false,
		"example.com": false, "10.0.0.1": false,
	} {
		if got := oauth.IsLoopbackHost(host); got != want {
			t.Errorf("IsLoopbackHost(%q): got %v, want %v", host, got, want)
		}
	}
}

func FuzzResource(f *testing.F) {
	for _, s := range []string{
		"https://mcp.example.com/mcp", "HTTPS://H:443//", "http://[::1]:80/?q", "https://h/%2f/..//",
		"https://b%C3%BC/",
		"http://[fe80::1%25a]/", "https://h?#", "https:h", "//h", "https://u@h", "https://h:/", "https://h/\x7f",
		"https://h/a?b?c",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := oauth.CanonicalResource(raw)
		if err != nil {
			return
		}
		if again, err := oauth.CanonicalResource(got); err != nil || again != got {
			t.Errorf("%q: canonical %q is not stable: %q, %v", raw, got, again, err)
		}
		u, err := url.Parse(got)
		if err != nil || u.Fragment != "" || u.User != nil || u.Host == "" || strings.HasSuffix(u.EscapedPath(), "/") {
			t.Errorf("%q: canonical %q parses to %#v, %v", raw, got, u, err)
		}
		if origin := oauth.ResourceOrigin(got); origin != u.Scheme+"://"+u.Host {
			t.Errorf("%q: origin %q", raw, origin)
		}
	})
}
