package metadata_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/metadata"
)

func TestAuthorizationServerPaths(t *testing.T) {
	const as, oidc = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	for _, tt := range []struct {
		name, issuer string
		as, oidc     []string
	}{
		{"AS-14 RFC 8414 3: bare issuer", "https://h", []string{as, as + "/"}, []string{oidc, oidc + "/"}},
		{"AS-14: a port is no path", "http://127.0.0.1:8414", []string{as, as + "/"}, []string{oidc, oidc + "/"}},
		{"AS-17 AS-18 RFC 8414 3.1: path inserted and appended", "https://h/t1",
			[]string{as + "/t1", as + "/t1/", "/t1" + as, "/t1" + as + "/"},
			[]string{oidc + "/t1", oidc + "/t1/", "/t1" + oidc, "/t1" + oidc + "/"}},
		{"AS-17: several segments", "https://h/a/b",
			[]string{as + "/a/b", as + "/a/b/", "/a/b" + as, "/a/b" + as + "/"},
			[]string{oidc + "/a/b", oidc + "/a/b/", "/a/b" + oidc, "/a/b" + oidc + "/"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := append(tt.as, tt.oidc...)
			if got := metadata.AuthorizationServerPaths(tt.issuer); !slices.Equal(got, want) {
				t.Errorf("AuthorizationServerPaths(%q):\n got %q\nwant %q", tt.issuer, got, want)
			}
			mux, doc := http.NewServeMux(), full()
			doc.Issuer = tt.issuer
			if err := metadata.MountAuthorizationServer(mux, doc); err != nil {
				t.Fatal(err)
			}
			for _, path := range want {
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
				isOpenID := strings.Contains(w.Body.String(), "subject_types_supported")
				if w.Code != 200 || isOpenID != slices.Contains(tt.oidc, path) {
					t.Errorf("GET %s: got %d, openid members %v", path, w.Code, isOpenID)
				}
			}
		})
	}
}

func TestProtectedResourceLocation(t *testing.T) {
	const pr = "/.well-known/oauth-protected-resource"
	for _, tt := range []struct{ name, resource, url, path string }{
		{"RS-04 RFC 9728 3.1: path inserted", "https://h/mcp", "https://h" + pr + "/mcp", pr + "/mcp"},
		{"RS-04: no path", "https://h", "https://h" + pr, pr},
		{"RS-06 RFC 9728 3.1: lone trailing slash dropped", "https://h/", "https://h" + pr, pr},
		{"RS-06: slash after a path is part of the identifier", "https://h/mcp/", "https://h" + pr + "/mcp/",
			pr + "/mcp/"},
		{"RFC 9728 3.1: query kept in the URL", "https://h/mcp?k=1", "https://h" + pr + "/mcp?k=1", pr + "/mcp"},
		{"RFC 9728 3.1: query without path", "https://h/?k=/1", "https://h" + pr + "?k=/1", pr},
		{"a port belongs to the origin", "http://[::1]:9/a/b", "http://[::1]:9" + pr + "/a/b", pr + "/a/b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := metadata.ProtectedResourceURL(tt.resource); got != tt.url {
				t.Errorf("ProtectedResourceURL(%q): got %q, want %q", tt.resource, got, tt.url)
			}
			if got := metadata.ProtectedResourcePath(tt.resource); got != tt.path {
				t.Errorf("ProtectedResourcePath(%q): got %q, want %q", tt.resource, got, tt.path)
			}
		})
	}
}

func TestMount(t *testing.T) {
	mux := http.NewServeMux()
	ok := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})
	metadata.Mount(mux, ok, append(metadata.AuthorizationServerPaths("https://h/t1"), "/p/{x}")...)
	for path, want := range map[string]int{
		"/.well-known/oauth-authorization-server/t1":   200,
		"/.well-known/oauth-authorization-server/t1/":  200,
		"/.well-known/oauth-authorization-server/t1/x": 404,
		"/.well-known/oauth-authorization-server":      404,
		"/t1/.well-known/oauth-authorization-server":   200,
		"/p/%7Bx%7D": 200,
		"/p/y":       404,
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("GET %s: got %d, want %d", path, w.Code, want)
		}
	}
}

func TestValidateIssuer(t *testing.T) {
	for _, tt := range []struct {
		name, issuer string
		ok           bool
	}{
		{"AS-21 RFC 8414 2: https", "https://auth.example.com", true},
		{"AS-21: https with path", "https://example.com/t1/a_b-c.d~e", true},
		{"AS-21: https with port", "https://example.com:8443", true},
		{"CL-54: http on localhost", "http://localhost:8414", true},
		{"CL-54: http on 127.0.0.1", "http://127.0.0.1:8414", true},
		{"CL-54: http on ::1", "http://[::1]:8414", true},
		{"AS-01 AS-21: http elsewhere", "http://auth.example.com", false},
		{"AS-01 AS-21: http on a look-alike", "http://localhost.example.com", false},
		{"AS-21: query", "https://example.com?x=1", false},
		{"AS-21: empty query", "https://example.com?", false},
		{"AS-21: fragment", "https://example.com#x", false},
		{"AS-21: empty fragment", "https://example.com#", false},
		{"AS-20 RFC 8414 3.3: trailing slash", "https://example.com/", false},
		{"AS-20: trailing slash after path", "https://example.com/t1/", false},
		{"AS-20: upper case host", "https://Example.com", false},
		{"AS-20: upper case scheme", "HTTPS://example.com", false},
		{"AS-20: default port", "https://example.com:443", false},
		{"AS-20: default port of http", "http://localhost:80", false},
		{"AS-20: escaped path", "https://example.com/a%20b", false},
		{"AS-20: brace in path", "https://example.com/{t}", false},
		{"AS-20: dot segment", "https://example.com/a/../b", false},
		{"AS-20: empty segment", "https://example.com/a//b", false},
		{"user information", "https://u:p@example.com", false},
		{"no scheme", "auth.example.com", false},
		{"no host", "https:///x", false},
		{"port without host", "https://:8443", false},
		{"other scheme", "ftp://example.com", false},
		{"empty", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := metadata.ValidateIssuer(tt.issuer); (err == nil) != tt.ok {
				t.Errorf("ValidateIssuer(%q): got %v, want ok=%v", tt.issuer, err, tt.ok)
			}
		})
	}
}
