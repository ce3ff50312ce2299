package mcpresource

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRebinding checks the requests that a browser may send after DNS rebinding.
func TestRebinding(t *testing.T) {
	at := func(resource string, more ...string) *rig {
		return newRig(t, func(c *Config) {
			c.Resource, c.Hosts, c.Origins = resource, more,
				[]string{"https://App.example.com:443", "http://[2001:db8::1]:3000"}
		})
	}
	public, port, local, six := at(resource, "internal:8080", "Other.Example"),
		at("https://mcp.example.com:8443/mcp"), at("http://localhost:8080/mcp"), at("https://[2001:db8::5]/mcp")
	for _, tt := range []struct {
		name, host, origin string
		r                  *rig
		want               int
	}{
		{"RS-62 case", "MCP.Example.COM", "", public, 401},
		{"RS-62 the port of the scheme", "mcp.example.com:443", "", public, 401},
		{"RS-62 another port", "mcp.example.com:8443", "", public, 403},
		{"RS-62 a named host", "INTERNAL:8080", "", public, 401},
		{"RS-62 a named host at another port", "internal", "", public, 403},
		{"RS-62 a named host, port of the scheme", "other.example:443", "", public, 401},
		{"RS-62 no host", "", "", public, 403},
		{"RS-62 a longer name", "mcp.example.com.evil.example", "", public, 403},
		{"RS-62 a shorter name", "example.com", "", public, 403},
		{"RS-62 a user before it", "mcp.example.com@evil.example", "", public, 403},
		{"RS-62 loopback at a public server", "127.0.0.1", "", public, 403},
		{"RS-62 with its port", "mcp.example.com:8443", "", port, 401},
		{"RS-62 without its port", "mcp.example.com", "", port, 403},
		{"RS-62 IPv6", "[2001:DB8::5]", "", six, 401},
		{"RS-62 IPv6 with the port of the scheme", "[2001:db8::5]:443", "", six, 401},
		{"RS-62 another IPv6", "[2001:db8::6]", "", six, 403},
		{"RS-62 a local server by IPv4", "127.0.0.1:1234", "", local, 401},
		{"RS-62 by the other IPv4", "127.8.8.8", "", local, 401},
		{"RS-62 by IPv6", "[::1]", "", local, 401},
		{"RS-62 mapped", "[::ffff:127.0.0.1]:80", "", local, 401},
		{"RS-62 all addresses are no loopback", "0.0.0.0:8080", "", local, 403},
		{"RS-62 localhost of another owner", "localhost.evil.example", "", local, 403},
		{"RS-62 127.0.0.1 of another owner", "127.0.0.1.nip.io", "", local, 403},
		{"RS-62 decimal", "2130706433", "", local, 403},
		{"RS-59 a named origin in another spelling", "mcp.example.com", "HTTPS://app.EXAMPLE.com", public, 401},
		{"RS-59 IPv6", "mcp.example.com", "http://[2001:DB8::1]:3000", public, 401},
		{"RS-60 IPv6 at another port", "mcp.example.com", "http://[2001:db8::1]", public, 403},
		{"RS-60 a path", "mcp.example.com", "https://app.example.com/x", public, 403},
		{"RS-60 a user", "mcp.example.com", "https://app.example.com@evil.example", public, 403},
		{"RS-60 an extension of a browser", "mcp.example.com", "chrome-extension://abc", public, 403},
		{"RS-60 a file", "localhost", "file://", local, 403},
		{"RS-60 null at a local server", "localhost", "null", local, 403},
		{"RS-60 empty", "localhost", " ", local, 403},
		{"RS-60 a page in the network at a local server", "localhost", "http://192.168.0.7", local, 403},
		{"RS-59 a page on this computer", "localhost", "http://127.0.0.1:6274", local, 401},
	} {
		for _, method := range []string{"POST", "GET", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH", "QUERY"} {
			t.Run(tt.name+" "+method, func(t *testing.T) {
				req := httptest.NewRequest(method, "/mcp", nil)
				req.Host = tt.host
				if tt.origin != "" {
					req.Header.Set("Origin", tt.origin)
				}
				w := httptest.NewRecorder()
				tt.r.h.ServeHTTP(w, req)
				if w.Code != tt.want {
					t.Errorf("got %d, want %d", w.Code, tt.want)
				}
			})
		}
	}
	t.Run("RS-60 two origins", func(t *testing.T) {
		if w := public.do("POST", "/mcp", "", "Origin", "https://app.example.com", "Origin",
			"https://evil.example"); w.Code != 403 {
			t.Errorf("got %d", w.Code)
		}
	})
	for _, host := range []string{"https://mcp.example.com", "mcp.example.com/mcp", "", "a b", "*", "user@host"} {
		t.Run("RS-62 no host in the configuration: "+host, func(t *testing.T) {
			if _, err := New(Config{
				Resource: resource, AuthorizationServers: []string{authServer}, Validator: Local(nil),
				Hosts: []string{host}}); err == nil {
				t.Error("got nil")
			}
		})
	}
}

