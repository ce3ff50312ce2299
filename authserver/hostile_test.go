package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestNothingBreaks sends hostile values in every parameter of every endpoint. Each response
// follows the protocol: never a 5xx, and never a redirect to a stranger.
func TestNothingBreaks(t *testing.T) {
	r := newRig(t)
	p := r.person()
	values := []string{
		"", " ", "\x00", "\xff\xfe", "a\r\nSet-Cookie: x=y", "'; DROP TABLE grants; --", "%", "%zz",
		"../../etc/passwd", strings.Repeat("a", 5000),
		"http://evil.example/", "javascript:alert(1)", "\u202e\ufeff", `{"a":1}`, "[]", "null", "-1",
		"99999999999999999999", "https://[::1", "mcprt_", "mcpac_",
		"eyJhbGciOiJub25lIn0.e30.", strings.Repeat(".", 3000),
	}
	posts := map[string]url.Values{
		"/token":      codeForm("x", "refresh_token", "x", "scope", "x", "client_secret", "x", "username", "x"),
		"/revoke":     {"token": {"x"}, "token_type_hint": {"x"}, "client_id": {"app"}},
		"/introspect": {"token": {"x"}, "client_id": {"machine"}, "client_secret": {testSecret}},
		"/login":      {"step": {"x"}, "username": {"alice"}, "password": {"x"}},
		"/consent":    {"step": {"x"}, "decision": {"approve"}},
		"/logout":     {"step": {"x"}},
		"/setup":      {"step": {"x"}, "token": {"x"}, "username": {"x"}, "password": {"x"}},
	}
	check := func(t *testing.T, what string, pg page) {
		if pg.status >= 500 {
			t.Errorf("%s: got %d %.200s", what, pg.status, pg.body)
		}
		if to := pg.header.Get("Location"); strings.Contains(to, "evil.example") &&
			!strings.HasPrefix(to, testRedirect) || pg.header.Get("Set-Cookie") == "x=y" {
			t.Errorf("%s: sent to %q", what, to)
		}
		// Refusals are either a protocol error or a page.
		program, page := strings.Contains(pg.body, `"error":"`), strings.Contains(pg.body, "</main>")
		if pg.status >= 400 && !program && !page {
			t.Errorf("%s: %d is neither a protocol error nor a page: %.200s", what, pg.status, pg.body)
		}
		if path, _, _ := strings.Cut(what, " "); (path == "/token" || path == "/login" || path == "/consent" ||
			path == "/setup") && pg.status < 400 {
			t.Errorf("%s: got %d, nothing of it is any good", what, pg.status)
		}
	}
	t.Run("AS-83 AS-40 /authorize", func(t *testing.T) {
		for name := range authorizeQuery("prompt", "x", "max_age", "x", "response_mode", "x", "request", "x",
			"request_uri", "x") {
			for _, v := range values {
				q := static()
				q.Set(name, v)
				check(t, "/authorize "+name+"="+v[:min(len(v), 20)], p.get("/authorize?"+q.Encode()))
			}
		}
		for _, raw := range []string{"%", "a=%zz", ";;;", strings.Repeat("a=b&", 3000), "client_id=app&client_id=app"} {
			check(t, "/authorize?"+raw[:min(len(raw), 20)], p.get("/authorize?"+raw))
		}
	})
	for path, form := range posts {
		t.Run("AS-83 "+path, func(t *testing.T) {
			for name := range form {
				for _, v := range values {
					f := url.Values{}
					for k, old := range form {
						f[k] = old
					}
					f.Set(name, v)
					check(t, path+" "+name+"="+v[:min(len(v), 20)], p.post(path, f))
				}
			}
			for _, header := range []string{
				"Basic", "Basic !!!", "Basic " + strings.Repeat("A", 20000), "Bearer x", "Digest a=b",
				basic("\x00", "\xff"), basic("a:b:c", ""),
			} {
				check(t, path+" "+header[:min(len(header), 20)], p.post(path, form, "Authorization", header))
			}
			for _, contentType := range []string{
				"", "text/plain", "multipart/form-data; boundary=x",
				"application/x-www-form-urlencoded; charset=utf-16", ";;;",
			} {
				check(t, path+" "+contentType, p.post(path, form, "Content-Type", contentType))
			}
			if pg := p.post(path,
				url.Values{"x": {strings.Repeat("a", maxFormBytes)}}); pg.status != http.StatusRequestEntityTooLarge {
				t.Errorf("RS-196 a body over the limit: got %d", pg.status)
			}
			for _, method := range []string{"GET", "PUT", "DELETE", "PATCH", "TRACE"} {
				req, _ := http.NewRequest(method, p.http.URL+path, nil)
				if pg := p.do(req); path != "/setup" && (method != "GET" || path != "/login") &&
					(pg.status != http.StatusMethodNotAllowed || pg.header.Get("Allow") == "") {
					t.Errorf("RS-66 %s: got %d, Allow %q", method, pg.status, pg.header.Get("Allow"))
				}
			}
		})
	}
}

