package gateway

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const publicURL = "https://mcp.example.com/mcp"

var alice = &mcpresource.Principal{
	Issuer: "https://auth.example.com", Subject: "usr_alice", ClientID: "https://app.example.com/client.json",
	Scopes: oauth.Scopes{"mcp", "admin"},
}

// as adds a caller to each request, as the guard does.
func as(p *mcpresource.Principal, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(mcpresource.NewContext(r.Context(), p)))
	})
}

// front starts an MCP server and a gateway in front of it.
func front(t *testing.T, c Config, upstream http.HandlerFunc) *httptest.Server {
	t.Helper()
	inner := httptest.NewServer(upstream)
	t.Cleanup(inner.Close)
	if c.URL == "" {
		c.URL = inner.URL + "/inner/mcp?team=7"
	}
	c.Resource = publicURL
	u, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	outer := httptest.NewServer(as(alice, u))
	t.Cleanup(outer.Close)
	return outer
}

// notary returns the claims instead of a signature.
type notary struct{ n atomic.Int32 }

func (n *notary) Sign(_ context.Context, typ string, claims any) (string, error) {
	b, err := json.Marshal(claims)
	return fmt.Sprintf("%d.%s.%s", n.n.Add(1), typ, base64.RawURLEncoding.EncodeToString(b)), err
}

