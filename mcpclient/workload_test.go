package mcpclient

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pipetest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// world is an MCP server and its authorization server on one origin. Each test changes one
// property.
type world struct {
	*httptest.Server
	challenge string
	prm, as   map[string]any
	token     http.HandlerFunc // replaces the default response
	mcp       http.HandlerFunc // replaces the default, which accepts every issued token

	mu       sync.Mutex // guards the fields below
	forms    []url.Values
	headers  []http.Header // of token requests
	calls    []http.Header // of requests to the MCP server
	issued   int
	lifetime int
}

func newWorld(t *testing.T, change func(*world)) *world {
	t.Helper()
	w := &world{lifetime: 900}
	mux := http.NewServeMux()
	if pipetest.InBubble() {
		w.Server = pipetest.NewServer(t, &http.Server{Handler: mux}).Server
	} else {
		w.Server = httptest.NewServer(mux)
		t.Cleanup(w.Close)
	}
	w.challenge = `Bearer scope="mcp", resource_metadata="` + w.URL + `/.well-known/oauth-protected-resource/mcp"`
	w.prm = map[string]any{
		"resource": w.URL + "/mcp", "authorization_servers": []string{w.URL}, "scopes_supported": []string{"all"},
	}
	w.as = map[string]any{
		"issuer": w.URL, "token_endpoint": w.URL + "/token",
		"grant_types_supported": []string{oauth.GrantJWTBearer, oauth.GrantClientCredentials},
	}
	doc := func(d *map[string]any) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			if *d == nil {
				http.NotFound(rw, r)
				return
			}
			json.NewEncoder(rw).Encode(*d)
		}
	}
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", doc(&w.prm))
	mux.HandleFunc("/.well-known/oauth-authorization-server", doc(&w.as))
	mux.HandleFunc("/token", w.serveToken)
	mux.HandleFunc("/mcp", w.serveMCP)
	if change != nil {
		change(w)
	}
	return w
}

func (w *world) serveToken(rw http.ResponseWriter, r *http.Request) {
	r.ParseForm()
	w.mu.Lock()
	w.forms, w.headers = append(w.forms, r.PostForm), append(w.headers, r.Header.Clone())
	w.issued++
	n := w.issued
	w.mu.Unlock()
	if w.token != nil {
		w.token(rw, r)
		return
	}
	kind := "Bearer"
	if r.Header.Get(dpop.Header) != "" {
		kind = "DPoP"
	}
	fmt.Fprintf(rw, `{"access_token":"t%d","token_type":%q,"expires_in":%d,"scope":%q}`, n, kind, w.lifetime,
		r.PostForm.Get("scope"))
}

func (w *world) serveMCP(rw http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") == "" {
		rw.Header().Set("WWW-Authenticate", w.challenge)
		rw.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.mu.Lock()
	w.calls = append(w.calls, r.Header.Clone())
	w.mu.Unlock()
	if w.mcp != nil {
		w.mcp(rw, r)
		return
	}
	io.Copy(rw, r.Body)
}

// seen returns the token requests.
func (w *world) seen() []url.Values {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.forms)
}

