package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// TestDefaults checks the defaults that the comments of Config promise.
func TestDefaults(t *testing.T) {
	u, err := New(Config{URL: "http://127.0.0.1:1", Resource: publicURL})
	if err != nil {
		t.Fatal(err)
	}
	transport := u.transport()
	connect, head := transport.TLSHandshakeTimeout, transport.ResponseHeaderTimeout
	if u.c.Connect != connect || connect != 5*time.Second || head != 5*time.Minute {
		t.Errorf("connect %s, head %s", connect, head)
	}
	if transport.Proxy != nil || !transport.DisableCompression {
		t.Error("a proxy of the environment or a compression stands between gateway and MCP server")
	}
	u, err = New(Config{URL: "http://127.0.0.1:1", Resource: publicURL, Connect: 1, Timeout: 1})
	if err != nil || u.c.Connect != 1 || u.c.Timeout != 1 {
		t.Errorf("got %+v, %v", u.c, err)
	}
	for _, bad := range []string{"", "mcp", "/mcp", "http://%zz"} {
		_, err := New(Config{URL: "http://127.0.0.1:1", Resource: bad})
		if err == nil || !strings.Contains(err.Error(), "is not the public URL") {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

// TestRedirectsAndOthers checks that every redirect of an MCP server is an error, except 304.
func TestRedirectsAndOthers(t *testing.T) {
	for status, want := range map[int]int{
		204: 204, 300: 502, 302: 502, 304: 304, 308: 502, 399: 502, 400: 400, 401: 502, 407: 502, 499: 499, 500: 500,
	} {
		g := front(t, Config{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		if resp, body := post(t, g.URL, ping, nil); resp.StatusCode != want {
			t.Errorf("%d: got %d %s, want %d", status, resp.StatusCode, body, want)
		}
	}
}

// TestUpgrade checks that a request to change the protocol does not reach the MCP server. The guard
// would not judge anything sent after the change.
func TestUpgrade(t *testing.T) {
	var got http.Header
	g := front(t, Config{}, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	post(t, g.URL, ping, map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"})
	if got == nil || got.Get("Upgrade") != "" || got.Get("Connection") != "" {
		t.Errorf("the MCP server got %v", got)
	}
}

// TestUnknownCallers: RS-49. A caller whose name cannot be sent or signed is refused. A caller whom
// the policy admits without a token has no name.
func TestUnknownCallers(t *testing.T) {
	var got []http.Header
	inner := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header)
	}))
	defer inner.Close()
	signer := &notary{}
	serve := func(i Identity, p *mcpresource.Principal, body io.Reader) *httptest.ResponseRecorder {
		u, err := New(Config{URL: inner.URL, Resource: publicURL, Identity: i})
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, publicURL, body)
		r.Header.Set("X-Mcp-Subject", "root")
		if p != nil {
			r = r.WithContext(mcpresource.NewContext(r.Context(), p))
		}
		u.ServeHTTP(w, r)
		return w
	}
	unspeakable := *alice
	unspeakable.Subject = "jörg"
	for name, w := range map[string]*httptest.ResponseRecorder{
		"a name that no header holds":   serve(Identity{Signer: signer}, &unspeakable, strings.NewReader(ping)),
		"a name that cannot be signed":  serve(Identity{Signer: broken{}}, alice, strings.NewReader(ping)),
		"a body that cannot be read":    serve(Identity{Signer: signer}, alice, iotest.ErrReader(errors.New("torn"))),
		"a body that cannot be read: 2": serve(Identity{}, nil, iotest.ErrReader(errors.New("torn"))),
	} {
		if w.Code != 502 || !strings.Contains(w.Body.String(), "-32603") {
			t.Errorf("%s: got %d %s", name, w.Code, w.Body)
		}
	}
	if len(got) != 0 {
		t.Fatalf("the MCP server was asked: %v", got)
	}
	if w := serve(Identity{Signer: broken{}}, nil, strings.NewReader(ping)); w.Code != 200 || len(got) != 1 {
		t.Fatalf("without a token: got %d %s", w.Code, w.Body)
	}
	w := serve(Identity{Signer: broken{}, Token: "none"}, alice, strings.NewReader(ping))
	if w.Code != 200 || len(got) != 2 {
		t.Fatalf("without identity tokens: got %d %s", w.Code, w.Body)
	}
	for name := range got[0] {
		if strings.HasPrefix(name, "X-Mcp-") {
			t.Errorf("without a caller the MCP server got %s: %s", name, got[0][name])
		}
	}
	if _, ok := got[1]["X-Mcp-Identity"]; ok || got[1].Get("X-Mcp-Subject") != alice.Subject {
		t.Errorf("without identity tokens the MCP server got %v", got[1])
	}
}

// TestHelperIsNamed: AS-243. An MCP server behind the gateway gets the name of the calling
// sub-agent. A sub-agent whose name does not fit into a header is refused.
func TestHelperIsNamed(t *testing.T) {
	var got http.Header
	inner := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer inner.Close()
	var said claims
	u, err := New(Config{URL: inner.URL, Resource: publicURL, Identity: Identity{Signer: recorder{&said}}})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for _, tt := range []struct {
		act, want string
		status    int
	}{
		{`{"sub":"reader","act":{"sub":"planner"}}`, "reader", 200},
		{`null`, "", 200},
		{`{"email":"x"}`, "unnamed", 200},
		{`{"sub":"j\u00f6rg"}`, "", 502},
	} {
		p := *alice
		p.Claims = []byte(`{"act":` + tt.act + `}`)
		got, said = http.Header{}, claims{}
		r := httptest.NewRequest(http.MethodPost, publicURL, strings.NewReader(ping))
		r.Header.Set("X-Mcp-Actor", "root")
		w := httptest.NewRecorder()
		u.ServeHTTP(w, r.WithContext(mcpresource.NewContext(r.Context(), &p)))
		if w.Code != tt.status || got.Get("X-Mcp-Actor") != tt.want {
			t.Errorf("%s: got %d %v", tt.act, w.Code, got)
		}
		if chain := said.Act.Chain(); tt.status == 200 && !slices.Equal(chain, p.Actors()) {
			t.Errorf("%s: got act %+v, want %+v", tt.act, chain, p.Actors())
		}
	}
}

type broken struct{}

func (broken) Sign(context.Context, string, any) (string, error) { return "", errors.New("no key") }

// TestOrigin checks that an identity token has the origin of the caller's token if it differs from
// iss, and the configured audience.
func TestOrigin(t *testing.T) {
	for issuer, want := range map[string]string{alice.Issuer: "", "https://gateway.example.com": alice.Issuer} {
		var c claims
		i := Identity{Signer: recorder{&c}, Issuer: issuer, Audience: "notes"}.withDefaults()
		if _, err := newSigner(i, publicURL, "http://inner", time.Now).sign(t.Context(), alice); err != nil {
			t.Fatal(err)
		}
		if c.Origin != want || c.Audience != "notes" {
			t.Errorf("RFC 8725 3.8: %s: got origin %q, aud %q", issuer, c.Origin, c.Audience)
		}
	}
}

type recorder struct{ into *claims }

func (r recorder) Sign(_ context.Context, _ string, c any) (string, error) {
	*r.into = c.(claims)
	return "x", nil
}

// TestIdleConnections checks that no request fails because the MCP server has closed an idle
// connection.
func TestIdleConnections(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, publicURL, struct{ io.Reader }{strings.NewReader(ping)})
	r.ContentLength = -1
	if _, err := repeatable(r); err != nil || r.ContentLength != int64(len(ping)) {
		t.Fatalf("%v, length %d", err, r.ContentLength)
	}
	for range 2 {
		body, err := r.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(body); string(b) != ping || err != nil {
			t.Errorf("again: %q, %v", b, err)
		}
	}
	if b, err := io.ReadAll(r.Body); string(b) != ping || err != nil {
		t.Errorf("the first time: %q, %v", b, err)
	}
}

// TestQuery checks that the MCP server gets the configured query if the client sends none.
func TestQuery(t *testing.T) {
	var got *http.Request
	g := front(t, Config{}, func(_ http.ResponseWriter, r *http.Request) { got = r })
	if post(t, g.URL, ping, nil); got.URL.RawQuery != "team=7" {
		t.Errorf("the MCP server was asked for %s", got.URL)
	}
	resp, err := http.Get(g.URL)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); got.Method != http.MethodGet || got.Header.Get("Accept") != "" {
		t.Errorf("RFC 9110 12.5.1: %s without Accept becomes %q", got.Method, got.Header.Get("Accept"))
	}
}