func post(t *testing.T, url, body string, header map[string]string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header[k] = []string{v} // sets the name in exactly this spelling
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

const ping = `{"jsonrpc":"2.0","id":"p1","method":"ping"}`

func TestRequestHeaders(t *testing.T) {
	var got *http.Request
	signer := &notary{}
	g := front(t, Config{
		Identity: Identity{Signer: signer, Issuer: "https://auth.example.com"},
		Headers:  http.Header{"X-Api-Key": {"ours"}}, Cookies: []string{"lb"},
	}, func(_ http.ResponseWriter, r *http.Request) { got = r })

	post(t, g.URL+"?access_token=secret&x=1&team=8", ping, map[string]string{
		"Authorization": "Bearer secret", "Cookie": "__Host-mcp-authd-session=s; lb=1; other=2", "Dpop": "proof",
		"Origin":        "https://app.example.com",
		"X-Mcp-Subject": "root", "x_mcp_subject": "root", "X-MCP_CLIENT": "root", "x-mcp-scope": "root",
		"X_Mcp_Identity": "root",
		"Connection":     "X-MCP-Subject, X-MCP-Identity, X-Custom, close", "X-Custom": "hop", "X-Api-Key": "theirs",
		"X-Forwarded-Host": "evil", "X-Forwarded-For": "1.2.3.4", "Forwarded": "for=1.2.3.4",
		"X.MCP.Subject": "root", "X!Mcp!Client": "root", "Proxy": "root", "Remote-User": "root",
		"X-Remote-User": "root", "X-Auth-Request-User": "root",
		"X-Forwarded-User": "root", "Client-Cert": ":x:", "X-Consumer-Username": "root", "X-Userinfo": "root",
		"True-Client-IP": "root", "X-Authenticated-User": "root", "X.Forwarded.For": "root", "X.Api.Key": "root",
		"X-Client": "app",
		"Upgrade":  "websocket", "Proxy-Authorization": "Basic x", "Te": "trailers, gzip", "Keep-Alive": "5",
		"X-Real-Ip":      "1.2.3.4",
		"Mcp-Session-Id": "s1", "Last-Event-Id": "e_1", "Mcp-Protocol-Version": "2025-11-25",
		"Traceparent": "00-1-2-03",
	})
	for name, want := range map[string]string{
		"Authorization": "", "Proxy-Authorization": "", "Dpop": "", "Origin": "", "Upgrade": "", "X-Custom": "",
		"Keep-Alive": "", "X-Real-Ip": "", "Forwarded": "",
		"X-Client": "app", "Cookie": "lb=1", "X-Api-Key": "ours", "X-Forwarded-Host": "mcp.example.com",
		"X-Forwarded-Proto": "https", "X-Forwarded-For": "127.0.0.1",
		"X-Mcp-Subject": "usr_alice", "X-Mcp-Client": "https://app.example.com/client.json", "X-Mcp-Scope": "mcp admin",
		"Mcp-Session-Id": "s1", "Last-Event-Id": "e_1", "Mcp-Protocol-Version": "2025-11-25",
		"Traceparent": "00-1-2-03",
	} {
		t.Run("RS-49 SP-22 RFC 9110 7.6.1: header "+name, func(t *testing.T) {
			if v := strings.Join(got.Header.Values(name), " and "); v != want {
				t.Errorf("the MCP server got %q, want %q", v, want)
			}
		})
	}
	t.Run("Security L7: a client speaks in the gateway's name in no spelling", func(t *testing.T) {
		for name, v := range got.Header {
			if strings.Contains(strings.Join(v, ""), "root") {
				t.Errorf("%s: %s", name, v)
			}
		}
	})
	t.Run("RFC 6750 2.3: a token in the query goes nowhere, and the operator's query counts", func(t *testing.T) {
		if got.URL.Path != "/inner/mcp" || got.URL.RawQuery != "team=7&x=1" {
			t.Errorf("the MCP server was asked for %s", got.URL)
		}
	})
	t.Run("RFC 8725 3.11: the identity token has its own type, audience and a minute", func(t *testing.T) {
		parts := strings.Split(got.Header.Get(HeaderToken), ".")
		raw, err := base64.RawURLEncoding.DecodeString(parts[2])
		var c claims
		if err != nil || json.Unmarshal(raw, &c) != nil {
			t.Fatalf("identity %q", got.Header.Get(HeaderToken))
		}
		if parts[1] != "mcp-identity+jwt" || !strings.HasSuffix(c.Audience, "/inner/mcp?team=7") ||
			c.Resource != publicURL || c.Expires-c.Issued != 60 ||
			c.Subject != alice.Subject || c.ClientID != alice.ClientID || c.Scope != "mcp admin" ||
			c.Issuer != "https://auth.example.com" {
			t.Errorf("typ %s, claims %+v", parts[1], c)
		}
	})
	t.Run("a caller costs one signature in half a minute", func(t *testing.T) {
		for range 5 {
			post(t, g.URL, ping, nil)
		}
		if n := signer.n.Load(); n != 1 {
			t.Errorf("%d signatures for 6 requests", n)
		}
	})
}

func TestIdentity(t *testing.T) {
	now := time.Now()
	signer := &notary{}
	s := newSigner(Identity{Signer: signer}.withDefaults(), publicURL, "http://inner", func() time.Time { return now })
	first, _ := s.sign(t.Context(), alice)
	less := *alice
	less.Scopes = oauth.Scopes{"mcp"}
	other, _ := s.sign(t.Context(), &less)
	if first == other {
		t.Error("a token was used again for other scopes")
	}
	helped := *alice
	helped.Claims = []byte(`{"act":{"sub":"reader"}}`)
	if theirs, _ := s.sign(t.Context(), &helped); theirs == first || theirs == other {
		t.Error("AS-243 a token was used again for a helper")
	}
	signer.n.Store(2)
	if now = now.Add(29 * time.Second); signer.n.Load() != 2 {
		t.Errorf("%d signatures", signer.n.Load())
	}
	if again, _ := s.sign(t.Context(), alice); again != first {
		t.Error("a token is not used for half of its life")
	}
	now = now.Add(2 * time.Second)
	if again, _ := s.sign(t.Context(), alice); again == first {
		t.Error("a token is used for more than half of its life")
	}
	now = now.Add(-time.Hour)
	if again, _ := s.sign(t.Context(), alice); strings.HasPrefix(again, "3.") {
		t.Error("a token from the future is used after the clock was set back")
	}
	for _, bad := range []struct {
		Identity
		want string
	}{
		{Identity{Subject: "Authorization"}, `"Authorization" cannot be the name`},
		{Identity{Subject: "a b"}, `"a b" cannot be the name`},
		{Identity{Subject: "X-Same", Client: "x-same"}, `"X-Same" is used twice`},
		{Identity{Token: "Mcp-Session-Id"}, `"Mcp-Session-Id" cannot be the name`},
		{Identity{Scope: "x_y"}, `"X_y" cannot be the name`},
	} {
		_, err := New(Config{URL: "http://127.0.0.1/", Resource: publicURL, Identity: bad.Identity})
		if err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("got %v, want %s", err, bad.want)
		}
	}
	for _, name := range []string{"jörg", "a\nb", "x ", "a\x00"} {
		p := *alice
		p.Subject = name
		if i := (Identity{}); i.fits(&p) == nil {
			t.Errorf("%q would go into a header", name)
		}
	}
}

