// Package safehttp fetches documents from addresses that strangers name (SSRF): the
// address is checked after name resolution, at the moment of connecting, so that a
// name cannot be rebound in between.
package safehttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"code.dny.dev/ssrf"
)

// Options bound a Client.
type Options struct {
	Timeout  time.Duration // for everything; default 5 seconds
	MaxBytes int64         // of a body; default 64 KiB
	// InsecureLoopback admits servers on this machine, for development and tests.
	InsecureLoopback bool
}

// Client fetches documents. It follows no redirects, keeps no cookies, uses no proxy
// from the environment and connects to public addresses only.
type Client struct {
	http *http.Client
	max  int64
}

// ErrStatus means that the server answered with something else than 200.
var ErrStatus = errors.New("safehttp: status is not 200")

// ErrTooLarge means that the body is larger than permitted.
var ErrTooLarge = errors.New("safehttp: body is too large")

// New returns a client.
func New(o Options) *Client {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 10
	}
	guard := []ssrf.Option{ssrf.WithAnyPort()}
	if o.InsecureLoopback {
		guard = append(guard, ssrf.WithAllowedV4Prefixes(netip.MustParsePrefix("127.0.0.0/8")), ssrf.WithAllowedV6Prefixes(netip.MustParsePrefix("::1/128")))
	}
	dialer := &net.Dialer{Timeout: o.Timeout, Control: ssrf.New(guard...).Safe}
	return &Client{max: o.MaxBytes, http: &http.Client{
		Timeout: o.Timeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: o.Timeout, ResponseHeaderTimeout: o.Timeout,
			DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Get returns the headers and the body of a document. ErrStatus and ErrTooLarge are
// the document's fault; any other error means that it could not be had.
func (c *Client) Get(ctx context.Context, location string) (http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("%w: %s", ErrStatus, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.max+1))
	if err == nil && int64(len(body)) > c.max {
		err = ErrTooLarge
	}
	return resp.Header, body, err
}

// Refused reports whether err means that the address is not one to connect to.
func Refused(err error) bool {
	return errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) || errors.Is(err, ssrf.ErrProhibitedPort)
}