// TestCookies checks that "*" passes all cookies except the authorization server's.
func TestCookies(t *testing.T) {
	var got *http.Request
	g := front(t, Config{Cookies: []string{"*"}}, func(w http.ResponseWriter, r *http.Request) {
		got = r
		for _, c := range []string{
			"mcp-authd-browser=evil", "__Host-mcp-authd-session=evil", "=evil", "sid=1; Path=/",
		} {
			w.Header().Add("Set-Cookie", c)
		}
	})
	resp, _ := post(t, g.URL, ping, map[string]string{
		"Cookie": "mcp-authd-browser=s;a=1; __Host-mcp-authd-session=s; =x; b=2",
	})
	if v := got.Header.Values("Cookie"); strings.Join(v, "|") != "a=1; b=2" {
		t.Errorf("the MCP server got %q", v)
	}
	if v := resp.Header.Values("Set-Cookie"); strings.Join(v, "|") != "sid=1; Path=/" {
		t.Errorf("the client got %q", v)
	}
}

// streaming serves an event stream whose token has ended into w.
func streaming(t *testing.T, w http.ResponseWriter, cause error) (panicked any) {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: 1\n\n")
	}))
	defer inner.Close()
	u, err := New(Config{URL: inner.URL, Resource: publicURL})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	defer func() { panicked = recover() }()
	u.ServeHTTP(ender{w, func() { end(cause) }}, httptest.NewRequest(http.MethodGet, publicURL, nil).WithContext(ctx))
	return nil
}