func (w *world) called() []http.Header {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// config returns the configuration of a program on a platform that issues tokens for any audience.
func (w *world) config(change ...func(*Config)) Config {
	c := Config{
		Server: w.URL + "/mcp",
		Token: PlatformTokenFunc(func(_ context.Context, audience string) (string, error) {
			return jwt(map[string]any{"iss": "https://ci.example", "sub": "job", "aud": audience}), nil
		}),
		Transport: w.Client().Transport,
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func (w *world) connect(t *testing.T, change ...func(*Config)) *Client {
	t.Helper()
	c, err := Workload(t.Context(), w.config(change...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// jwt returns an unsigned platform token: the client does not verify it.
func jwt(claims map[string]any) string {
	b, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return "e30." + base64.RawURLEncoding.EncodeToString(b) + ".c2ln"
}

func fixed(claims map[string]any) func(*Config) {
	return func(c *Config) {
		c.Token = PlatformTokenFunc(func(context.Context, string) (string, error) { return jwt(claims), nil })
	}
}

func TestWorkload(t *testing.T) {
	w := newWorld(t, nil)
	var steps []string
	c := w.connect(t, func(c *Config) { c.Trace = func(s Step) { steps = append(steps, s.Name) } })
	t.Run("the request: grant, assertion, resource, scope, and no client", func(t *testing.T) {
		form := w.seen()[0]
		got := claimsOf(t, form.Get("assertion"))
		form.Del("assertion")
		want := url.Values{
			"grant_type": {oauth.GrantJWTBearer}, "resource": {w.URL + "/mcp"}, "scope": {"mcp"},
		}
		if form.Encode() != want.Encode() || got.Audience[0] != w.URL {
			t.Errorf("got %v, assertion for %v", form, got.Audience)
		}
		if h := w.headers[0]; h.Get("Authorization") != "" {
			t.Error("client authentication was sent")
		}
	})
	t.Run("each step is told", func(t *testing.T) {
		if got := strings.Join(steps, " "); got != "challenge resource metadata platform token" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("CL-25 the token is on each request, in the header", func(t *testing.T) {
		resp, err := c.HTTPClient().Post(w.URL+"/mcp?x=1", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := w.called()[0].Get("Authorization"); resp.StatusCode != 200 || got != "Bearer t1" {
			t.Errorf("got %d, %q", resp.StatusCode, got)
		}
	})
	t.Run("TokenSource gives the same one", func(t *testing.T) {
		tok, err := c.TokenSource().Token()
		if err != nil || tok.AccessToken != "t1" || tok.TokenType != "Bearer" || tok.Extra("scope") != "mcp" ||
			time.Until(tok.Expiry) > 15*time.Minute || len(w.seen()) != 1 {
			t.Errorf("got %+v, %v", tok, err)
		}
	})
	t.Run("CL-26 a request elsewhere is refused", func(t *testing.T) {
		other := newWorld(t, nil)
		if _, err := c.HTTPClient().Get(other.URL + "/mcp"); err == nil || !strings.Contains(err.Error(), "not for") {
			t.Errorf("got %v", err)
		}
		if n := len(other.called()); n != 0 {
			t.Errorf("%d requests with a token", n)
		}
	})
}

func claimsOf(t *testing.T, text string) claims {
	t.Helper()
	c, err := readClaims(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNothingIsSent(t *testing.T) {
	set := func(m *map[string]any, name string, value any) func(*world) {
		return func(*world) { (*m)[name] = value }
	}
	evil := newWorld(t, nil)
	for _, tt := range []struct {
		name   string
		world  func(*world)
		config func(*Config)
		step   string
		why    string
	}{
		{"CL-03 the document is about another server",
			func(w *world) { set(&w.prm, "resource", "https://other.example/mcp")(w) }, nil, "resource", "not about"},
		{"no document", func(w *world) { w.prm = nil; w.challenge = "Bearer" }, nil, "resource", "says of no"},
		{"the document is at another origin",
			func(w *world) { w.challenge = `Bearer resource_metadata="` + evil.URL + `/x"` }, nil, "challenge",
			"another origin"},
		{"CL-05 SP-18 the metadata name another issuer",
			func(w *world) { set(&w.as, "issuer", "https://other.example")(w) }, nil, "metadata", "names the issuer"},
		{"an authorization server that is not the pinned one", nil,
			func(c *Config) { c.AuthorizationServer = "https://auth.example" }, "resource",
			"and not https://auth.example"},
		{"no such grant",
			func(w *world) { set(&w.as, "grant_types_supported", []string{"authorization_code"})(w) }, nil, "metadata",
			"does not offer"},
		{"a token endpoint in clear", func(w *world) { set(&w.as, "token_endpoint", "http://other.example/token")(w) },
			nil, "metadata", "neither https"},
		{"a platform token for another audience", nil, fixed(map[string]any{"aud": "https://kubernetes.default"}),
			"platform", "was not sent"},
		{"a platform token for two audiences", func(*world) {}, fixed(map[string]any{
			"aud": []string{"https://kubernetes.default", "x"}}), "platform", "was not sent"},
		{"a platform token for no audience", nil, fixed(map[string]any{"sub": "x"}), "platform", "no audience"},
		{"Audience alone does not say who may have it", nil, func(c *Config) {
			fixed(map[string]any{"aud": "api://app"})(c)
			c.Audience = "api://app"
		}, "platform", "was not sent"},
		{"no JWT", nil, func(c *Config) {
			c.Token = PlatformTokenFunc(func(context.Context, string) (string, error) { return "secret", nil })
		}, "platform", "not a JWT"},
		{"the platform gives none", nil, func(c *Config) {
			c.Token = PlatformTokenFunc(func(context.Context, string) (string, error) {
				return "", errors.New("no permission")
			})
		}, "platform", "no permission"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.world)
			c := w.config()
			if tt.config != nil {
				tt.config(&c)
			}
			_, err := Workload(t.Context(), c)
			var e *Error
			if !errors.As(err, &e) || e.Step != tt.step || !strings.Contains(e.Why, tt.why) {
				t.Errorf("got %v, want %s: %s", err, tt.step, tt.why)
			}
			if n := len(w.seen()); n != 0 {
				t.Errorf("%d requests for a token", n)
			}
		})
	}
}

// TestExpiredPlatformToken checks that an expired token is read again later, because the platform
// may renew it.
func TestExpiredPlatformToken(t *testing.T) {
	w := newWorld(t, nil)
	_, err := Workload(t.Context(), w.config(fixed(map[string]any{
		"aud": w.URL, "exp": time.Now().Add(-time.Second).Unix()})))
	var e *Error
	if !errors.As(err, &e) || !e.Temporary() || !strings.Contains(e.Why, "expired") || len(w.seen()) != 0 {
		t.Errorf("got %v", err)
	}
}

// TestHTTPSStays: an MCP server at an https URL cannot make the client send tokens in clear or to
// this machine.
func TestHTTPSStays(t *testing.T) {
	w := &Client{found: found{origin: "https://mcp.example.com"}}
	for raw, want := range map[string]bool{
		"https://auth.example.com": true, "http://127.0.0.1:9": false, "http://auth.example.com": false, "x": false,
	} {
		if got := w.transport(raw) == nil; got != want {
			t.Errorf("SP-25 %s: got %v", raw, got)
		}
	}
}

func TestAudiences(t *testing.T) {
	w := newWorld(t, nil)
	for name, change := range map[string]func(*Config){
		"the issuer with a slash": fixed(map[string]any{"aud": w.URL + "/"}),
		"the token endpoint":      fixed(map[string]any{"aud": []string{w.URL + "/token"}}),
		"one of the platform's own, for a server that is named": func(c *Config) {
			fixed(map[string]any{"aud": "api://app"})(c)
			c.Audience, c.AuthorizationServer = "api://app", w.URL
		},
	} {
		t.Run(name, func(t *testing.T) { w.connect(t, change) })
	}
	t.Run("CL-18 scopes of the program come first", func(t *testing.T) {
		c := w.connect(t, func(c *Config) { c.Scopes = []string{"notes:read"} })
		if got := c.Scopes(); len(got) != 1 || got[0] != "notes:read" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("CL-18 those of the document come last", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.challenge = "Bearer" })
		if got := w.connect(t).Scopes(); len(got) != 1 || got[0] != "all" {
			t.Errorf("got %q", got)
		}
	})
}

func TestRefusals(t *testing.T) {
	for _, code := range []oauth.Code{
		oauth.InvalidGrant, oauth.InvalidScope, oauth.UnauthorizedClient, oauth.InvalidTarget, oauth.InvalidRequest,
	} {
		t.Run("CL-29 "+string(code)+" is reported, and not tried again", func(t *testing.T) {
			w := newWorld(t, func(w *world) {
				w.token = func(rw http.ResponseWriter, _ *http.Request) {
					rw.WriteHeader(http.StatusBadRequest)
					fmt.Fprintf(rw, `{"error":%q,"error_description":"no\u001b[31m"}`, code)
				}
			})
			_, err := Workload(t.Context(), w.config())
			var e *Error
			if !errors.As(err, &e) || e.Code != code || e.Temporary() || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("got %q", err)
			}
			if forms := w.seen(); len(forms) != 1 || forms[0].Get("grant_type") != oauth.GrantJWTBearer {
				t.Errorf("CL-29: got %d requests", len(forms))
			}
		})
	}
	waits := func(name string, f func(*testing.T)) { // between attempts
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
	waits("a server that fails is asked again, each time with an assertion of its own", func(t *testing.T) {
		w := newWorld(t, func(w *world) {
			w.token = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) }
		})
		asked := 0
		_, err := Workload(t.Context(), w.config(func(c *Config) {
			c.Token = PlatformTokenFunc(func(_ context.Context, audience string) (string, error) {
				asked++
				return jwt(map[string]any{"aud": audience, "jti": asked}), nil
			})
		}))
		var e *Error
		forms := w.seen()
		if !errors.As(err, &e) || !e.Temporary() || len(forms) != attempts {
			t.Fatalf("got %v after %d requests", err, len(forms))
		}
		if forms[0].Get("assertion") == forms[1].Get("assertion") {
			t.Error("the same assertion twice")
		}
	})
	t.Run("a server that asks for patience gets it", func(t *testing.T) {
		w := newWorld(t, func(w *world) {
			w.token = func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Retry-After", "60")
				rw.WriteHeader(http.StatusTooManyRequests)
			}
		})
		_, err := Workload(t.Context(), w.config())
		var e *Error
		if !errors.As(err, &e) || e.after != time.Minute || len(w.seen()) != 1 {
			t.Errorf("got %v after %d requests", err, len(w.seen()))
		}
	})
	for name, answer := range map[string]string{
		"no token":             `{"token_type":"Bearer"}`,
		"a token with a break": `{"access_token":"a\r\nb","token_type":"Bearer"}`,
		"another type":         `{"access_token":"a","token_type":"mac"}`,
		"bound, unasked":       `{"access_token":"a","token_type":"DPoP"}`,
		"no JSON":              `<html>`,
		"an endless answer":    strings.Repeat(" ", 600<<10),
	} {
		waits(name, func(t *testing.T) {
			w := newWorld(t, func(w *world) {
				w.token = func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, answer) }
			})
			var e *Error
			if _, err := Workload(t.Context(), w.config()); !errors.As(err, &e) || e.Step != stepToken {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("CL-26 a redirect is not followed", func(t *testing.T) {
		evil := newWorld(t, nil)
		w := newWorld(t, func(w *world) {
			w.token = func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, evil.URL+"/token", http.StatusTemporaryRedirect)
			}
		})
		if _, err := Workload(t.Context(), w.config()); err == nil || len(evil.seen()) != 0 {
			t.Errorf("got %v", err)
		}
	})
}

func TestClientCredentials(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil)
	machine := func(c Credentials) func(*Config) {
		return func(config *Config) {
			config.Token, config.Client, config.AuthorizationServer = nil, &c, w.URL
		}
	}
	t.Run("CL-28 a secret, by Basic", func(t *testing.T) {
		w.connect(t, machine(Credentials{ID: "a:b", Secret: "s e"}))
		r := &http.Request{Header: w.headers[len(w.headers)-1]}
		id, secret, _ := r.BasicAuth()
		form := w.forms[len(w.forms)-1]
		if id != "a%3Ab" || secret != "s+e" || form.Get("grant_type") != oauth.GrantClientCredentials ||
			form.Get("resource") != w.URL+"/mcp" || form.Has("client_secret") {
			t.Errorf("got %q, %v", id, form)
		}
	})
	t.Run("CL-28 a secret in the body, if nothing else is taken", func(t *testing.T) {
		w := newWorld(t, func(w *world) {
			w.as["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
		})
		w.connect(t, func(c *Config) {
			c.Token, c.Client, c.AuthorizationServer = nil, &Credentials{ID: "a", Secret: "s"}, w.URL
		})
		if f := w.seen()[0]; f.Get("client_id") != "a" || f.Get("client_secret") != "s" {
			t.Errorf("got %v", f)
		}
	})
	t.Run("a key: a signed assertion for the issuer alone, each time another", func(t *testing.T) {
		cred := Credentials{ID: "a", Key: key, KeyID: "k1"}
		w.connect(t, machine(cred))
		w.connect(t, machine(cred))
		forms := w.seen()
		one, two := forms[len(forms)-2].Get("client_assertion"), forms[len(forms)-1].Get("client_assertion")
		jws, err := jose.ParseSignedCompact(one, []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			t.Fatal(err)
		}
		payload, err := jws.Verify(key.Public())
		var c struct{ Iss, Sub, Aud, Jti string }
		if err = errors.Join(err, json.Unmarshal(payload, &c)); err != nil || one == two {
			t.Fatalf("got %v", err)
		}
		if c.Iss != "a" || c.Sub != "a" || c.Aud != w.URL || c.Jti == "" || jws.Signatures[0].Header.KeyID != "k1" {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("a client and a platform token: an assertion of that client", func(t *testing.T) {
		w.connect(t, func(c *Config) { c.Client, c.AuthorizationServer = &Credentials{ID: "a", Secret: "s"}, w.URL })
		forms := w.seen()
		if f := forms[len(forms)-1]; f.Get("grant_type") != oauth.GrantJWTBearer || f.Get("assertion") == "" {
			t.Errorf("got %v", f)
		}
	})
	t.Run("secrets are in no log", func(t *testing.T) {
		c := Credentials{ID: "a", Secret: "hush"}
		if text := fmt.Sprintf("%v %+v %#v %s", c, c, c, &c); strings.Contains(text, "hush") {
			t.Errorf("got %s", text)
		}
	})
}

func TestConfigsThatCannotBeRight(t *testing.T) {
	token := Env("X")
	for why, c := range map[string]Config{
		"not the https URL":     {Server: "http://mcp.example.com", Token: token},
		"neither Token":         {Server: "https://mcp.example.com"},
		"Audience without":      {Server: "https://mcp.example.com", Client: &Credentials{}, Audience: "x"},
		"either Secret or Key":  {Server: "https://mcp.example.com", Client: &Credentials{ID: "a"}},
		"without the Authoriza": {Server: "https://mcp.example.com", Client: &Credentials{ID: "a", Secret: "s"}},
	} {
		if _, err := Workload(t.Context(), c); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want %s", err, why)
		}
	}
}
