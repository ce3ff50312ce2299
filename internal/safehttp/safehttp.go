// Package safehttp fetches documents from, and posts to, addresses that others name (SSRF): the
// address is checked after name resolution, at the moment of connecting, so that a
// name cannot be rebound in between.
package safehttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/mcp-authd/mcp-authd/internal/span"
)

// Options bound a Client.
type Options struct {
	Timeout  time.Duration // for everything; default 5 seconds
	MaxBytes int64         // of a body; default 64 KiB
	// InsecureLoopback admits servers on this machine, for development and tests.
	InsecureLoopback bool
	// Networks are those of the operator that are admitted, though they are private.
	Networks []netip.Prefix
	// Proxy is the operator's outbound proxy; nil: none. It resolves the names, so it
	// has to keep requests away from the inner network; hosts that are addresses, or
	// names without a dot, are refused here.
	Proxy *url.URL
	// Resolver resolves names; nil: the system's.
	Resolver *net.Resolver
	// RootCAs are the certificates by which servers are known; nil: the system's.
	RootCAs *x509.CertPool
	// Bearer is a token of the operator that goes with each Get; "": none. Redirects do not get it,
	// since none is followed.
	Bearer string
}

// Client fetches documents. It follows no redirects, keeps no cookies, uses no proxy
// from the environment and, without a proxy, connects to public addresses only.
type Client struct {
	http    *http.Client
	max     int64
	permits func(network, address string, conn syscall.RawConn) error
	proxied bool
	bearer  string
}

var (
	// ErrStatus means that the status of the answer is not 200, and that of a Post not 2xx.
	ErrStatus = errors.New("safehttp: status is not 200")
	// ErrTooLarge means that the body is larger than permitted.
	ErrTooLarge = errors.New("safehttp: body is too large")
	// ErrNotModified means that the copy that the Validators belong to is still good.
	ErrNotModified = errors.New("safehttp: not modified")
	// ErrRefused means that the address is not one to connect to.
	ErrRefused = errors.New("safehttp: address refused")
	// ErrNeverPermitted is an ErrRefused for a host that no setting permits: a special-use address in any
	// spelling, or localhost.
	ErrNeverPermitted = fmt.Errorf("%w: the host is never permitted", ErrRefused)
)

// StatusError is an ErrStatus that says which.
type StatusError int

func (e StatusError) Error() string        { return fmt.Sprintf("%v but %d", ErrStatus, int(e)) }
func (e StatusError) Is(target error) bool { return target == ErrStatus }

// Temporary reports whether the server may well answer otherwise soon.
func (e StatusError) Temporary() bool { return e >= 500 || e == http.StatusTooManyRequests }

// New returns a client.
func New(o Options) *Client {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 10
	}
	t := &http.Transport{
		DialContext: (&net.Dialer{Timeout: o.Timeout, Control: guard(o), Resolver: o.Resolver}).DialContext,
		// A connection is used once: what was checked is what is spoken to.
		DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSClientConfig:     &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: o.Timeout, ResponseHeaderTimeout: o.Timeout, MaxResponseHeaderBytes: 16 << 10,
	}
	if o.Proxy != nil {
		t.Proxy = http.ProxyURL(o.Proxy)
		t.DialContext = (&net.Dialer{Timeout: o.Timeout}).DialContext // the proxy may well be inside
	}
	return &Client{
		max: o.MaxBytes, permits: guard(o), proxied: o.Proxy != nil, bearer: o.Bearer,
		http: &http.Client{
			Timeout: o.Timeout, Transport: span.Transport(t),
			// AS-160: a redirect is an answer like every other one that is not 200
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// guard judges the address that is about to be connected to: no special-use one (RFC 6890, CIMD
// §6.5, AS-161), and loopback for development only.
func guard(o Options) func(network, address string, conn syscall.RawConn) error {
	var v4, v6 []netip.Prefix
	if o.InsecureLoopback {
		v4 = append(v4, netip.MustParsePrefix("127.0.0.0/8"))
		v6 = append(v6, netip.MustParsePrefix("::1/128"))
	}
	for _, n := range o.Networks {
		if n.Addr().Is4() {
			v4 = append(v4, n)
		} else {
			v6 = append(v6, n)
		}
	}
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...)).Safe
}

