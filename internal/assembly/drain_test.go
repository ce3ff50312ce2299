package assembly

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// heard is a response, and whether its connection was reused.
type heard struct {
	status       int
	body         string
	last, reused bool
}

// hear sends a request. A broken connection fails the test.
func hear(t *testing.T, client *http.Client, url string) (a heard) {
	t.Helper()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) { a.reused = c.Reused },
	})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatalf("OP-07: %v", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("OP-07: %v", err)
	}
	a.status, a.body, a.last = resp.StatusCode, string(b), resp.Close
	return a
}

// TestDrain checks that a stopping server is not ready at once, but serves new and kept-alive
// connections until limits.drain is over (OP-07). Each response must close its connection.
func TestDrain(t *testing.T) {
	s := consoled(t, func(c *config.Loaded) { c.Limits.Drain = config.Duration(time.Minute) })
	asked, over := make(chan time.Duration, 1), make(chan time.Time)
	s.after = func(d time.Duration) <-chan time.Time {
		asked <- d
		return over
	}
	secure := httptest.NewUnstartedServer(nil) // only for its certificate
	secure.StartTLS()
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	transport := func(h2 bool) *http.Client {
		return &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: h2,
		}}
	}
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	plain, tlsListener := listen(), listen()
	base, secureBase := "http://"+plain.Addr().String(), "https://"+tlsListener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- s.Serve(ctx, authserver.Site{Listener: plain, Handler: s.Handler()}, authserver.Site{
			Listener: tlsListener, Handler: s.Management(), Certificate: &secure.TLS.Certificates[0],
		})
	}()
	kept, kept2 := transport(false), transport(true)
	for client, url := range map[*http.Client]string{kept: base, kept2: secureBase} {
		if a := hear(t, client, url+"/readyz"); a.status != http.StatusOK || a.last {
			t.Fatalf("before the end: got %+v", a)
		}
	}
	stop()
	if d := <-asked; d != time.Minute {
		t.Errorf("OP-07: it drains for %v", d)
	}
	red := hear(t, transport(false), base+"/readyz")
	if red.status != http.StatusServiceUnavailable || !strings.Contains(red.body, "draining") || !red.last {
		t.Errorf("OP-07: readiness is %+v, want 503 with the reason", red)
	}
	for _, c := range []struct {
		name   string
		client *http.Client
		url    string
		reused bool
		last   bool // in HTTP/1.1: Connection: close
	}{
		{"a kept-alive connection is served once more, and ends", kept, base, true, true},
		{"its next request makes a new connection", kept, base, false, true},
		{"a new connection is served", transport(false), base, false, true},
		{"a connection of HTTP/2 is served once more", kept2, secureBase, true, false},
	} {
		a := hear(t, c.client, c.url+"/healthz")
		if a.status != http.StatusOK || a.reused != c.reused || a.last != c.last {
			t.Errorf("OP-07: %s: got %+v", c.name, a)
		}
	}
	wait.Until(t, "GOAWAY has ended the connection of HTTP/2", func() bool {
		return !hear(t, kept2, secureBase+"/healthz").reused
	})
	if len(ended) > 0 {
		t.Fatal("OP-07: it has ended while it drains")
	}
	close(over)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", plain.Addr().String()); err == nil {
		c.Close()
		t.Error("it has ended, and listens")
	}
}

// TestNoDrain checks that a server stops without delay if limits.drain is unset, or if it is
// stopped before it serves (OP-07).
func TestNoDrain(t *testing.T) {
	for name, c := range map[string]struct {
		drain time.Duration
		early bool
	}{
		"not configured":   {0, false},
		"before it serves": {time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := consoled(t, func(l *config.Loaded) { l.Limits.Drain = config.Duration(c.drain) })
			s.after = func(time.Duration) <-chan time.Time {
				t.Error("it waits")
				return nil
			}
			asked, stop := context.WithCancel(t.Context())
			defer stop()
			if c.early {
				stop()
			}
			ctx, cancel := s.drained(asked)
			defer cancel()
			stop()
			<-ctx.Done()
		})
	}
}
