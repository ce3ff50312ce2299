package metadata_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/metadata"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func full() metadata.AuthorizationServer {
	const iss = "https://auth.example.com"
	return metadata.AuthorizationServer{
		Issuer:                   iss,
		AuthorizationEndpoint:    iss + "/authorize",
		TokenEndpoint:            iss + "/token",
		JWKSURI:                  iss + "/jwks.json",
		RegistrationEndpoint:     iss + "/register",
		ScopesSupported:          metadata.Values{"mcp", "offline_access"},
		ResponseTypes:            metadata.Values{"code"},
		ResponseModes:            metadata.Values{"query"},
		GrantTypes:               metadata.Values{"authorization_code", "refresh_token"},
		TokenAuthMethods:         metadata.Values{"none", "client_secret_post", "client_secret_basic"},
		RevocationEndpoint:       iss + "/revoke",
		IntrospectionEndpoint:    iss + "/introspect",
		CodeChallengeMethods:     metadata.Values{"S256"},
		AuthorizationResponseIss: true,
		ProtectedResources:       metadata.Values{"https://mcp.example.com/mcp?a=1&b=2"},
	}
}

func resource() metadata.ProtectedResource {
	return metadata.ProtectedResource{
		Resource:             "https://mcp.example.com/mcp",
		AuthorizationServers: metadata.Values{"https://auth.example.com"},
		ScopesSupported:      metadata.Values{"mcp"},
		BearerMethods:        metadata.Values{"header"},
		ResourceName:         "Notes",
	}
}