// TestNothingBreaksWithProviders is TestNothingBreaks for the endpoints of providers.
func TestNothingBreaksWithProviders(t *testing.T) {
	r, f := delegated(t)
	p := r.person()
	values := []string{
		"", " ", "\x00", "\xff\xfe", "a\r\nSet-Cookie: x=y", "%", "../../etc/passwd", strings.Repeat("a", 5000),
		"http://evil.example/", "//evil.example",
		"javascript:alert(1)", "\u202e", `{"a":1}`, strings.Repeat(".", 3000), "*",
	}
	for _, v := range values {
		name := v[:min(len(v), 20)]
		t.Run("AS-83 AS-220 "+url.QueryEscape(name), func(t *testing.T) {
			e := url.QueryEscape(v)
			answers := []page{
				p.get("/authorize?" + authorizeQuery("provider", v).Encode()),
				p.get("/authorize?" + authorizeQuery("login_hint", v+"@hub.example").Encode()),
				p.get("/callback/google?state=" + e + "&code=" + e),
				p.get("/callback/google?error=" + e + "&state=" + e), p.get("/callback/" + url.PathEscape("x"+v)),
				p.get("/connect/" + url.PathEscape("x"+v)),
				p.post("/connect/"+url.PathEscape("x"+v), url.Values{"step": {v}}),
				p.post("/callback/google", url.Values{"state": {v}, "code": {v}}),
				p.post("/depart", url.Values{"step": {v}}), p.post("/disconnect", url.Values{"step": {v}}),
				p.post("/token", exchangeForm("x", "audience", v, "scope", v, "subject_token", v), "Authorization",
					basic("machine", testSecret)),
			}
			for i, pg := range answers {
				to := pg.header.Get("Location")
				if pg.status >= 500 || to != "" && !strings.HasPrefix(to, "/callback/google?") ||
					pg.header.Get("Refresh") != "" || pg.header.Get("Set-Cookie") == "x=y" {
					t.Errorf("%d: got %d %q", i, pg.status, to)
				}
			}
		})
	}
	if len(f.departed) != 0 || f.returns != 0 {
		t.Errorf("%d left and %d came back", len(f.departed), f.returns)
	}
	for _, path := range []string{"/depart", "/disconnect", "/callback/google", "/connect/x"} {
		t.Run("RS-66 RS-196 "+path, func(t *testing.T) {
			if pg := p.post(path,
				url.Values{"x": {
					strings.Repeat("a", maxFormBytes)}}); pg.status != http.StatusRequestEntityTooLarge &&
				path != "/connect/x" {
				t.Errorf("a body over the limit: got %d", pg.status)
			}
			for _, method := range []string{"PUT", "DELETE", "HEAD", "TRACE"} {
				req, _ := http.NewRequest(method, p.http.URL+path, nil)
				if pg := p.do(req); pg.status != http.StatusMethodNotAllowed || pg.header.Get("Allow") == "" {
					t.Errorf("%s: got %d", method, pg.status)
				}
			}
		})
	}
}