func TestResponses(t *testing.T) {
	cases := []struct {
		name, body string
		answer     http.HandlerFunc
		status     int
		want       string
	}{
		{"a JSON answer goes through", ping, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"jsonrpc":"2.0","id":"p1","result":{}}`)
		}, 200, `{"jsonrpc":"2.0","id":"p1","result":{}}`},
		{"a JSON-RPC error with status 500 goes through", ping, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(500)
			io.WriteString(w, `{"jsonrpc":"2.0","id":"p1","error":{"code":-32603,"message":"x"}}`)
		}, 500, `{"jsonrpc":"2.0","id":"p1","error":{"code":-32603,"message":"x"}}`},
		{"a 404 of a session goes through", ping,
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "session not found", 404) }, 404,
			"session not found"},
		{"the MCP server's own sign-in is not the client's", ping, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://10.0.0.7/x"`)
			w.WriteHeader(401)
		}, 502, `"id":"p1","error":{"code":-32603,"message":"The MCP server does not accept the gateway.`},
		{"a redirect inside is an error outside", ping, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://10.0.0.7/mcp/", http.StatusTemporaryRedirect)
		}, 502, `The MCP server is elsewhere.`},
		{"a page of a proxy inside is not shown", ping, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(503)
			io.WriteString(w, "<h1>10.0.0.7:3000 refused</h1>")
		}, 503, `The MCP server has failed.`},
		{"a broken answer is 502", ping, func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(c, "nonsense\r\n\r\n")
			c.Close()
		}, 502, `The MCP server cannot be reached.`},
		{"an endless head is 502", ping, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", maxHead*2))
		}, 502, `The MCP server cannot be reached.`},
		{"a batch has no id", `[` + ping + `]`, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) },
			502, `"id":null`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			resp, body := post(t, front(t, Config{}, c.answer).URL, c.body, nil)
			if resp.StatusCode != c.status || !strings.Contains(body, c.want) {
				t.Errorf("got %d %s, want %d %s", resp.StatusCode, body, c.status, c.want)
			}
			if all := fmt.Sprint(resp.Header) + body; strings.Contains(all, "10.0.0.7") ||
				strings.Contains(all, "127.0.0.1") {
				t.Errorf("an inner address is shown: %s", all)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	g := front(t, Config{URL: "http://" + nettest.For(t)}, nil)
	resp, body := post(t, g.URL, ping, nil)
	if resp.StatusCode != 502 || !strings.Contains(body, `"id":"p1"`) || strings.Contains(body, "127.0.0.1") {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
	release := make(chan struct{})
	slow := front(t, Config{Timeout: 50 * time.Millisecond}, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	if resp, body := post(t, slow.URL, ping, nil); resp.StatusCode != 504 || !strings.Contains(body, "in time") {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
}

func TestResponseHeaders(t *testing.T) {
	g := front(t, Config{Cookies: []string{"lb"}}, func(w http.ResponseWriter, _ *http.Request) {
		for k, v := range map[string]string{
			"Access-Control-Allow-Origin": "*", "Www-Authenticate": "Bearer", "Alt-Svc": "h3",
			"Strict-Transport-Security": "x", "Clear-Site-Data": "*",
			"Connection": "X-Hop", "X-Hop": "1", "Mcp-Session-Id": "s1", "X-Other": "kept",
		} {
			w.Header().Set(k, v)
		}
		w.Header().Add("Set-Cookie", "lb=1; Path=/")
		w.Header().Add("Set-Cookie", "__Host-mcp-authd-session=evil")
		w.Header().Add("Set-Cookie", "sid=1")
	})
	resp, _ := post(t, g.URL, ping, nil)
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "", "Www-Authenticate": "", "Alt-Svc": "", "Strict-Transport-Security": "",
		"Clear-Site-Data": "", "X-Hop": "",
		"Mcp-Session-Id": "s1", "X-Other": "kept", "Set-Cookie": "lb=1; Path=/",
	} {
		if v := strings.Join(resp.Header.Values(name), " and "); v != want {
			t.Errorf("%s: the client got %q, want %q", name, v, want)
		}
	}
}

// TestTrailers: EN-10. Headers that are removed from a response are also removed from its trailers.
func TestTrailers(t *testing.T) {
	for _, contentType := range []string{"application/json", "text/event-stream"} {
		for _, watched := range []bool{false, true} {
			g := front(t, Config{Watched: watched}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", contentType)
				w.Header().Set("Trailer", "Set-Cookie, X-Announced")
				w.WriteHeader(http.StatusOK)
				w.(http.Flusher).Flush()
				io.WriteString(w, "data: {}\n\n"[:2])
				w.Header().Set("Set-Cookie", "__Host-mcp-authd-session=evil")
				w.Header().Set("X-Announced", "1")
				w.Header().Set(http.TrailerPrefix+"Location", "https://evil.example.com")
			})
			resp, body := post(t, g.URL, ping, nil)
			if len(resp.Trailer) > 0 || resp.StatusCode != http.StatusOK {
				t.Errorf("EN-10 %s, watched %v: got %d %q with the trailers %v",
					contentType, watched, resp.StatusCode, body, resp.Trailer)
			}
		}
	}
}

// TestStream checks that flushed data arrives before the MCP server sends more.
func TestStream(t *testing.T) {
	more := make(chan struct{})
	g := front(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-more
		io.WriteString(w, "id: a_0\ndata: \n\n")
		w.(http.Flusher).Flush()
		<-more
		fmt.Fprintf(w, "id: a_1\ndata: %s\n\n", r.Header.Get("Last-Event-Id"))
	})
	req, _ := http.NewRequest(http.MethodGet, g.URL, nil)
	req.Header.Set("Last-Event-ID", "a_7")
	resp, err := http.DefaultClient.Do(req) // returns after the response header
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func() string { lines.Scan(); return lines.Text() }
	more <- struct{}{}
	if got := next() + "|" + next() + "|" + next(); got != "id: a_0|data: |" {
		t.Errorf("RS-127: the priming event came as %q", got)
	}
	close(more)
	if got := next() + "|" + next(); got != "id: a_1|data: a_7" {
		t.Errorf("RS-115: got %q", got)
	}
}

