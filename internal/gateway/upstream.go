package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/gateway/lists"
	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/internal/span"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Config describes one MCP server that is reached by HTTP. URL and Resource are
// required; every other zero value is a safe default.
type Config struct {
	URL      string // of its MCP endpoint
	Resource string // the public URL that clients use
	Identity Identity
	// Headers are sent with every request, in place of what the client sends under the
	// same names: credentials of the gateway at the MCP server, for instance.
	Headers http.Header
	// Cookies are the names of cookies that pass in both directions, "*" for all.
	// Default: none. The browser session of the authorization server may be among them.
	Cookies []string
	// Connect bounds dialing and the TLS handshake. Default: 5 seconds.
	Connect time.Duration
	// Timeout bounds the wait for the head of a response, which a server that answers
	// without a stream sends when a tool has finished. Default: 5 minutes. What follows the
	// head takes as long as it likes.
	Timeout time.Duration
	// Health is a URL, or a path at the server, that answers 2xx when it is well. Default:
	// it is well when it can be connected to.
	Health string
	// Tokens, when set, gets the token of Provider for the caller, which goes to the MCP
	// server as its Authorization.
	Tokens   TokenSource
	Provider string
	Scopes   []string
	// Shows, when set, says which entries of lists the caller in the context of a request is shown.
	Shows Shows
	// Tasks keeps whom tasks of the MCP server belong to. Default: in memory.
	Tasks mcpresource.TaskStore
	// Watched has every answer looked at for lists, and not those to requests for lists alone: a server may put
	// one into the answer to another request, where clients that go by ids find it.
	Watched bool
	// May, when set, says whether the caller in ctx may call a tool, of which a task is a call.
	May    func(ctx context.Context, tool string) bool
	Logger *slog.Logger     // default: discard
	Now    func() time.Time // default: time.Now
}

// Shows reports whether the caller in ctx, which is that of a request, is shown an entry of a list: see
// [lists.View].
type Shows func(ctx context.Context, k lists.Kind, name string, entry []byte) bool

// TokenSource gets tokens of upstream providers, such as GitHub, for the caller in the
// context of a request that the Guard has let through: the value of an Authorization
// header. An [*InteractionRequired] among its errors is shown to the person.
type TokenSource interface {
	Token(ctx context.Context, provider string, scopes ...string) (authorization string, err error)
}

// InteractionRequired means that the person has to open a page first.
type InteractionRequired struct{ Message, URL string }

// Error implements error.
func (e *InteractionRequired) Error() string { return e.Message }

const (
	defaultConnect = 5 * time.Second
	defaultTimeout = 5 * time.Minute
	// idleTime is shorter than the five seconds after which Node closes a connection, so
	// that requests do not meet a closing one.
	idleTime       = 4 * time.Second
	maxIdle        = 256
	maxHead        = 64 << 10 // of a response
	bufferSize     = 16 << 10 // held by each stream for as long as it is open
	connectionKeep = 15 * time.Second
)

// Upstream is a reverse proxy in front of one MCP server, to stand behind a Guard. It is
// safe for concurrent use.
type Upstream struct {
	c      Config
	target *url.URL
	// What X-Forwarded-* say: the public address, also when a proxy before us hides it.
	forwarded struct{ host, proto []string }
	proxy     *httputil.ReverseProxy
	health    *health
	signer    *signer
	cancels   chan struct{} // has room for the tasks that are cancelled at once
	closeIdle func()
}

// New returns an upstream, or an error that says what in c is wrong.
func New(c Config) (*Upstream, error) {
	target, err := url.Parse(c.URL)
	if err != nil || target.Host == "" || target.User != nil || target.Fragment != "" ||
		(target.Scheme != "http" && target.Scheme != "https") {
		// SP-28: the URL is not repeated, since a password may be in it.
		return nil, errors.New(
			"gateway: the upstream URL is not an http or https URL without name, password and fragment",
		)
	}
	public, err := url.Parse(c.Resource)
	if err != nil || public.Host == "" {
		return nil, fmt.Errorf("gateway: %q is not the public URL of an MCP server", c.Resource)
	}
	c = c.withDefaults()
	if err := c.Identity.check(); err != nil {
		return nil, err
	}
	u := &Upstream{c: c, target: target, signer: newSigner(c.Identity, c.Resource, c.URL, c.Now),
		cancels: make(chan struct{}, cancelsMost)}
	u.forwarded.host, u.forwarded.proto = []string{public.Host}, []string{public.Scheme}
	transport := u.transport()
	u.closeIdle = transport.CloseIdleConnections
	// What has no length, such as a stream, is flushed at once without FlushInterval; the
	// rest arrives sooner when its head does not go alone.
	u.proxy = &httputil.ReverseProxy{
		Rewrite: u.rewrite, ModifyResponse: u.receive, ErrorHandler: u.fail, Transport: final{span.Onward(transport)},
		BufferPool: newBuffers(), ErrorLog: slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
	}
	if u.health, err = newHealth(c, target, transport); err != nil {
		return nil, err
	}
	return u, nil
}