func TestCORS(t *testing.T) {
	const app = "https://app.example.com"
	on := newRig(t, func(c *Config) { c.Origins, c.CORS, c.DPoP = []string{app}, true, &DPoP{} })
	off := newRig(t, func(c *Config) { c.Origins = []string{app} })
	allowed := func(w *httptest.ResponseRecorder) string { return w.Header().Get("Access-Control-Allow-Origin") }
	t.Run("RS-65 a preflight needs no token, and asks no server", func(t *testing.T) {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			w := on.do("OPTIONS", "/mcp", "", "Origin", app, "Access-Control-Request-Method", method,
				"Access-Control-Request-Headers", "authorization, dpop, mcp-protocol-version, Mcp-Param-Region, x-evil")
			h := w.Header()
			if w.Code != 204 || allowed(w) != app ||
				!strings.Contains(h.Get("Access-Control-Allow-Methods"), method) || len(on.seen) != 0 {
				t.Errorf("got %d %v", w.Code, h)
			}
			names := strings.ToLower(h.Get("Access-Control-Allow-Headers"))
			for _, want := range []string{
				"authorization", "content-type", "accept", "last-event-id", "mcp-protocol-version", "mcp-session-id",
				"mcp-method", "mcp-name", "dpop", "mcp-param-region",
			} {
				if !strings.Contains(names, want) {
					t.Errorf("%s is not in %s", want, names)
				}
			}
			if strings.Contains(names, "x-evil") ||
				strings.Contains(strings.Join(h.Values("Vary"), ","), "Origin") == false {
				t.Errorf("got %v", h)
			}
		}
	})
	t.Run("RS-65 a browser may read what a client needs, refusals too", func(t *testing.T) {
		for token, want := range map[string]int{"alice": 200, "junk": 401, "outage": 503} {
			w := on.call(token, tool("read"), "Origin", app)
			names := w.Header().Get("Access-Control-Expose-Headers")
			if w.Code != want || allowed(w) != app {
				t.Errorf("%s: got %d %v", token, w.Code, w.Header())
			}
			for _, header := range []string{
				"WWW-Authenticate", "Mcp-Session-Id", "MCP-Protocol-Version", "Retry-After", "DPoP-Nonce",
			} {
				if !strings.Contains(names, header) {
					t.Errorf("%s is not in %s", header, names)
				}
			}
		}
	})
	t.Run("RS-65 no caller is let in by a star, nor with cookies", func(t *testing.T) {
		for _, w := range []*httptest.ResponseRecorder{
			on.call("alice", tool("read"), "Origin", app),
			on.call("alice", tool("read"), "Origin", "https://evil.example"), on.call("alice", tool("read")),
			on.do("OPTIONS", "/mcp", "", "Origin", app, "Access-Control-Request-Method", "POST"),
		} {
			if allowed(w) == "*" || w.Header().Get("Access-Control-Allow-Credentials") != "" ||
				w.Code == 403 && allowed(w) != "" {
				t.Errorf("got %d %v", w.Code, w.Header())
			}
		}
	})
	t.Run("RS-65 a cache keeps no answer for another origin", func(t *testing.T) {
		if w := on.call("alice", tool("read")); w.Header().Get("Vary") != "Origin" {
			t.Errorf("got %v", w.Header())
		}
	})
	t.Run("RS-65 without CORS there are no such headers", func(t *testing.T) {
		if w := off.call("alice", tool("read"), "Origin", app); w.Code != 200 || allowed(w) != "" {
			t.Errorf("got %d %v", w.Code, w.Header())
		}
		if w := off.do("OPTIONS", "/mcp", "", "Origin", app, "Access-Control-Request-Method", "POST"); w.Code != 401 {
			t.Errorf("a preflight: got %d", w.Code)
		}
	})
	t.Run("RS-65 OPTIONS that is no preflight needs a token", func(t *testing.T) {
		if w := on.do("OPTIONS", "/mcp", "", "Origin", app); w.Code != http.StatusUnauthorized {
			t.Errorf("got %d", w.Code)
		}
	})
	t.Run("RS-196 a preflight with endless header names costs nothing", func(t *testing.T) {
		endless := strings.Repeat("mcp-param-,", 90_000)
		var n int
		allocations := testing.AllocsPerRun(1, func() {
			w := on.do("OPTIONS", "/mcp", "", "Origin", app, "Access-Control-Request-Method", "POST",
				"Access-Control-Request-Headers", endless)
			n = len(w.Header().Get("Access-Control-Allow-Headers"))
		})
		if n > 8<<10 || allocations > 5000 {
			t.Errorf("got %d bytes after %v allocations", n, allocations)
		}
	})
}