// TestSilentStream checks that the timeout limits the response header only: a stream may be silent
// for longer.
func TestSilentStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, err := New(Config{URL: "http://mcp.example.com/mcp", Resource: publicURL, Timeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		transport := u.transport()
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			gateway, server := net.Pipe()
			go func() {
				defer server.Close()
				if _, err := http.ReadRequest(bufio.NewReader(server)); err != nil {
					t.Error(err)
					return
				}
				io.WriteString(server, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
				wait.Advance(6 * time.Second)
				io.WriteString(server, "data: late\n\n")
			}()
			return gateway, nil
		}
		u.proxy.Transport = final{transport}
		w := httptest.NewRecorder()
		as(alice, u).ServeHTTP(w, httptest.NewRequest(http.MethodGet, publicURL, nil))
		if got := w.Body.String(); w.Code != http.StatusOK || got != "data: late\n\n" {
			t.Errorf("got %d %q", w.Code, got)
		}
	})
}

// TestStreamEnds checks that a stream ends cleanly if its token ends, and that the MCP server
// notices. A stream that the server breaks off must not look complete.
func TestStreamEnds(t *testing.T) {
	gone := make(chan struct{})
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		if r.Method == http.MethodPost {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
		close(gone)
	}))
	defer inner.Close()
	u, err := New(Config{URL: inner.URL, Resource: publicURL})
	if err != nil {
		t.Fatal(err)
	}
	var end context.CancelCauseFunc
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(mcpresource.NewContext(r.Context(), alice))
		end = cancel
		u.ServeHTTP(w, r.WithContext(ctx))
	}))
	defer outer.Close()
	resp, err := http.Get(outer.URL)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 9)
	io.ReadFull(resp.Body, first)
	end(errors.New("revoked"))
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) != 0 {
		t.Errorf("RS-98: the stream ended with %q, %v", rest, err)
	}
	<-gone
	resp, err = http.Post(outer.URL, "application/json", strings.NewReader(ping))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("a stream that broke off looks complete")
	}
}

