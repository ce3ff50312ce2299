package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"code.dny.dev/ssrf"

	"github.com/mcp-authd/mcp-authd/internal/span"
)

const (
	requestTimeout = 10 * time.Second
	maxDocument    = 256 << 10 // discovery, keys, tokens, user info
	maxList        = 1 << 20   // API lists
)

// transport carries all requests to one provider (SP-08..SP-12). Hosts in the configuration may
// have any address. Hosts in the provider's documents must be public, or in the configured
// networks. Addresses are checked at connection time, so that a name cannot be rebound in between.
// Redirects are not followed.
type transport struct {
	admitted   map[string]bool // host:port in the configuration
	configured http.RoundTripper
	guarded    http.RoundTripper
	userAgent  string
	now        func() time.Time
	asked      func(took time.Duration, err error)
	connector  string // for traces
}

// private lists the networks where administrators run their own providers. Link-local addresses are
// excluded, because cloud metadata services use them.
var private = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("fc00::/7"),
}

func newTransport(s Settings, o Options) *transport {
	o = o.withDefaults()
	t := &transport{
		admitted: map[string]bool{}, configured: o.Transport, guarded: o.Transport, userAgent: o.ProductName,
		now: o.Now, asked: o.Asked, connector: o.Connector,
	}
	for _, u := range s.urls() {
		if at, err := url.Parse(u); err == nil {
			t.admitted[hostPort(at)] = true
		}
	}
	if o.Transport == nil {
		t.configured, t.guarded = dialing(private), dialing(s.Networks)
	}
	return t
}

// dialing returns a transport that connects to public addresses and to the given networks.
func dialing(networks []netip.Prefix) http.RoundTripper {
	var v4, v6 []netip.Prefix
	for _, n := range networks {
		if n.Addr().Is4() {
			v4 = append(v4, n)
		} else {
			v6 = append(v6, n)
		}
	}
	guard := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
	return &http.Transport{
		DialContext:       (&net.Dialer{Timeout: requestTimeout / 2, Control: guard.Safe}).DialContext,
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: requestTimeout / 2, MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second,
	}
}

// client returns a client on the transport.
func (t *transport) client() *http.Client {
	return &http.Client{
		Timeout: requestTimeout, Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type listKey struct{}

// listing allows requests with the returned context the larger size of lists.
func listing(ctx context.Context) context.Context { return context.WithValue(ctx, listKey{}, true) }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	began := t.now()
	resp, err := span.Carry(req, t.carry, span.Connector.String(t.connector))
	t.asked(t.now().Sub(began), err)
	return resp, err
}

// carry reads the whole response, so that a truncated or oversized one fails here, where the cause
// is known. A rate limit, server error or redirect is also an error.
func (t *transport) carry(req *http.Request) (*http.Response, error) {
	host := hostPort(req.URL)
	if req.URL.Scheme != "https" && !(req.URL.Scheme == "http" && isLoopback(req.URL.Hostname()) && t.admitted[host]) {
		return nil, fmt.Errorf("%w: %s is not https", ErrGarbage, host)
	}
	carrier := t.guarded
	if t.admitted[host] {
		carrier = t.configured
	}
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", t.userAgent)
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	resp, err := carrier.RoundTrip(req)
	if err != nil {
		if errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) ||
			errors.Is(err, ssrf.ErrInvalidHostPort) {
			return nil, fmt.Errorf("%w: the address of %s is not one to connect to (see networks)", ErrGarbage, host)
		}
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return bounded(req, resp)
}

func bounded(req *http.Request, resp *http.Response) (*http.Response, error) {
	defer resp.Body.Close()
	where := req.URL.Host + req.URL.Path
	switch {
	case rateLimited(resp):
		return nil, fmt.Errorf("%w: %s answers %d", askedTooOften(resp.Header), where, resp.StatusCode)
	case resp.StatusCode >= 500:
		return nil, fmt.Errorf("%w: %s answers %d", ErrUnreachable, where, resp.StatusCode)
	case resp.StatusCode >= 300 && resp.StatusCode < 400: // SP-10
		return nil, fmt.Errorf("%w: %s redirects", ErrGarbage, where)
	}
	limit := int64(maxDocument)
	if req.Context().Value(listKey{}) != nil {
		limit = maxList
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", ErrUnreachable, where, err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("%w: %s answers more than %d bytes", ErrGarbage, where, limit)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	return resp, nil
}

// rateLimited reports whether a response is a rate limit. GitHub sends 403 instead of 429 (RFC 6585
// §4).
func rateLimited(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		return resp.Header.Get("X-RateLimit-Remaining") == "0" || resp.Header.Get("Retry-After") != ""
	}
	return false
}

// askedTooOften returns the wait that a provider demands: from Retry-After (RFC 9110 §10.2.3) or
// from GitHub's header.
func askedTooOften(h http.Header) *TooOften {
	said := h.Get("Retry-After")
	if n, err := strconv.ParseUint(said, 10, 31); err == nil {
		return &TooOften{time.Duration(n) * time.Second}
	}
	if at, err := http.ParseTime(said); err == nil {
		return &TooOften{max(0, time.Until(at))}
	}
	if n, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 40); err == nil {
		return &TooOften{max(0, time.Until(time.Unix(n, 0)))}
	}
	return &TooOften{}
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// failed converts an error of an HTTP client to an error of this package.
func failed(err error) error {
	for _, known := range []error{ErrUnreachable, ErrGarbage, ErrDenied, ErrMisconfigured, ErrUnsupported} {
		if errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}