// ender ends a request at the first write of its stream.
type ender struct {
	http.ResponseWriter
	end func()
}

func (e ender) Write(b []byte) (int, error) { e.end(); return e.ResponseWriter.Write(b) }

type faulty struct{ http.ResponseWriter }

func (faulty) Write([]byte) (int, error) { panic("a defect") }

// TestStreamDefects checks that the end of a token does not hide a broken stream, and that a stream
// that was already complete is not reported as broken.
func TestStreamDefects(t *testing.T) {
	revoked := errors.New("revoked")
	if v := streaming(t, faulty{httptest.NewRecorder()}, revoked); v != "a defect" {
		t.Errorf("a panic in a stream that has ended becomes %v", v)
	}
	w := httptest.NewRecorder()
	if v := streaming(t, w, revoked); v != nil || w.Body.String() != "data: 1\n\n" {
		t.Errorf("a complete stream: panic %v, %q", v, w.Body)
	}
}

// TestHealthPage checks that an MCP server is down if its page is unreachable or does not return
// 2xx. The result is cached briefly, and a caller that leaves does not change it.
func TestHealthPage(t *testing.T) {
	var asked, status atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/inner/well" {
			asked.Add(1)
			w.WriteHeader(int(status.Load()))
		}
	}))
	upstream := func(page string) *Upstream {
		u, err := New(Config{URL: s.URL + "/inner/mcp", Resource: publicURL, Health: page})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	for code, want := range map[int32]string{
		200: "", 299: "", 300: "answers 300", 404: "answers 404", 500: "answers 500",
	} {
		status.Store(code)
		err := upstream("well").Check(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d: got %v, want %q", code, err, want)
		}
	}
	status.Store(500)
	u := upstream("well")
	gone, end := context.WithCancel(t.Context())
	end()
	if err := u.Check(gone); err != nil {
		t.Errorf("an asker who has gone: %v", err)
	}
	asked.Store(0)
	for range 3 {
		if err := u.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "it answers 500") {
			t.Errorf("got %v, want its answer", err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times in a row, want 1", n)
	}
	s.Close()
	if err := upstream("well").Check(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a server that is gone: %v", err)
	}
	_, err := New(Config{URL: s.URL, Resource: publicURL, Health: "http://%zz"})
	if err == nil || !strings.Contains(err.Error(), "the health URL") {
		t.Errorf("an unreachable page: %v", err)
	}
}