// TestTokens checks that the MCP server gets the provider's token, and that the user gets a link if
// the provider has issued none.
func TestTokens(t *testing.T) {
	var auth string
	source := tokenFunc(func(ctx context.Context, provider string, scopes ...string) (string, error) {
		p, _ := mcpresource.FromContext(ctx)
		if p.Subject == "bob" {
			return "", &InteractionRequired{Message: "Connect GitHub first.", URL: "https://auth.example.com/connect/x"}
		}
		return "Bearer " + provider + "/" + strings.Join(scopes, "+") + "/" + p.Subject, nil
	})
	inner := httptest.NewServer(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { auth = r.Header.Get("Authorization") }),
	)
	defer inner.Close()
	u, err := New(Config{
		URL: inner.URL, Resource: publicURL, Tokens: source, Provider: "github", Scopes: []string{"repo"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(p mcpresource.Principal, version string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, publicURL, strings.NewReader(ping))
		r.Header.Set("Authorization", "Bearer client-token")
		r.Header.Set("Mcp-Protocol-Version", version)
		as(&p, u).ServeHTTP(w, r)
		return w
	}
	if ask(*alice, ""); auth != "Bearer github/repo/usr_alice" {
		t.Errorf("RS-50: the MCP server got %q", auth)
	}
	bob := *alice
	bob.Subject = "bob"
	if w := ask(bob, "2025-11-25"); w.Code != 403 || !strings.Contains(w.Body.String(), `-32042`) ||
		!strings.Contains(w.Body.String(), `"mode":"url"`) {
		t.Errorf("RS-79: got %d %s", w.Code, w.Body)
	}
	if w := ask(bob, "2026-07-28"); strings.Contains(w.Body.String(), `-32042`) ||
		!strings.Contains(w.Body.String(), "/connect/x") {
		t.Errorf("RS-171: got %s", w.Body)
	}
}

type tokenFunc func(ctx context.Context, provider string, scopes ...string) (string, error)

func (f tokenFunc) Token(ctx context.Context, provider string, scopes ...string) (string, error) {
	return f(ctx, provider, scopes...)
}

// TestManyStreams opens 200 streams and checks that they leak nothing.
func TestManyStreams(t *testing.T) {
	g := front(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %s %d\n\n", r.URL.Query().Get("n"), i)
			w.(http.Flusher).Flush()
		}
		if r.URL.Query().Get("n")[0] == '1' {
			<-r.Context().Done() // the client disconnects
		}
	})
	before := runtime.NumGoroutine()
	client := &http.Client{Transport: &http.Transport{}}
	var wg sync.WaitGroup
	for n := range 200 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s?n=%d", g.URL, n), nil)
			resp, err := client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			for i := range 3 {
				lines.Scan()
				if want := fmt.Sprintf("data: %d %d", n, i); lines.Text() != want {
					t.Errorf("got %q, want %q", lines.Text(), want)
				}
				lines.Scan()
			}
		})
	}
	wg.Wait()
	client.CloseIdleConnections()
	wait.Until(t, "the streams have ended", func() bool { return runtime.NumGoroutine() <= before+10 })
}

