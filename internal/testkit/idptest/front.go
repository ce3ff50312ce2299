package idptest

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
)

// Request is a request that a provider received, with the provider's response.
type Request struct {
	Method, Path string
	Query        url.Values
	Header       http.Header
	Body         string
	Form         url.Values // the body, if it is a form
	Status       int
	Location     string // redirect target of the response
	Answer       string // body of the response, if it is JSON
}

// front is a proxy before a provider. Its address is in the provider's issuer.
type front struct {
	host    string // as in the issuer
	address string
	proxy   *httputil.ReverseProxy

	mu       sync.Mutex // guards the fields below
	server   *http.Server
	listener net.Listener
	slow     time.Duration
	requests []Request
}

func newFront(tb testing.TB, name string) *front {
	tb.Helper()
	address := net.JoinHostPort(name, "0")
	if name == "localhost" {
		address = nettest.For(tb) // Up reopens it, so no other process may use it
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	f := &front{host: net.JoinHostPort(name, port), address: l.Addr().String(), listener: l}
	tb.Cleanup(f.down)
	return f
}

// open starts to forward to an address. It keeps the Host header, because providers build their
// URLs from it.
func (f *front) open(tb testing.TB, address string) {
	tb.Helper()
	f.proxy = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: address})
		r.Out.Host = r.In.Host
	}}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serve()
}

// serve starts the HTTP server. The caller holds mu.
func (f *front) serve() {
	f.server = &http.Server{Handler: f, ReadHeaderTimeout: time.Minute}
	go f.server.Serve(f.listener)
}

// ServeHTTP records a request and forwards it.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		http.Error(w, "the body ended early", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.mu.Lock()
	slow := f.slow
	f.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-r.Context().Done():
	}
	kept := Request{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(), Body: string(body),
	}
	kept.Form, _ = url.ParseQuery(kept.Body) // a body that is not a form has no fields
	seen := &watched{ResponseWriter: w}
	f.proxy.ServeHTTP(seen, r)
	kept.Status, kept.Location, kept.Answer = seen.status, w.Header().Get("Location"), seen.body.String()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, kept)
}

type watched struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (w *watched) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(b []byte) (int, error) {
	if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		w.body.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

func (f *front) down() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listener.Close()
	if f.server != nil {
		f.server.Close()
	}
}

// Down makes the provider unreachable and closes all connections. Up makes it reachable again.
func (p *Provider) Down() { p.front.down() }

// Up makes the provider reachable again. Its state is unchanged.
func (p *Provider) Up(tb testing.TB) {
	tb.Helper()
	p.front.mu.Lock()
	defer p.front.mu.Unlock()
	l, err := net.Listen("tcp", p.front.address)
	if err != nil {
		tb.Fatal(err)
	}
	p.front.listener = l
	p.front.serve()
}

// Slow delays every response by d.
func (p *Provider) Slow(d time.Duration) {
	p.front.mu.Lock()
	defer p.front.mu.Unlock()
	p.front.slow = d
}

// Requests returns all requests to the provider so far, in the order of the responses. It omits
// requests of Examines.
func (p *Provider) Requests() []Request {
	p.front.mu.Lock()
	defer p.front.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.front.requests), func(r Request) bool { return Examines(r.Form) })
}

// Examines reports whether a form belongs to the check that a server makes of each provider at its
// start, which involves no user.
func Examines(form url.Values) bool { return form.Get("code") == "mcp-authd-doctor" }

// TokenCalls counts the requests to the token endpoint with a grant type.
func (p *Provider) TokenCalls(grantType string) (n int) {
	for _, r := range p.Requests() {
		if r.Method == http.MethodPost && r.Path == "/token" && r.Form.Get("grant_type") == grantType {
			n++
		}
	}
	return n
}

// Tokens returns all tokens that the provider has issued so far. The keys are access_token,
// refresh_token and id_token (RFC 6749).
func (p *Provider) Tokens() (out []map[string]string) {
	for _, r := range p.Requests() {
		var answer map[string]any
		if r.Path != "/token" || r.Status != http.StatusOK || json.Unmarshal([]byte(r.Answer), &answer) != nil {
			continue
		}
		given := map[string]string{}
		for _, name := range []string{"access_token", "refresh_token", "id_token"} {
			if token, ok := answer[name].(string); ok {
				given[name] = token
			}
		}
		out = append(out, given)
	}
	return out
}
