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
	"syscall"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/gateway/lists"
	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/internal/span"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Config describes an MCP server that is reached over HTTP. Only URL and Resource are required.
type Config struct {
	URL      string // the server's MCP endpoint
	Resource string // the public URL that clients use
	Identity Identity
	// Headers, such as credentials, are sent with every request instead of client headers of the
	// same name.
	Headers http.Header
	// Cookies lists the names of cookies that pass in both directions, "*" for all. Default: none.
	// Cookies of the authorization server never pass.
	Cookies []string
	// Connect bounds dialing and the TLS handshake. Default: 5 seconds.
	Connect time.Duration
	// Timeout bounds the wait for the response header. A server that answers without a stream sends
	// it when a tool has finished. Default: 5 minutes. The body has no time limit.
	Timeout time.Duration
	// Permits, if set, checks each address to connect to (net.Dialer.Control).
	Permits func(network, address string, conn syscall.RawConn) error
	// Health is a URL, or a path on the server, that returns 2xx when the server is up. Default:
	// the server is up if the gateway can connect to it.
	Health string
	// Tokens, if set, gets the caller's token of Provider. It goes to the MCP server in the
	// Authorization header.
	Tokens   TokenSource
	Provider string
	Scopes   []string
	// Shows, if set, decides which list entries the caller in the request context sees.
	Shows Shows
	// Tasks stores which caller owns each task of the MCP server. Default: in memory.
	Tasks mcpresource.TaskStore
	// Watched makes the gateway filter lists in every answer, and not only in answers to list
	// requests. A server may put a list into the answer to another request, and clients that match
	// by id find it.
	Watched bool
	// May, if set, reports whether the caller in ctx may call a tool. A task belongs to a tool
	// call.
	May    func(ctx context.Context, tool string) bool
	Logger *slog.Logger     // default: discard
	Now    func() time.Time // default: time.Now
}

// Shows reports whether the caller in the request context ctx sees a list entry: see [lists.View].
type Shows func(ctx context.Context, k lists.Kind, name string, entry []byte) bool

// TokenSource gets tokens of upstream providers, such as GitHub, for the caller in the context of a
// request that the Guard has accepted. Token returns the value of an Authorization header. An
// [*InteractionRequired] error is shown to the user.
type TokenSource interface {
	Token(ctx context.Context, provider string, scopes ...string) (authorization string, err error)
}

// InteractionRequired means that the user must open a page first.
type InteractionRequired struct{ Message, URL string }

// Error implements error.
func (e *InteractionRequired) Error() string { return e.Message }

const (
	defaultConnect = 5 * time.Second
	defaultTimeout = 5 * time.Minute
	// idleTime is shorter than the five seconds after which Node closes a connection, so that
	// requests do not use a connection that is closing.
	idleTime       = 4 * time.Second
	maxIdle        = 256
	maxHead        = 64 << 10 // of a response
	bufferSize     = 16 << 10 // per open stream
	connectionKeep = 15 * time.Second
)

// Upstream is a reverse proxy for one MCP server. It must be behind a Guard, and is safe for
// concurrent use.
type Upstream struct {
	c      Config
	target *url.URL
	// forwarded holds X-Forwarded-Host and X-Forwarded-Proto: the public address, even if another
	// proxy before us hides it.
	forwarded struct{ host, proto []string }
	proxy     *httputil.ReverseProxy
	health    *health
	signer    *signer
	cancels   chan struct{} // one slot for each task that is being cancelled
	closeIdle func()
}