func TestSites(t *testing.T) {
	main := http.NewServeMux()
	main.HandleFunc("/token", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "authd") })
	sites, err := NewSites("https://mcp.example.com", main)
	if err != nil {
		t.Fatal(err)
	}
	add := func(resource string, pathOnly bool, err error) error {
		g, guardErr := mcpresource.New(mcpresource.Config{
			Resource: resource, AuthorizationServers: []string{alice.Issuer},
			Metadata: mcpresource.Metadata{PathOnly: pathOnly},
			Validator: mcpresource.ValidatorFunc(
				func(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) {
					p := *alice
					p.Audience, p.ExpiresAt = []string{resource}, time.Now().Add(time.Hour)
					return &p, nil
				}),
		})
		if guardErr != nil {
			t.Fatal(guardErr)
		}
		return sites.Add(resource, g, fake{resource, err})
	}
	for resource, down := range map[string]error{
		"https://mcp.example.com/mcp": nil, "https://mcp.example.com/two": nil,
		"https://other.example.com/mcp": os.ErrNotExist,
	} {
		if err := add(resource, strings.HasPrefix(resource, "https://mcp"), down); err != nil {
			t.Fatal(err)
		}
	}
	for _, taken := range []string{"https://mcp.example.com/mcp", "https://mcp.example.com/token"} {
		if add(taken, true, nil) == nil {
			t.Errorf("%s was taken and is mounted", taken)
		}
	}
	for url, want := range map[string]string{
		"https://mcp.example.com/token": "authd", "https://mcp.example.com/mcp": "https://mcp.example.com/mcp",
		"https://mcp.example.com/two":     "https://mcp.example.com/two",
		"https://other.example.com/mcp":   "https://other.example.com/mcp",
		"https://other.example.com/token": "404 page not found\n",
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, url, nil)
		r.Header.Set("Authorization", "Bearer x")
		if sites.ServeHTTP(w, r); w.Body.String() != want {
			t.Errorf("%s: got %q, want %q", url, w.Body, want)
		}
		if got := w.Header().Get("Strict-Transport-Security"); got != "max-age=31536000" {
			t.Errorf("%s: Strict-Transport-Security is %q", url, got)
		}
	}
	w := httptest.NewRecorder()
	sites.Readyz(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"status":"ready"}`) })(w,
		httptest.NewRequest(http.MethodGet, "/readyz", nil))
	want := `{"status":"ready","upstreams":{"https://mcp.example.com/mcp":"up","https://mcp.example.com/two":"up","https://other.example.com/mcp":"down"}}`
	if strings.TrimSpace(w.Body.String()) != want || w.Code != 200 {
		t.Errorf("readyz: %d %s", w.Code, w.Body)
	}
}

type fake struct {
	name string
	err  error
}

func (f fake) ServeHTTP(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, f.name) }
func (fake) Try(context.Context) (string, error)                { return "", nil }
func (f fake) Check(context.Context) error                      { return f.err }
func (f fake) Run(context.Context)                              {}
func (f fake) Close() error                                     { return nil }

func TestHealth(t *testing.T) {
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			w.WriteHeader(status)
		}
	}))
	for _, c := range []Config{{URL: s.URL + "/mcp"}, {URL: s.URL + "/mcp", Health: "/healthz"}} {
		c.Resource = publicURL
		u, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := u.Check(t.Context()); err != nil {
			t.Errorf("a good server is down: %v", err)
		}
	}
	status = http.StatusServiceUnavailable
	u, _ := New(Config{URL: s.URL + "/mcp", Resource: publicURL, Health: "/healthz"})
	if u.Check(t.Context()) == nil {
		t.Error("a server that says it is not well is up")
	}
	s.Close()
	u, _ = New(Config{URL: s.URL + "/mcp", Resource: publicURL})
	if u.Check(t.Context()) == nil {
		t.Error("a server that is gone is up")
	}
	for _, bad := range []string{"", "ftp://x/", "http://", "http://u:p@x/", "mcp.example.com", "http://x/#f"} {
		if _, err := New(Config{URL: bad, Resource: publicURL}); err == nil {
			t.Errorf("%q is taken for an upstream", bad)
		}
	}
}

// TestRemember checks that a valid bearer token is validated once a second, and other credentials
// each time.
func TestRemember(t *testing.T) {
	var asked int
	var looked []bool
	var fault error
	now := time.Now()
	v := Remember(
		mcpresource.ValidatorFunc(func(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) {
			asked++
			return alice, fault
		}), time.Second, func() time.Time { return now }, func(hit bool) { looked = append(looked, hit) })
	ask := func(scheme, token string) error {
		_, err := v.Validate(t.Context(), mcpresource.Credential{Scheme: scheme, Token: token})
		return err
	}
	count := func(what string, want int, n int) {
		if n != want {
			t.Errorf("%s: asked %d times, want %d", what, n, want)
		}
	}
	ask("Bearer", "a")
	ask("bearer", "a")
	count("the same token", 1, asked)
	ask("Bearer", "b")
	count("another token", 2, asked)
	if want := []bool{false, true, false}; !slices.Equal(looked, want) {
		t.Errorf("OB-07: the cache had %v, want %v", looked, want)
	}
	ask("DPoP", "a")
	ask("DPoP", "a")
	count("RS-205: a token with a proof", 4, asked)
	fault = mcpresource.ErrInvalidToken
	now = now.Add(time.Second)
	for range 2 {
		if ask("Bearer", "a") == nil {
			t.Error("RS-44: a revoked token is good after a second")
		}
	}
	count("what is not good", 6, asked)
}

// TestAccept: RFC 9110 12.5.1. A client without Accept accepts anything. MCP servers require the
// header, so the gateway adds it.
func TestAccept(t *testing.T) {
	var got string
	g := front(t, Config{}, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Accept") })
	if post(t, g.URL, ping, nil); got != "application/json, text/event-stream" {
		t.Errorf("without Accept the MCP server gets %q", got)
	}
	if post(t, g.URL, ping, map[string]string{"Accept": "text/plain"}); got != "text/plain" {
		t.Errorf("text/plain becomes %q", got)
	}
}

// TestRenamedHeaders: RS-49. A client can send neither the configured header names nor the default
// names that they replace.
func TestRenamedHeaders(t *testing.T) {
	var got http.Header
	g := front(t,
		Config{Identity: Identity{Subject: "X-Caller", Client: "none", Signer: &notary{}, Token: "X-Proof"}}, func(
			_ http.ResponseWriter, r *http.Request) {
			got = r.Header
		})
	forged := map[string]string{}
	for _, name := range []string{
		"X-Mcp-Subject", "X-Mcp-Client", "X-Mcp-Scope", "X-Mcp-Identity", "X-Caller", "x-caller", "X.Caller",
		"X_Caller", "X-Proof",
	} {
		forged[name] = "root"
	}
	post(t, g.URL, ping, forged)
	if got.Get("X-Caller") != alice.Subject || got.Get("X-Mcp-Scope") != "mcp admin" || got.Get("X-Proof") == "" {
		t.Errorf("the MCP server got %v", got)
	}
	for name, v := range got {
		if strings.Contains(strings.Join(v, ""), "root") || name == "X-Mcp-Subject" || name == "X-Mcp-Client" ||
			name == "X-Mcp-Identity" {
			t.Errorf("%s: %s", name, v)
		}
	}
}

// TestSandbox checks that headers about the MCP server's origin do not reach the client, and that
// its responses cannot become pages of our origin. Security L12.
func TestSandbox(t *testing.T) {
	g := front(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range responseOnly {
			w.Header().Set(name, "theirs")
		}
		w.Header().Set("Content-Security-Policy", "script-src *")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("X-Theirs", "kept")
		w.Header().Set("Content-Type", "text/html")
	})
	resp, _ := post(t, g.URL, ping, nil)
	if len(responseOnly) < 14 || resp.Header.Get("X-Theirs") != "kept" {
		t.Fatalf("%d headers, got %v", len(responseOnly), resp.Header)
	}
	for _, name := range append(responseOnly, "Access-Control-Allow-Origin") {
		if v, ok := resp.Header[name]; ok {
			t.Errorf("%s: %s", name, v)
		}
	}
	if v := resp.Header.Values("Content-Security-Policy"); len(v) != 1 || !strings.HasPrefix(v[0], "sandbox;") ||
		resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("it could be a page: %v", resp.Header)
	}
}

// TestBadURL checks that New refuses an invalid upstream URL and does not repeat its password.
// SP-28, Security L15.
func TestBadURL(t *testing.T) {
	for _, u := range []string{
		"", "mcp", "ftp://a/", "http://user:hunter2@127.0.0.1/", "http://127.0.0.1/#f", "http:///mcp",
		"http://user:hun%zzter2@a/",
	} {
		_, err := New(Config{URL: u, Resource: publicURL})
		if err == nil || !strings.Contains(err.Error(), "the upstream URL is not") ||
			strings.Contains(err.Error(), "ter2") {
			t.Errorf("%q: %v", u, err)
		}
	}
}

// TestTry checks that problems of an MCP server are reported at start.
func TestTry(t *testing.T) {
	answer := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.Header().Set("Content-Type", kind)
				w.Header().Set("Mcp-Session-Id", "s")
				w.WriteHeader(status)
				io.WriteString(w, body)
			}
		}
	}
	const result = `{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"notes"}}}`
	for _, c := range []struct {
		name, want, err string
		away            bool
		http.HandlerFunc
	}{
		{"JSON", "notes", "", false, answer(200, "application/json", result)},
		{"a stream", "notes", "", false,
			answer(200, "text/event-stream", "id: 1\ndata:\n\nevent: message\ndata: "+result+"\n\n")},
		{"another era", "", "", false,
			answer(400, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"x"}}`)},
		{"it wants to know who calls", "", "", false, answer(401, "text/plain", "who?")},
		{"the path is missing", "", "/inner (404 Not Found): is the path missing?", false,
			answer(404, "text/html", "no")},
		{"a page", "", "text/html", true, answer(200, "text/html", "<p>")},
		{"it is not well", "", "503", true, answer(503, "text/plain", "no")},
	} {
		t.Run(c.name, func(t *testing.T) {
			ended := false
			inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ended = ended || r.Method == http.MethodDelete && r.Header.Get("Mcp-Session-Id") == "s"
				c.HandlerFunc(w, r)
			}))
			defer inner.Close()
			u, err := New(Config{URL: inner.URL + "/inner?key=hunter2", Resource: publicURL})
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			name, err := u.Try(t.Context())
			switch {
			case name != c.want, (err != nil) != (c.err != ""), errors.Is(err, ErrAway) != c.away:
				t.Errorf("got %q, %v", name, err)
			case err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "hunter2")):
				t.Errorf("got %v, want %s", err, c.err)
			case !ended:
				t.Error("the session is left open")
			}
		})
	}
	u, err := New(Config{URL: "http://127.0.0.1:1/mcp", Resource: publicURL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Try(t.Context()); !errors.Is(err, ErrAway) ||
		!strings.Contains(err.Error(), "http://127.0.0.1:1/mcp: connection refused") {
		t.Errorf("no server there: %v", err)
	}
}
