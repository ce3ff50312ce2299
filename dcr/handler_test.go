package dcr_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

func TestRegistered(t *testing.T) {
	const redirect = "http://127.0.0.1:8080/callback"
	for _, tt := range []struct {
		name, body string
		want       string // members that the answer must have
		absent     string // members that the answer must not have, separated by spaces
	}{
		{"AS-135 RFC 7591 2: defaults, with the method that fits such clients", `{` + loopback + `}`,
			`{"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"response_types":["code"]}`,
			"client_secret client_secret_expires_at client_name client_uri logo_uri scope contacts application_type software_id jwks"},
		{"AS-134: a public client gets no secret", `{` + loopback + `,"token_endpoint_auth_method":"none"}`,
			`{"token_endpoint_auth_method":"none"}`, "client_secret client_secret_expires_at"},
		{"AS-133 RFC 7591 3.2.1: a secret comes with its expiry",
			`{` + loopback + `,"token_endpoint_auth_method":"client_secret_basic"}`,
			`{"token_endpoint_auth_method":"client_secret_basic","client_secret_expires_at":0}`, ""},
		{"AS-139 RFC 7591 2: unknown members are ignored",
			`{` + loopback + `,"x":{"y":[1]},"client_name#ja":"z","dpop_bound_access_tokens":false}`, `{}`,
			"x client_name#ja dpop_bound_access_tokens"},
		{"AS-142 RFC 9449 5.2: a client says that its tokens are bound to a key",
			`{` + loopback + `,"dpop_bound_access_tokens":true}`, `{"dpop_bound_access_tokens":true}`, ""},
		{"AS-141: grants are intersected, authorization_code first",
			`{` + loopback +
				`,"grant_types":["urn:example:no-grant","urn:ietf:params:oauth:grant-type:device_code","refresh_token","authorization_code"]}`,
			`{"grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:device_code"]}`, ""},
		{"AS-240: a client without a browser needs no redirect URI",
			`{"grant_types":["urn:ietf:params:oauth:grant-type:device_code"]}`,
			`{"grant_types":["urn:ietf:params:oauth:grant-type:device_code"],"token_endpoint_auth_method":"none"}`, ""},
		{"AS-240: device_code only when asked for", `{` + loopback + `}`,
			`{"grant_types":["authorization_code","refresh_token"]}`, ""},
		{"AS-141: refresh_token only when asked for", `{` + loopback + `,"grant_types":["authorization_code"]}`,
			`{"grant_types":["authorization_code"]}`, ""},
		{"AS-178: client_credentials is not for the taking",
			`{` + loopback +
				`,"grant_types":["authorization_code","client_credentials"],"token_endpoint_auth_method":"client_secret_post"}`,
			`{"grant_types":["authorization_code"]}`, ""},
		{"AS-136: surplus response types are dropped",
			`{` + loopback + `,"response_types":["code","token","code id_token"]}`, `{"response_types":["code"]}`, ""},
		{"null and empty members are absent",
			`{` + loopback +
				`,"grant_types":[],"response_types":null,"scope":"","client_name":null,"client_uri":"","token_endpoint_auth_method":null,"contacts":[]}`,
			`{"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"]}`,
			"scope client_name client_uri contacts"},
		{"AS-242 RFC 9126 6: a client that has to push its requests",
			`{` + loopback + `,"require_pushed_authorization_requests":true}`,
			`{"require_pushed_authorization_requests":true}`, ""},
		{"AS-242: one that need not", `{` + loopback + `,"require_pushed_authorization_requests":false}`, `{}`,
			"require_pushed_authorization_requests"},
		{"AS-140: native with loopback", `{` + loopback + `,"application_type":"native"}`,
			`{"application_type":"native"}`, ""},
		{"AS-140: web with loopback is tolerated", `{` + loopback + `,"application_type":"web"}`,
			`{"application_type":"web"}`, ""},
		{"AS-140: another application type is left out", `{` + loopback + `,"application_type":"toaster"}`, `{}`,
			"application_type"},
		{"AS-143: one of jwks and jwks_uri is no error", `{` + loopback + `,"jwks":{"keys":[]}}`, `{}`,
			"jwks jwks_uri"},
		{"all that is shown to people is echoed",
			`{` + loopback +
				`,"client_name":"A","client_uri":"https://a.example/","logo_uri":"https://a.example/l.png","contacts":["a@a.example"],"tos_uri":"https://a.example/t","policy_uri":"https://a.example/p","software_id":"i","software_version":"1"}`,
			`{"client_name":"A","client_uri":"https://a.example/","logo_uri":"https://a.example/l.png","contacts":["a@a.example"],"tos_uri":"https://a.example/t","policy_uri":"https://a.example/p","software_id":"i","software_version":"1"}`,
			""},
		{"AS-147: nor has a link another scheme, with a host or without",
			`{` + loopback +
				`,"client_uri":"javascript://host/%0aalert(1)","logo_uri":"data://host/x","tos_uri":"ftp://host/x","policy_uri":"vbscript://host/x"}`,
			`{}`, "client_uri logo_uri tos_uri policy_uri"},
		{"AS-147: what is no web address is left out",
			`{` + loopback +
				`,"client_uri":"javascript:alert(1)","logo_uri":"data:image/png,x","tos_uri":"https://u@evil.example/","policy_uri":"/relative"}`,
			`{}`, "client_uri logo_uri tos_uri policy_uri"},
		{"a name cannot hide or reverse text",
			`{` + loopback + `,"client_name":" A\u0000b\u202e\n\tc\u200b\ufeff  d\u001b[31m "}`,
			`{"client_name":"Ab c d[31m"}`, ""},
		{"a name of control characters counts as absent", `{` + loopback + `,"client_name":"\u202e\u0007"}`, `{}`,
			"client_name"},
		{"scope is cleaned", `{` + loopback + `,"scope":"a a \"b\" c"}`, `{"scope":"a c"}`, ""},
		{"AS-52: redirect URIs verbatim, in order",
			`{"redirect_uris":["http://localhost","https://grok.com/x/","http://127.0.0.1:8080/callback"]}`,
			`{"redirect_uris":["http://localhost","https://grok.com/x/","` + redirect + `"]}`, ""},
		{"AS-57: a mixed set of schemes",
			`{"redirect_uris":["https://c.example/cb","cursor://anysphere.cursor-mcp/oauth/callback","http://localhost:8787/callback","com.raycast:/oauth"]}`,
			`{}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newRig(t).send("POST", tt.body)
			if w.Code != http.StatusCreated {
				t.Fatalf("got %d %s, want 201", w.Code, w.Body)
			}
			if strings.Contains(w.Body.String(), "null") {
				t.Errorf("the answer has a null: %s", w.Body)
			}
			got := decode(t, w.Body.Bytes())
			if got["client_id_issued_at"] != float64(epoch.Unix()) {
				t.Errorf("client_id_issued_at: got %v, want %d", got["client_id_issued_at"], epoch.Unix())
			}
			for member, want := range decode(t, []byte(tt.want)) {
				if !equalJSON(got[member], want) {
					t.Errorf("%s: got %v, want %v", member, got[member], want)
				}
			}
			for _, member := range strings.Fields(tt.absent) {
				if v, ok := got[member]; ok {
					t.Errorf("%s: got %v, want it absent", member, v)
				}
			}
		})
	}
	t.Run("AS-132 RFC 7591 3.2.1: 201, JSON, no-store", func(t *testing.T) {
		w := newRig(t).send("POST", `{`+loopback+`}`, "Content-Type", "application/json; charset=utf-8",
			"MCP-Protocol-Version", "2024-11-05")
		if w.Code != 201 || w.Header().Get("Content-Type") != "application/json" ||
			w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("got %d %v", w.Code, w.Header())
		}
	})
	t.Run("AS-112: only scopes that can be granted are registered", func(t *testing.T) {
		r := newRig(t, func(c *dcr.Config) {
			c.KnownScopes = func(context.Context) oauth.Scopes { return oauth.Scopes{"mcp", "offline_access"} }
			c.DefaultScopes = func(context.Context) oauth.Scopes { return oauth.Scopes{"mcp"} }
		})
		if got := r.register(t,
			`{`+loopback+`,"scope":"openid offline_access mcp"}`)["scope"]; got != "offline_access mcp" {
			t.Errorf("got %v, want offline_access mcp", got)
		}
		for _, asked := range []string{``, `,"scope":""`, `,"scope":"openid email profile"`} {
			if got := r.register(t, `{`+loopback+asked+`}`)["scope"]; got != "mcp" {
				t.Errorf("asked for %s: got %v, want the default", asked, got)
			}
		}
	})
}

func redirects(n int) string {
	uris := make([]string, n)
	for i := range uris {
		uris[i] = fmt.Sprintf("http://127.0.0.1:%d/cb", 1000+i)
	}
	b, _ := json.Marshal(map[string]any{"redirect_uris": uris})
	return string(b)
}

func TestRefused(t *testing.T) {
	const uri, meta = "invalid_redirect_uri", "invalid_client_metadata"
	for _, tt := range []struct{ name, body, code, mentions string }{
		{"AS-138: no redirect_uris", `{}`, uri, "redirect_uris"},
		{"AS-138: empty redirect_uris", `{"redirect_uris":[]}`, uri, "redirect_uris"},
		{"AS-138: null redirect_uris", `{"redirect_uris":null}`, uri, "redirect_uris"},
		{"AS-56 AS-137: http elsewhere", `{"redirect_uris":["https://ok.example/","http://evil.example/cb"]}`, uri,
			"Entry 2"},
		{"AS-56: javascript", `{"redirect_uris":["javascript:alert(1)"]}`, uri, "Entry 1"},
		{"AS-57: unknown private-use scheme", `{"redirect_uris":["evilapp://x"]}`, uri, "scheme"},
		{"AS-58: fragment", `{"redirect_uris":["https://c.example/cb#x"]}`, uri, "fragment"},
		{"AS-58: relative", `{"redirect_uris":["/cb"]}`, uri, "absolute"},
		{"user information", `{"redirect_uris":["https://c.example@evil.example/"]}`, uri, "user information"},
		{"null entry", `{"redirect_uris":[null]}`, uri, "Entry 1"},
		{"AS-145: too many redirect URIs", redirects(17), uri, "more than 16"},
		{"AS-136: no way to code", `{` + loopback + `,"response_types":["token"]}`, meta, "response_types"},
		{"AS-136: a refresh token out of nothing", `{` + loopback + `,"grant_types":["refresh_token"]}`, meta,
			"grant_types"},
		{"AS-178: client_credentials alone",
			`{"grant_types":["client_credentials"],"token_endpoint_auth_method":"client_secret_basic"}`, meta,
			"grant_types"},
		{"RU-13: a scheme that is not permitted, with the key", `{"redirect_uris":["positron://mcp/callback"]}`,
			uri, "positron to registration.private_use_schemes"},
		{"RU-13: http on a LAN", `{"redirect_uris":["http://192.168.1.5:3000/cb"]}`,
			uri, "192.168.1.5:3000 is reached without TLS"},
		{"AS-03: implicit alone", `{` + loopback + `,"grant_types":["implicit"]}`, meta, "grant_types"},
		{"AS-143 RFC 7591 2: jwks and jwks_uri",
			`{` + loopback + `,"jwks":{"keys":[]},"jwks_uri":"https://c.example/jwks"}`, meta, "jwks"},
		{"an authentication method that is not offered",
			`{` + loopback + `,"token_endpoint_auth_method":"tls_client_auth"}`, meta, "token_endpoint_auth_method"},
		{"wrong type: redirect_uris", `{"redirect_uris":"https://c.example/"}`, meta, "redirect_uris"},
		{"wrong type: an entry of redirect_uris", `{"redirect_uris":[1]}`, meta, "redirect_uris"},
		{"wrong type: client_name", `{` + loopback + `,"client_name":1}`, meta, "client_name"},
		{"wrong type: scope", `{` + loopback + `,"scope":["a"]}`, meta, "scope"},
		{"wrong type: grant_types", `{` + loopback + `,"grant_types":{"a":"b"}}`, meta, "grant_types"},
		{"wrong type: contacts", `{` + loopback + `,"contacts":"a"}`, meta, "contacts"},
		{"wrong type: jwks", `{` + loopback + `,"jwks":"x"}`, meta, "jwks"},
		{"AS-145: long name", `{` + loopback + `,"client_name":"` + strings.Repeat("a", 900) + `"}`, meta,
			"client_name"},
		{"AS-145: long software_id", `{` + loopback + `,"software_id":"` + strings.Repeat("a", 300) + `"}`, meta,
			"software_id"},
		{"AS-145: long entry", `{` + loopback + `,"contacts":["` + strings.Repeat("a", 300) + `"]}`, meta, "contacts"},
		{"a member twice", `{` + loopback + `,` + loopback + `}`, meta, "twice"},
		{"a member twice, in two cases", `{` + loopback + `,"Redirect_uris":["https://evil.example/"]}`, meta, "twice"},
		{"an inner member twice, by U+212A", `{` + loopback + `,"jwks":{"keys":[],"\u212aeys":[]}}`, meta, "twice"},
		{"a member twice, escaped", `{` + loopback + `,"redirect\u005furis":["https://evil.example/"]}`, meta, "twice"},
		{"not JSON", `redirect_uris=x`, meta, "JSON"},
		{"an array", `[{` + loopback + `}]`, meta, "object"},
		{"null", `null`, meta, "object"},
		{"empty body", ``, meta, "object"},
		{"cut off", `{` + loopback, meta, "JSON"},
		{"cut off in a value", `{"redirect_uris":["x`, meta, "JSON"},
		{"text behind", `{` + loopback + `} x`, meta, "one JSON object"},
		{"an object behind", `{` + loopback + `}{}`, meta, "one JSON object"},
		{"not UTF-8", "{" + loopback + ",\"client_name\":\"\xff\"}", meta, "UTF-8"},
		{"too deep", `{"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, meta, "JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			w := r.send("POST", tt.body)
			got := decode(t, w.Body.Bytes())
			description, _ := got["error_description"].(string)
			if w.Code != http.StatusBadRequest || got["error"] != tt.code ||
				!strings.Contains(description, tt.mentions) {
				t.Errorf("got %d %v, want 400 %s that mentions %q", w.Code, got, tt.code, tt.mentions)
			}
			if description != oauth.SafeDescription(description) {
				t.Errorf("AS-12: characters of %q", description)
			}
			if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("headers: %v", w.Header())
			}
			if log := r.log.String(); strings.Count(log, "\n") != 1 ||
				!strings.Contains(log, `"event":"client.refused"`) || !strings.Contains(log, tt.code) {
				t.Errorf("want one client.refused event with the reason, got %s", log)
			}
		})
	}
	t.Run("AS-145: sixteen redirect URIs are fine", func(t *testing.T) { newRig(t).register(t, redirects(16)) })
}

func TestEndpoint(t *testing.T) {
	t.Run("AS-132: the body must be declared as JSON", func(t *testing.T) {
		for _, ct := range []string{
			"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "nonsense;;",
		} {
			w := newRig(t).send("POST", `{`+loopback+`}`, "Content-Type", ct)
			if w.Code != http.StatusUnsupportedMediaType ||
				decode(t, w.Body.Bytes())["error"] != "invalid_client_metadata" {
				t.Errorf("%q: got %d %s", ct, w.Code, w.Body)
			}
		}
	})
	t.Run("AS-145: a body over 64 KiB is 413", func(t *testing.T) {
		w := newRig(t).send("POST", `{`+loopback+`,"x":"`+strings.Repeat("a", 64<<10)+`"}`)
		if w.Code != http.StatusRequestEntityTooLarge ||
			decode(t, w.Body.Bytes())["error"] != "invalid_client_metadata" {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
	t.Run("AS-11: a browser client may register", func(t *testing.T) {
		w := newRig(t).send("OPTIONS", "", "Origin", "https://x", "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "content-type,mcp-protocol-version")
		h := w.Header()
		if w.Code != 204 || h.Get("Access-Control-Allow-Origin") != "*" ||
			!strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") ||
			h.Get("Access-Control-Allow-Headers") != "Authorization, Content-Type, MCP-Protocol-Version" {
			t.Errorf("preflight: got %d %v", w.Code, h)
		}
		if w := newRig(t).send("POST", `{}`); w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Error("a browser client could not read why it was refused")
		}
	})
	t.Run("RFC 9110 15.5.6: other methods are 405 with Allow", func(t *testing.T) {
		for _, m := range []string{"GET", "HEAD", "PUT", "DELETE"} {
			if w := newRig(t).send(m, ""); w.Code != 405 || w.Header().Get("Allow") != "POST, OPTIONS" {
				t.Errorf("%s: got %d, Allow %q", m, w.Code, w.Header().Get("Allow"))
			}
		}
	})
	t.Run("AS-30: turned off, and registered clients stay", func(t *testing.T) {
		id := newRig(t).register(t, `{`+loopback+`}`)["client_id"].(string)
		off := newRig(t, func(c *dcr.Config) { c.Disabled = true })
		if w := off.send("POST", `{`+loopback+`}`); w.Code != 403 ||
			decode(t, w.Body.Bytes())["error"] != "access_denied" {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		if _, err := off.Client(t.Context(), id); err != nil {
			t.Error(err)
		}
	})
	t.Run("a failing store is 503 and says when to come back", func(t *testing.T) {
		r := newRig(t)
		r.store.fail(errors.New("disk on fire at /var/lib"))
		w := r.send("POST", `{"redirect_uris":["https://a.example/`+strings.Repeat("x", 600)+`"]}`)
		if w.Code != 503 || w.Header().Get("Retry-After") != "2" || strings.Contains(w.Body.String(), "disk") {
			t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
		}
		if !strings.Contains(r.log.String(), "disk on fire") {
			t.Error("the cause is not in the log")
		}
	})
	t.Run("AS-57: the operator can close private-use schemes", func(t *testing.T) {
		r := newRig(t, func(c *dcr.Config) { c.Redirects = oauth.RedirectPolicy{PrivateUseSchemes: []string{}} })
		if w := r.send("POST", `{"redirect_uris":["cursor://x/y"]}`); w.Code != 400 {
			t.Errorf("got %d, want 400", w.Code)
		}
	})
}

func TestRateLimit(t *testing.T) {
	small := func(c *dcr.Config) {
		c.Limits = dcr.Limits{PerMinute: 60, Burst: 3}
		c.ClientAddr = func(r *http.Request) netip.Addr { a, _ := netip.ParseAddr(r.Header.Get("Test-Addr")); return a }
	}
	post := func(r *rig, addr string) int { return r.send("POST", `{`+loopback+`}`, "Test-Addr", addr).Code }

	t.Run("AS-144: a flood is 429 with Retry-After", func(t *testing.T) {
		r := newRig(t, small)
		for i := range 3 {
			if got := post(r, "192.0.2.1"); got != 201 {
				t.Fatalf("registration %d: got %d, want 201", i, got)
			}
		}
		w := r.send("POST", `{`+loopback+`}`, "Test-Addr", "192.0.2.1")
		if w.Code != 429 || w.Header().Get("Retry-After") != "1" || decode(t, w.Body.Bytes())["error"] != "slow_down" {
			t.Errorf("got %d, Retry-After %q, %s", w.Code, w.Header().Get("Retry-After"), w.Body)
		}
		r.pass(time.Second)
		if got := post(r, "192.0.2.1"); got != 201 {
			t.Errorf("a second later: got %d, want 201", got)
		}
	})
	t.Run("AS-144: by network, /24 and /64", func(t *testing.T) {
		r := newRig(t, small)
		for _, addr := range []string{
			"192.0.2.1", "192.0.2.200", "::ffff:192.0.2.7", "2001:db8::1", "2001:db8::2:3", "2001:db8:0:0:9::",
		} {
			if got := post(r, addr); got != 201 {
				t.Fatalf("%s: got %d, want 201", addr, got)
			}
		}
		for addr, want := range map[string]int{
			"192.0.2.99": 429, "192.0.3.1": 201, "2001:db8::f": 429, "2001:db8:0:1::1": 201,
		} {
			if got := post(r, addr); got != want {
				t.Errorf("%s: got %d, want %d", addr, got, want)
			}
		}
	})
	t.Run("AS-145: a registration that needs a row counts tenfold", func(t *testing.T) {
		r := newRig(t, func(c *dcr.Config) { c.Limits = dcr.Limits{PerMinute: 60, Burst: 15} })
		big := `{"redirect_uris":["https://a.example/` + strings.Repeat("x", 600) + `"]}`
		if got := []int{r.send("POST", big).Code, r.send("POST", big).Code}; !slices.Equal(got, []int{201, 429}) {
			t.Errorf("got %v, want 201, 429", got)
		}
		if r.store.size(t) != 1 {
			t.Errorf("%d rows, want 1", r.store.size(t))
		}
	})
	t.Run("AS-144: by default 120 at once and one a second", func(t *testing.T) {
		r := newRig(t)
		for i := range 120 {
			if w := r.send("POST", `{`+loopback+`}`); w.Code != 201 {
				t.Fatalf("registration %d: got %d", i, w.Code)
			}
		}
		if w := r.send("POST", `{`+loopback+`}`); w.Code != 429 {
			t.Errorf("got %d, want 429", w.Code)
		}
	})
}

func TestAudit(t *testing.T) {
	t.Run("AS-06: one event for a registration, without the secret", func(t *testing.T) {
		r := newRig(t)
		w := r.send("POST",
			`{"redirect_uris":["http://127.0.0.1:1/private-path"],"client_name":"Ann","token_endpoint_auth_method":"client_secret_post"}`,
			"User-Agent", "zoo/1")
		got := decode(t, w.Body.Bytes())
		event := decode(t, []byte(r.log.String()))
		for member, want := range map[string]any{
			"event": "client.registered", "client_id": got["client_id"], "client_name": "Ann",
			"auth_method": "client_secret_post",
			"redirects":   "http://127.0.0.1:1", "user_agent": "zoo/1", "network": "192.0.2.0/24", "stored": false,
		} {
			if event[member] != want {
				t.Errorf("%s: got %v, want %v", member, event[member], want)
			}
		}
		if strings.Contains(r.log.String(), got["client_secret"].(string)) {
			t.Error("the secret is in the log")
		}
	})
}