// New returns an upstream, or an error that names the fault.
func New(c Config) (*Upstream, error) {
	target, err := url.Parse(c.URL)
	if err != nil || target.Host == "" || target.User != nil || target.Fragment != "" ||
		(target.Scheme != "http" && target.Scheme != "https") {
		// SP-28: the error does not repeat the URL, which may contain a password.
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
	signer, cancels := newSigner(c.Identity, c.Resource, c.URL, c.Now), make(chan struct{}, cancelsMost)
	u := &Upstream{c: c, target: target, signer: signer, cancels: cancels}
	u.forwarded.host, u.forwarded.proto = []string{public.Host}, []string{public.Scheme}
	transport := u.transport()
	u.closeIdle = transport.CloseIdleConnections
	// ReverseProxy flushes a body without a length, such as a stream, immediately, even without
	// FlushInterval. Other bodies arrive sooner if the header waits for them.
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

// transport returns an HTTP transport that does not request compression and ignores proxy settings,
// because an MCP server runs beside the gateway.
func (u *Upstream) transport() *http.Transport {
	dialer := &net.Dialer{Timeout: u.c.Connect, KeepAlive: connectionKeep, Control: u.c.Permits}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: u.c.Connect, ResponseHeaderTimeout: u.c.Timeout,
		MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTime, MaxResponseHeaderBytes: maxHead,
		DisableCompression: true, ForceAttemptHTTP2: true,
	}
}

// final hides the informational responses of an MCP server (1xx, RFC 9110 §15.2). ReverseProxy
// would forward their headers before ModifyResponse sees them, and remove the guard's headers with
// them.
type final struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (f final) RoundTrip(r *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil { // set for this request only
		trace.Got1xxResponse = func(int, textproto.MIMEHeader) error { return nil }
	}
	return f.RoundTripper.RoundTrip(r)
}

// exchange holds the state of one request.
type exchange struct {
	principal     *mcpresource.Principal
	identity      string          // signed identity token
	authorization string          // for the MCP server
	name          string          // the header Mcp-Name as the client sent it, if the guard has decoded it
	stream        bool            // the response is an event stream
	lists         bool            // the response may contain lists
	begins        bool            // the response may announce a new task
	tools         []string        // the tools that the request calls
	call          json.RawMessage // id of the single request that begins a task; nil if there are several
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

// prepare parses the request and returns it with its exchange.
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
	// A response to anything but a POST may be one that the server sends again.
	x.lists = r.Method != http.MethodPost || u.c.Watched || lists.Asked(body)
	if err := u.judgeTasks(r, x, body); err != nil {
		return r, x, err
	}
	x.lists = x.lists || x.begins
	// ReverseProxy forwards an upgrade to another protocol, and the guard would not judge anything
	// sent there.
	if r.Header.Get("Upgrade") != "" {
		r.Header = r.Header.Clone()
		r.Header.Del("Upgrade")
	}
	return r, x, u.introduce(r, x)
}

// introduce prepares the identity and the authorization that the MCP server gets.
func (u *Upstream) introduce(r *http.Request, x *exchange) (err error) {
	if x.principal == nil {
		return nil // the policy leaves this method open
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

// repeatable lets the transport repeat a request if the connection was closed before anything was
// written to it. MCP servers close idle connections. A request that was written is not sent twice:
// a tool may have been called.
func repeatable(r *http.Request) (body []byte, err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	again := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	if judged, ok := r.Body.(interface{ Bytes() []byte }); ok { // the guard has read it
		body = judged.Bytes()
	} else if body, err = io.ReadAll(r.Body); err != nil { // and has limited its size
		return nil, err
	} else {
		r.Body, _ = again()
	}
	r.GetBody, r.ContentLength = again, int64(len(body))
	return body, nil
}

// endStream ends an event stream whose token has ended as a regular end of stream and not as a
// broken connection. ReverseProxy handles everything else.
func (u *Upstream) endStream(r *http.Request, x *exchange) {
	if !x.stream || context.Cause(r.Context()) == context.Canceled || r.Context().Err() == nil {
		return
	}
	if v := recover(); v != nil && v != http.ErrAbortHandler {
		panic(v)
	}
}

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
		// RFC 9110 §12.5.1: a client without Accept accepts anything, but MCP servers require the
		// header.
		out.Header.Set("Accept", "application/json, text/event-stream")
	}
	if x.lists { // a compressed or partial body could not be filtered
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

// query returns the client's query merged with the operator's, which takes precedence.
func (u *Upstream) query(in *url.URL) string {
	query := in.Query()
	query.Del("access_token") // RFC 6750 §2.3: the guard ignores it, but it is still a secret
	for k, v := range u.target.Query() {
		query[k] = v
	}
	return query.Encode()
}

// receive checks the header of a response. ReverseProxy passes its errors to fail.
func (u *Upstream) receive(r *http.Response) error {
	switch {
	case r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusProxyAuthRequired:
		return errCredentials // the gateway's credentials failed, and the client cannot change them
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
		return u.filter(r, true) // clients read it as a stream, whatever its type
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

// Check returns nil if the MCP server is up. The result is at most a few seconds old.
func (u *Upstream) Check(ctx context.Context) error { return u.health.check(ctx) }

// Run probes the health of the MCP server until ctx ends.
func (u *Upstream) Run(ctx context.Context) { u.health.run(ctx) }

// Close closes idle connections.
func (u *Upstream) Close() error {
	u.closeIdle()
	return nil
}

type buffers struct{ pool sync.Pool }

func newBuffers() *buffers {
	return &buffers{sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}}
}

func (b *buffers) Get() []byte  { return *b.pool.Get().(*[]byte) }
func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