func (c Config) withDefaults() Config {
	if c.Connect <= 0 {
		c.Connect = defaultConnect
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Tasks == nil {
		c.Tasks = mcpresource.NewMemoryTasks(0, c.Now)
	}
	c.Identity = c.Identity.withDefaults()
	return c
}

// transport asks for no compression of its own, and knows no proxy: an MCP server stands
// beside the gateway.
func (u *Upstream) transport() *http.Transport {
	dialer := &net.Dialer{Timeout: u.c.Connect, KeepAlive: connectionKeep}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: u.c.Connect, ResponseHeaderTimeout: u.c.Timeout,
		MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTime, MaxResponseHeaderBytes: maxHead,
		DisableCompression: true, ForceAttemptHTTP2: true,
	}
}

// final keeps to itself what an MCP server sends ahead of its answer (1xx, RFC 9110 §15.2). ReverseProxy
// would pass its headers on before ModifyResponse sees any, and take away those of the guard with them.
type final struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (f final) RoundTrip(r *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil { // of this request alone
		trace.Got1xxResponse = func(int, textproto.MIMEHeader) error { return nil }
	}
	return f.RoundTripper.RoundTrip(r)
}

// exchange is what is known about one request on its way.
type exchange struct {
	principal     *mcpresource.Principal
	identity      string          // signed
	authorization string          // for the MCP server
	name          string          // the header Mcp-Name as the client sent it, if the guard has decoded it
	stream        bool            // the response is an event stream
	lists         bool            // it may have lists
	begins        bool            // or say that a task has begun
	tools         []string        // that are called
	call          json.RawMessage // the id of the one request that begins a task, nil for several
	unbound       error           // why a task was not bound to the caller
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// ServeHTTP implements http.Handler.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r, x, err := u.prepare(r)
	if refused := (*taskError)(nil); errors.As(err, &refused) {
		refused.Write(w)
		return
	}
	if err != nil {
		u.fail(w, r, err)
		return
	}
	defer u.endStream(r, x)
	u.proxy.ServeHTTP(w, r)
}

// prepare returns the request with what is known about it.
func (u *Upstream) prepare(r *http.Request) (*http.Request, *exchange, error) {
	x := &exchange{}
	x.principal, _ = mcpresource.FromContext(r.Context())
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	if judged, ok := r.Body.(interface{ ReceivedName() string }); ok {
		x.name = judged.ReceivedName()
	}
	body, err := repeatable(r)
	if err != nil {
		return r, x, err
	}
	// What is not the answer to a POST may be one that is sent again.
	x.lists = r.Method != http.MethodPost || u.c.Watched || lists.Asked(body)
	if err := u.judgeTasks(r, x, body); err != nil {
		return r, x, err
	}
	x.lists = x.lists || x.begins
	// ReverseProxy carries an upgrade to another protocol through; nothing there would
	// be judged by the guard.
	if r.Header.Get("Upgrade") != "" {
		r.Header = r.Header.Clone()
		r.Header.Del("Upgrade")
	}
	return r, x, u.introduce(r, x)
}

// introduce finds out how the caller is presented to the MCP server.
func (u *Upstream) introduce(r *http.Request, x *exchange) (err error) {
	if x.principal == nil {
		return nil // a method that the policy leaves open
	}
	if err := u.c.Identity.fits(x.principal); err != nil {
		return err
	}
	if x.identity, err = u.signer.sign(r.Context(), x.principal); err != nil {
		return err
	}
	if u.c.Tokens != nil {
		x.authorization, err = u.c.Tokens.Token(r.Context(), u.c.Provider, u.c.Scopes...)
	}
	return err
}

// repeatable lets the transport send a request again whose connection was closed before
// anything was written to it, as MCP servers do with idle ones. What was written is not
// sent twice: a tool may have been called.
func repeatable(r *http.Request) (body []byte, err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	again := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	if judged, ok := r.Body.(interface{ Bytes() []byte }); ok { // the guard has read it
		body = judged.Bytes()
	} else if body, err = io.ReadAll(r.Body); err != nil { // and has bounded it
		return nil, err
	} else {
		r.Body, _ = again()
	}
	r.GetBody, r.ContentLength = again, int64(len(body))
	return body, nil
}

