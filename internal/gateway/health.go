package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	healthEvery = 15 * time.Second
	healthFresh = 5 * time.Second // minimum time between two probes of an upstream
	healthTime  = 3 * time.Second
)

// health tracks whether an MCP server is up. It requests the health URL if one is configured, and
// only connects otherwise: a request to an MCP endpoint would be noise in its log, or would create
// a session.
type health struct {
	resource string
	log      *slog.Logger
	probe    func(ctx context.Context) error
	now      func() time.Time

	mu    sync.Mutex // guards the fields below, and allows one probe at a time
	last  error
	asked time.Time
}

func newHealth(c Config, target *url.URL, t http.RoundTripper) (*health, error) {
	h := &health{resource: c.Resource, log: c.Logger, now: c.Now}
	if c.Health == "" {
		dialer := &net.Dialer{Control: c.Permits}
		h.probe = func(ctx context.Context) error { return connect(ctx, dialer, target) }
		return h, nil
	}
	page, err := target.Parse(c.Health)
	if err != nil {
		return nil, fmt.Errorf("gateway: the health URL %q cannot be read", c.Health)
	}
	h.probe = func(ctx context.Context) error { return get(ctx, t, page.String()) }
	return h, nil
}

func connect(ctx context.Context, dialer *net.Dialer, target *url.URL) error {
	port := target.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[target.Scheme]
	}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(target.Hostname(), port))
	if err != nil {
		return err
	}
	return conn.Close()
}

func get(ctx context.Context, t http.RoundTripper, page string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return err
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4096) // so that the connection can be reused
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}

// check probes the server, or returns the last result if that is less than healthFresh old.
func (h *health) check(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.asked.IsZero() && h.now().Sub(h.asked) < healthFresh {
		return h.last
	}
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	err := h.probe(ctx)
	if errors.Is(err, context.Canceled) {
		return h.last // the caller has gone, which is not the server's fault
	}
	switch {
	case err != nil && (h.last == nil || h.asked.IsZero()):
		h.log.WarnContext(ctx, "upstream is down", "resource", h.resource, "error", err)
	case err == nil && h.last != nil:
		h.log.InfoContext(ctx, "upstream is up again", "resource", h.resource)
	}
	h.last, h.asked = err, h.now()
	return err
}

func (h *health) run(ctx context.Context) {
	every := time.NewTicker(healthEvery)
	defer every.Stop()
	for {
		_ = h.check(ctx) // check logs changes
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}