// Validators let a server say that a copy is still good (RFC 9110 §13.1).
type Validators struct{ ETag, LastModified string }

// Answer is a document.
type Answer struct {
	Header http.Header
	Body   []byte
}

// Validators returns what to ask with next time.
func (a Answer) Validators() Validators {
	return Validators{ETag: a.Header.Get("ETag"), LastModified: a.Header.Get("Last-Modified")}
}

// Get returns a document. ErrStatus, ErrTooLarge and ErrRefused are its own fault;
// ErrNotModified comes with the headers; any other error means that it could not be had.
func (c *Client) Get(ctx context.Context, location string, v Validators) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("Accept", "application/json")
	if c.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	for name, value := range map[string]string{"If-None-Match": v.ETag, "If-Modified-Since": v.LastModified} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := c.do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && v != Validators{}:
		return Answer{Header: resp.Header}, ErrNotModified
	case resp.StatusCode != http.StatusOK:
		return Answer{}, StatusError(resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.max+1))
	if err == nil && int64(len(body)) > c.max {
		err = ErrTooLarge
	}
	return Answer{resp.Header, body}, err
}

// Post sends a document of JSON with further headers. ErrStatus when the status is not 2xx;
// ErrRefused when the address is refused. The body of the answer is not read.
func (c *Client) Post(ctx context.Context, location string, header http.Header, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, location, bytes.NewReader(body))
	if err != nil {
		return err
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return StatusError(resp.StatusCode)
	}
	return nil
}

// Push sends a body whose media type the header says, and returns the status of the answer and as
// much of its body as is permitted. ErrRefused when the address is refused.
func (c *Client) Push(
	ctx context.Context, location string, header http.Header, body []byte,
) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, location, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	maps.Copy(req.Header, header)
	resp, err := c.do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, c.max))
	if err != nil {
		answer = nil // the status says what matters
	}
	return resp.StatusCode, answer, nil
}

func (c *Client) do(req *http.Request) (*http.Response, error) {
	if err := c.Check(req.URL); err != nil {
		return nil, err
	}
	if c.proxied && !publicName(req.URL.Hostname()) {
		return nil, fmt.Errorf("%w: %s", ErrRefused, req.URL.Host)
	}
	resp, err := c.http.Do(req)
	if errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) ||
		errors.Is(err, ssrf.ErrProhibitedPort) {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return resp, err
}

// Check returns ErrNeverPermitted if the host of u is never connected to. It resolves no name, so it tells a
// stranger nothing about names inside (SP-12); the address of a name is judged when connecting.
func (c *Client) Check(u *url.URL) error {
	host := strings.TrimSuffix(u.Hostname(), ".")
	address, err := netip.ParseAddr(host)
	refused := false
	switch {
	case err == nil:
		refused = !c.permitted(address.Unmap().WithZone(""))
	case strings.EqualFold(topLabel(host), "localhost"): // RFC 6761 §6.3
		refused = !c.permitted(netip.AddrFrom4([4]byte{127, 0, 0, 1})) && !c.permitted(netip.IPv6Loopback())
	default:
		refused = digitFirst(topLabel(host)) // 127.1, 0x7f000001: an address to some resolvers
	}
	if refused {
		return fmt.Errorf("%w: %s", ErrNeverPermitted, u.Host)
	}
	return nil
}

func (c *Client) permitted(a netip.Addr) bool {
	network := "tcp4"
	if a.Is6() {
		network = "tcp6"
	}
	return c.permits(network, netip.AddrPortFrom(a, 443).String(), nil) == nil
}

func topLabel(host string) string { return host[strings.LastIndexByte(host, '.')+1:] }

// digitFirst reports whether a label begins with a digit, as no top-level domain does.
func digitFirst(label string) bool { return label != "" && label[0] >= '0' && label[0] <= '9' }

// publicName reports whether a host may be a name in the public DNS: not an address in
// any of its spellings, and with a dot in it.
func publicName(host string) bool {
	host = strings.TrimSuffix(host, ".")
	i := strings.LastIndexByte(host, '.')
	if i < 0 || strings.ContainsRune(host, ':') {
		return false
	}
	switch last := strings.ToLower(topLabel(host)); last {
	case "localhost", "local", "internal", "":
		return false
	default: // 127.0.0.1, 0x7f.1
		return !digitFirst(last)
	}
}
