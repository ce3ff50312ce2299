// Package safehttp sends requests to addresses that others choose, without SSRF. It checks the
// address after name resolution, when it connects, so DNS rebinding cannot bypass the check.
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
	"slices"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/mcp-authd/mcp-authd/internal/span"
)

// Options configure a Client.
type Options struct {
	Timeout  time.Duration // of a whole request; default 5 seconds
	MaxBytes int64         // of a body; default 64 KiB
	// InsecureLoopback permits servers on this machine, for development and tests.
	InsecureLoopback bool
	// Networks are private networks that the operator permits.
	Networks []netip.Prefix
	// Proxy is the operator's outbound proxy, or nil. The proxy resolves names, so it must block
	// requests to the internal network. This package refuses hosts that are addresses or names
	// without a dot.
	Proxy *url.URL
	// Resolver resolves names. Default: the system's resolver.
	Resolver *net.Resolver
	// RootCAs verify server certificates. Default: the system's.
	RootCAs *x509.CertPool
	// Bearer is the operator's token for each Get, or "". It is never sent to a redirect target,
	// because redirects are not followed.
	Bearer string
}

// Client sends requests. It does not follow redirects, keep cookies or use a proxy from the
// environment. Without Options.Proxy it connects only to public addresses.
type Client struct {
	http    *http.Client
	max     int64
	permits func(network, address string, conn syscall.RawConn) error
	proxied bool
	bearer  string
}

var (
	// ErrStatus means that the response status is not 200, or for Post not 2xx.
	ErrStatus = errors.New("safehttp: status is not 200")
	// ErrTooLarge means that the body is larger than MaxBytes.
	ErrTooLarge = errors.New("safehttp: body is too large")
	// ErrNotModified means that the copy with the given Validators is current.
	ErrNotModified = errors.New("safehttp: not modified")
	// ErrRefused means that connections to the address are not permitted.
	ErrRefused = errors.New("safehttp: address refused")
	// ErrNeverPermitted is an ErrRefused for a host that these options never permit: a special-use
	// address in any spelling, or localhost.
	ErrNeverPermitted = fmt.Errorf("%w: the host is never permitted", ErrRefused)
)

// StatusError is an ErrStatus with the status.
type StatusError int

func (e StatusError) Error() string        { return fmt.Sprintf("%v but %d", ErrStatus, int(e)) }
func (e StatusError) Is(target error) bool { return target == ErrStatus }

// Temporary reports whether a later request may succeed.
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
		// Each connection is used once, so that every request is sent to a checked address.
		DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSClientConfig:     &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: o.Timeout, ResponseHeaderTimeout: o.Timeout, MaxResponseHeaderBytes: 16 << 10,
	}
	if o.Proxy != nil {
		t.Proxy = http.ProxyURL(o.Proxy)
		t.DialContext = (&net.Dialer{Timeout: o.Timeout}).DialContext // the proxy may be internal
	}
	return &Client{
		max: o.MaxBytes, permits: guard(o), proxied: o.Proxy != nil, bearer: o.Bearer,
		http: &http.Client{
			Timeout: o.Timeout, Transport: span.Transport(t),
			// AS-160: a redirect is an error like any other status except 200.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// guard returns the check of the address to connect to. It refuses special-use addresses (RFC 6890,
// CIMD §6.5, AS-161), except loopback with InsecureLoopback.
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

// private lists the networks that Internal permits. metadata lists the addresses in them, and among
// the public ones, at which clouds serve credentials to the machine.
var (
	private = []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
	}
	metadata = []netip.Addr{
		netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("fd00:ec2::254"),
		netip.MustParseAddr("fd20:ce::254"), netip.MustParseAddr("fd00:ec2::23"), netip.MustParseAddr("fd00:42::42"),
	}
)

// Internal checks an address for net.Dialer.Control. It permits public addresses, private networks
// and this machine. It refuses other special-use addresses, such as link-local ones, and the
// metadata services of clouds.
func Internal(network, address string, conn syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err == nil && slices.Contains(metadata, to.Addr().Unmap()) {
		return fmt.Errorf("%w: %s is a metadata service", ErrRefused, to.Addr())
	}
	if err := internal(network, address, conn); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

var internal = guard(Options{InsecureLoopback: true, Networks: private})

// Validators let a server respond that a copy is current (RFC 9110 §13.1).
type Validators struct{ ETag, LastModified string }

// Answer is a fetched document.
type Answer struct {
	Header http.Header
	Body   []byte
}

// Validators returns the validators for the next request.
func (a Answer) Validators() Validators {
	return Validators{ETag: a.Header.Get("ETag"), LastModified: a.Header.Get("Last-Modified")}
}

// Get fetches a document. ErrStatus, ErrTooLarge and ErrRefused mean that the document or its URL
// is at fault. ErrNotModified comes with the response headers. Any other error means that the
// server was unreachable.
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

// Post sends JSON with additional headers. It returns ErrStatus if the status is not 2xx, and
// ErrRefused if the address is refused. It does not read the response body.
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

// Push sends a body with the given headers, which include its media type. It returns the status and
// at most MaxBytes of the response body, or ErrRefused if the address is refused.
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
		answer = nil // only the status matters then
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

// Check returns ErrNeverPermitted if the client never connects to the host of u. It does not
// resolve names, so it reveals nothing about internal names (SP-12). The address of a name is
// checked when connecting.
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
		refused = digitFirst(topLabel(host)) // 127.1, 0x7f000001: addresses to some resolvers
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

// digitFirst reports whether a label begins with a digit. No top-level domain does.
func digitFirst(label string) bool { return label != "" && label[0] >= '0' && label[0] <= '9' }

// publicName reports whether a host may be a name in the public DNS: it has a dot and is not an
// address in any spelling.
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