// endStream ends an event stream whose token has ended as a stream ends, and not as a
// broken connection; everything else stays as ReverseProxy leaves it.
func (u *Upstream) endStream(r *http.Request, x *exchange) {
	if !x.stream || context.Cause(r.Context()) == context.Canceled || r.Context().Err() == nil {
		return
	}
	if v := recover(); v != nil && v != http.ErrAbortHandler {
		panic(v)
	}
}

// rewrite makes the request that goes to the MCP server.
func (u *Upstream) rewrite(pr *httputil.ProxyRequest) {
	x, out := exchangeOf(pr.In.Context()), pr.Out
	target := *u.target
	if pr.In.URL.RawQuery != "" {
		target.RawQuery = u.query(pr.In.URL)
	}
	out.URL, out.Host = &target, target.Host
	out.GetBody = pr.In.GetBody

	u.clean(out.Header)
	if x.name != "" {
		out.Header[mcp.HeaderName] = []string{x.name}
	}
	if out.Method == http.MethodPost && out.Header.Get("Accept") == "" {
		// RFC 9110 §12.5.1: a client that says nothing takes anything; MCP servers want it said.
		out.Header.Set("Accept", "application/json, text/event-stream")
	}
	if x.lists { // compressed, or in parts, it could not be looked at
		out.Header.Set("Accept-Encoding", "identity")
		delete(out.Header, "Range")
		delete(out.Header, "If-Range")
	}
	out.Header["X-Forwarded-Host"], out.Header["X-Forwarded-Proto"] = u.forwarded.host, u.forwarded.proto
	if ip, _, err := net.SplitHostPort(pr.In.RemoteAddr); err == nil {
		out.Header.Set("X-Forwarded-For", ip)
	}
	u.c.Identity.set(out.Header, x)
	for name, values := range u.c.Headers {
		out.Header[name] = slices.Clone(values)
	}
	if x.authorization != "" {
		out.Header.Set("Authorization", x.authorization) // never the client's (RS-50)
	}
}

// query is the client's with the operator's, whose word counts.
func (u *Upstream) query(in *url.URL) string {
	query := in.Query()
	query.Del("access_token") // RFC 6750 §2.3: never looked at, and a secret all the same
	for k, v := range u.target.Query() {
		query[k] = v
	}
	return query.Encode()
}

// receive judges the head of a response. Its errors reach fail.
func (u *Upstream) receive(r *http.Response) error {
	switch {
	case r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusProxyAuthRequired:
		return errCredentials // of the gateway: the client can do nothing about it, and its own were good
	case r.StatusCode >= 300 && r.StatusCode < 400 && r.StatusCode != http.StatusNotModified:
		return fmt.Errorf("%w to %s: set the upstream URL to that", errRedirect, r.Header.Get("Location"))
	case r.StatusCode >= 500 && !isType(r.Header, "application/json", eventStream):
		return statusError(r.StatusCode)
	}
	u.cleanResponse(r.Header)
	dropTrailers(r)
	x := exchangeOf(r.Request.Context())
	x.stream = isType(r.Header, eventStream)
	switch method := r.Request.Method; {
	case x.lists && (x.stream || method == http.MethodPost):
		return u.filter(r, x.stream)
	case method == http.MethodGet && r.StatusCode < 300:
		return u.filter(r, true) // which clients read as a stream, whatever type it has
	}
	return nil
}

func isType(h http.Header, types ...string) bool {
	base, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return slices.Contains(types, strings.ToLower(strings.TrimSpace(base)))
}

var (
	errCredentials = errors.New("the MCP server refuses the gateway's credentials")
	errRedirect    = errors.New("the MCP server redirects")
)

// Check reports whether the MCP server is well, as of a few seconds ago at most.
func (u *Upstream) Check(ctx context.Context) error { return u.health.check(ctx) }

// Run looks after the health of the MCP server until ctx ends.
func (u *Upstream) Run(ctx context.Context) { u.health.run(ctx) }

// Close closes what is idle.
func (u *Upstream) Close() error {
	u.closeIdle()
	return nil
}

// buffers lends the memory that bodies are copied through.
type buffers struct{ pool sync.Pool }

func newBuffers() *buffers {
	return &buffers{sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}}
}

func (b *buffers) Get() []byte  { return *b.pool.Get().(*[]byte) }
func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