func do(t *testing.T, h http.Handler, method string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, "/", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func handler(t *testing.T, doc any) http.Handler {
	t.Helper()
	h, err := metadata.Handler(doc)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestGolden(t *testing.T) {
	for file, doc := range map[string]any{
		"authorization-server": full(),
		"openid-configuration": full().OpenIDConfiguration(),
		"protected-resource":   resource(),
	} {
		t.Run("AS-22 AS-23 AS-24 AS-33 RS-10: "+file, func(t *testing.T) {
			w := httptest.NewRecorder()
			handler(t, doc).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			path := "testdata/" + file + ".golden.json"
			if *update {
				if err := os.WriteFile(path, w.Body.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := w.Body.String(); got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestHandler(t *testing.T) {
	h := handler(t, full())
	t.Run("AS-22 RFC 8414 3.2: 200 application/json exactly", func(t *testing.T) {
		r := do(t, h, "GET")
		if got := r.Header.Get("Content-Type"); r.StatusCode != 200 || got != "application/json" {
			t.Errorf("got %d %q, want 200 application/json", r.StatusCode, got)
		}
		if got := r.Header.Get("Cache-Control"); got != "public, max-age=300" {
			t.Errorf("Cache-Control: got %q", got)
		}
	})
	t.Run("HEAD has the headers of GET and no body", func(t *testing.T) {
		r := do(t, h, "HEAD")
		if r.StatusCode != 200 || r.Header.Get("ETag") == "" || r.ContentLength <= 0 {
			t.Errorf("got %d, ETag %q, length %d", r.StatusCode, r.Header.Get("ETag"), r.ContentLength)
		}
	})
	t.Run("RFC 9110 13.1.2: If-None-Match gives 304", func(t *testing.T) {
		etag := do(t, h, "GET").Header.Get("ETag")
		for header, want := range map[string]int{etag: 304, `"x", W/` + etag: 304, "*": 304, `"x"`: 200} {
			if got := do(t, h, "GET", "If-None-Match", header).StatusCode; got != want {
				t.Errorf("If-None-Match %s: got %d, want %d", header, got, want)
			}
		}
	})
	t.Run("AS-13 RS-12: any MCP-Protocol-Version and any Accept", func(t *testing.T) {
		for _, v := range []string{"2024-11-05", "2026-07-28", "nonsense", ""} {
			if got := do(t, h, "GET", "MCP-Protocol-Version", v, "Accept", "text/html").StatusCode; got != 200 {
				t.Errorf("MCP-Protocol-Version %q: got %d, want 200", v, got)
			}
		}
	})
	t.Run("AS-11 RS-12: a browser client may read it", func(t *testing.T) {
		if got := do(t, h, "GET", "Origin", "https://x").Header.Get("Access-Control-Allow-Origin"); got != "*" {
			t.Errorf("Access-Control-Allow-Origin: got %q, want *", got)
		}
		r := do(t, h, "OPTIONS", "Origin", "https://x", "Access-Control-Request-Method", "GET",
			"Access-Control-Request-Headers", "mcp-protocol-version")
		if got := r.Header.Get("Access-Control-Allow-Headers"); r.StatusCode != 204 ||
			got != "Authorization, Content-Type, MCP-Protocol-Version" {
			t.Errorf("preflight: got %d %q", r.StatusCode, got)
		}
	})
	t.Run("RFC 9110 15.5.6: other methods are 405 with Allow", func(t *testing.T) {
		for _, m := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			r := do(t, h, m)
			if r.StatusCode != 405 || r.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
				t.Errorf("%s: got %d, Allow %q", m, r.StatusCode, r.Header.Get("Allow"))
			}
		}
	})
}

func TestNotFound(t *testing.T) {
	t.Run("unknown well-known location is 404 with JSON", func(t *testing.T) {
		r := do(t, metadata.NotFound(), "GET", "Origin", "https://x")
		var body map[string]string
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != 404 || r.Header.Get("Content-Type") != "application/json" || body["error"] != "not_found" {
			t.Errorf("got %d %q %v", r.StatusCode, r.Header.Get("Content-Type"), body)
		}
		if r.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Error("a browser client could not see the 404")
		}
	})
}

func TestOmission(t *testing.T) {
	t.Run("AS-22 RFC 8414 3.2: no null, no empty array, no false flag", func(t *testing.T) {
		least := full()
		least.RegistrationEndpoint, least.ScopesSupported, least.ProtectedResources = "", metadata.Values{}, nil
		least.AuthorizationResponseIss = false
		w := httptest.NewRecorder()
		handler(t, least).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		for _, bad := range []string{
			"null", "[]", `""`, "false", "registration_endpoint", "scopes_supported", "protected_resources",
			"client_id_metadata",
		} {
			if strings.Contains(w.Body.String(), bad) {
				t.Errorf("the document has %s: %s", bad, w.Body)
			}
		}
	})
}

func TestValidate(t *testing.T) {
	edit := func(f func(*metadata.AuthorizationServer)) metadata.AuthorizationServer {
		m := full()
		f(&m)
		return m
	}
	pr := func(f func(*metadata.ProtectedResource)) metadata.ProtectedResource {
		r := resource()
		f(&r)
		return r
	}
	type AS = metadata.AuthorizationServer
	type PR = metadata.ProtectedResource
	for name, doc := range map[string]any{
		"AS-21: issuer":                     edit(func(m *AS) { m.Issuer += "/" }),
		"AS-23: no authorization_endpoint":  edit(func(m *AS) { m.AuthorizationEndpoint = "" }),
		"authorization_endpoint with query": edit(func(m *AS) { m.AuthorizationEndpoint += "?a=b" }),
		"AS-01 AS-23: token_endpoint over http": edit(func(m *AS) {
			m.TokenEndpoint = "http://auth.example.com/token"
		}),
		"AS-23: no code": edit(func(m *AS) { m.ResponseTypes = nil }),
		"AS-24: no S256": edit(func(m *AS) {
			m.CodeChallengeMethods = metadata.Values{"plain"}
		}),
		"AS-25: no grant types": edit(func(m *AS) { m.GrantTypes = nil }),
		"AS-27: private_key_jwt without algorithms": edit(func(m *AS) {
			m.TokenAuthMethods = metadata.Values{"private_key_jwt"}
		}),
		"AS-27: the same at the revocation endpoint": edit(func(m *AS) {
			m.RevocationAuthMethods = metadata.Values{"private_key_jwt"}
		}),
		"AS-27: and for introspection": edit(func(m *AS) {
			m.IntrospectionAuthMethods = metadata.Values{"private_key_jwt"}
		}),
		"AS-33: openid-configuration without a JWKS": edit(func(m *AS) {
			m.JWKSURI = ""
			*m = m.OpenIDConfiguration()
		}),
		"RS-02: no authorization server": pr(func(r *PR) { r.AuthorizationServers = nil }),
		"RS-03: resource with fragment":  pr(func(r *PR) { r.Resource += "#x" }),
		"RS-09: offline_access": pr(func(r *PR) {
			r.ScopesSupported = metadata.Values{"offline_access"}
		}),
		"RS-217: the scope of a clearance": pr(func(r *PR) {
			r.ScopesSupported = metadata.Values{"clearance:pay"}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := metadata.Handler(doc); err == nil {
				t.Error("got a handler, want an error")
			}
		})
	}
}

// explicit imitates gin's NoRoute writer, whose status is 404 until a handler sets another.
type explicit struct {
	*httptest.ResponseRecorder
	said bool
}

func (e *explicit) WriteHeader(status int) {
	e.said = true
	e.ResponseRecorder.WriteHeader(status)
}

// RU-09: a document is served with status 200 wherever it is mounted.
func TestStatusIsExplicit(t *testing.T) {
	w := &explicit{ResponseRecorder: httptest.NewRecorder()}
	handler(t, resource()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if !w.said || w.Code != http.StatusOK {
		t.Errorf("got %d, said: %v", w.Code, w.said)
	}
}
