package authserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Security L2, SP-22: the pages answer only for the host of the issuer and for loopback.
func TestPagesHaveAHost(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Issuer = "https://auth.example.com:8443" })
	p := r.person()
	ask := func(method, path, host string) page {
		req, _ := http.NewRequest(method, r.http.URL+path,
			strings.NewReader(url.Values{"username": {"alice"}}.Encode()))
		req.Host = host
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return p.do(req)
	}
	for _, host := range []string{
		"auth.example.com", "AUTH.example.com:8443", "127.0.0.1:8414", "localhost", "[::1]:1",
	} {
		if pg := ask(http.MethodGet, "/", host); pg.status != http.StatusOK {
			t.Errorf("GET / of %q: got %d", host, pg.status)
		}
	}
	for _, host := range []string{
		"evil.example", "auth.example.com.evil.example", "127.0.0.1:8414.evil.example", "localhost.evil.example:80",
	} {
		for _, page := range []string{
			"GET /", "GET /authorize?" + authorizeQuery().Encode(), "POST /login", "POST /consent", "GET /setup",
			"POST /setup", "POST /logout",
		} {
			method, path, _ := strings.Cut(page, " ")
			if pg := ask(method, path, host); pg.status != http.StatusForbidden ||
				!strings.Contains(pg.body, "is not served here") {
				t.Errorf("%.20s of %q: got %d", page, host, pg.status)
			}
		}
	}
	if pg := ask(http.MethodGet, "/healthz", "10.0.0.1"); pg.status != http.StatusOK {
		t.Errorf("health by address: got %d", pg.status)
	}
}

// TestForeignHosts checks that a request for an unknown host names it in the response and in its
// log line (RU-16). A limited number of warnings contains the setting to change.
func TestForeignHosts(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Issuer = "https://abc-12.tunnel.example" })
	h := r.Handler()
	ask := func(method, path, host string) page {
		req := httptest.NewRequest(method, path, strings.NewReader("{}"))
		req.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return page{status: w.Code, body: w.Body.String()}
	}
	for _, tt := range []struct {
		method, path, host string
		status             int
	}{
		{"POST", "/mcp", "other.tunnel.example", 404},
		{"POST", "/mcp", "localhost:8414", 404}, // a tunnel that rewrites Host
		{"GET", "/authorize", "third.tunnel.example:8443", 403},
	} {
		r.log.Reset()
		pg := ask(tt.method, tt.path, tt.host)
		if pg.status != tt.status || !strings.Contains(pg.body, "The host name "+tt.host+" is not served here.") {
			t.Errorf("RU-16 %s %s of %s: got %d %s", tt.method, tt.path, tt.host, pg.status, pg.body)
		}
		log := r.log.String()
		if !strings.Contains(log, "set issuer (--url") || strings.Count(log, `"host":"`+tt.host+`"`) != 2 {
			t.Errorf("RU-16 %s: the log has no warning, or no line of the request with the host: %s", tt.host, log)
		}
	}
	r.log.Reset()
	if ask("POST", "/mcp", "abc-12.tunnel.example"); strings.Contains(r.log.String(), "set issuer") {
		t.Errorf("RU-16 a path of the own host: %s", r.log.String())
	}
	for i := range 50 {
		ask("POST", "/mcp", fmt.Sprintf("h%d.example", i))
		ask("POST", "/mcp", "other.tunnel.example")
	}
	if n := strings.Count(r.log.String(), "set issuer"); n != maxForeign-3 {
		t.Errorf("RU-16 %d warnings for made-up hosts, want %d", n, maxForeign-3)
	}
	r.log.Reset()
	r.Clock.Advance(foreignEvery)
	ask("POST", "/mcp", "new.tunnel.example")
	ask("POST", "/mcp", "new.tunnel.example")
	if n := strings.Count(r.log.String(), "set issuer"); n != 1 {
		t.Errorf("RU-16 an hour after made-up hosts: %d warnings for another host, want 1", n)
	}
}

// Security L13: if the issuer is https, browsers must stay with https.
func TestStrictTransportSecurity(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Issuer = "https://auth.example.com" })
	for _, path := range []string{"/", "/jwks.json", "/authorize"} {
		if got := r.person().get(path).header.Get("Strict-Transport-Security"); got != "max-age=31536000" {
			t.Errorf("%s: got %q", path, got)
		}
	}
	if got := newRig(t).person().get("/").header.Get("Strict-Transport-Security"); got != "" {
		t.Errorf("http: got %q", got)
	}
}

// explicit is a writer that records whether a handler has set the status explicitly. Behind a route
// for unknown paths, like gin's NoRoute, a response without it has 404.
type explicit struct {
	*httptest.ResponseRecorder
	said bool
}

func (e *explicit) WriteHeader(status int) {
	e.said = true
	e.ResponseRecorder.WriteHeader(status)
}

// RU-09: responses for other programs have their status wherever the server is mounted, and an
// explicit type.
func TestStatusIsExplicit(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{
		"/jwks.json", "/.well-known/oauth-authorization-server", "/robots.txt", "/healthz", "/readyz", "/",
		"/status/0", "/.well-known/webauthn",
	} {
		w := &explicit{ResponseRecorder: httptest.NewRecorder()}
		r.mux.Load().ServeHTTP(w, httptest.NewRequest(http.MethodGet, r.http.URL+path, nil))
		if !w.said {
			t.Errorf("GET %s: its handler does not say its status (%d)", path, w.Code)
		}
		if w.Code == http.StatusOK && path != "/robots.txt" && w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("GET %s: no nosniff", path)
		}
	}
}
