package acme

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/libdns/libdns"

	"github.com/mcp-authd/mcp-authd/internal/testkit/acmetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
)

// lying starts an authority that answers account requests with account.
func lying(t *testing.T, account http.HandlerFunc) (directory string, roots *x509.CertPool) {
	t.Helper()
	var server *httptest.Server
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Replay-Nonce", "bm9uY2U")
		switch r.URL.Path {
		case "/dir":
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(map[string]string{
				"newNonce": server.URL + "/nonce", "newAccount": server.URL + "/account",
				"newOrder": server.URL + "/order",
			})
		case "/account":
			account(w, r)
		}
	}))
	t.Cleanup(server.Close)
	roots = x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server.URL + "/dir", roots
}

// TestAuthorityInTrouble checks that invalid responses are logged in one line, with bounded memory
// and time (DL-01).
func TestAuthorityInTrouble(t *testing.T) {
	problem := func(status int, kind string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"type": "%s", "detail": "too many\nrequests"}`, problems+kind)
		}
	}
	other := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil // else net/http would add one
			if kind != "" {
				w.Header().Set("Content-Type", kind)
			}
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	for _, c := range []struct {
		name, want string
		answer     http.HandlerFunc
	}{
		{"DL-01: too many requests, without a content type", explainLimit,
			other(http.StatusTooManyRequests, "", "slow")},
		{"DL-01: too many requests, a page", explainLimit,
			other(http.StatusTooManyRequests, "text/html", "<h1>Slow down</h1>")},
		{"DL-01: a proxy before the authority", explainFault,
			other(http.StatusBadGateway, "text/plain; charset=utf-8", "no route\n")},
		{"DL-01: a problem without a content type", "a CAA record of the name keeps this authority from issuing",
			other(http.StatusForbidden, "", `{"type": "`+problems+`caa"}`)},
		{"DL-01: a problem as other JSON", "a CAA record of the name keeps this authority from issuing",
			other(http.StatusForbidden, "application/json", `{"type": "`+problems+`caa"}`)},
		{"DL-01: a type that is not known", explainFault,
			other(http.StatusServiceUnavailable, "application/problem+json", `{"type": "about:blank"}`)},
		{"DL-01: the first line of another answer", "HTTP 403 about:blank - not  here\"",
			other(http.StatusForbidden, "", "\n not\x1b here\nsecond"+strings.Repeat("x", 1<<16))},
		{
			"DL-01 RFC 8555 6.6: too many requests", "the authority has had too many requests for this name",
			problem(http.StatusTooManyRequests, "rateLimited"),
		},
		{"DL-01: a fault of its own", "the authority has a fault of its own",
			problem(http.StatusInternalServerError, "serverInternal")},
		{"DL-01: an answer without an end", "is no certificate authority: correct tls.acme.directory",
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				for {
					if _, err := w.Write(bytes.Repeat([]byte("{"), 1<<20)); err != nil {
						return
					}
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, acmetest.Config{TLSPort: acmetest.Port(t, nettest.For(t))})
			h.c.Directory, h.c.Roots = lying(t, c.answer)
			h.run(h.replica("one"))
			h.log.until(t, c.want)
			h.log.mu.Lock()
			defer h.log.mu.Unlock()
			if n := strings.Count(strings.TrimSpace(h.log.text.String()), "\n"); n != 0 {
				t.Errorf("it takes %d lines more than one:\n%s", n, h.log.text.String())
			}
		})
	}
}

// TestBodies checks that a response is not read beyond the limit.
func TestBodies(t *testing.T) {
	for _, c := range []struct {
		size int
		want error
	}{{maxAnswer, nil}, {maxAnswer + 1, errAnswer}, {4 * maxAnswer, errAnswer}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Write(make([]byte, c.size))
		}))
		resp, err := (&http.Client{Transport: sized{http.DefaultTransport}}).Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		server.Close()
		if err != c.want || len(got) > maxAnswer {
			t.Errorf("%d bytes: got %d, %v, want %v", c.size, len(got), err, c.want)
		}
	}
}

// panics is a DNS client that panics.
type panics struct{ certmagic.DNSProvider }

func (panics) AppendRecords(context.Context, string, []libdns.Record) ([]libdns.Record, error) {
	panic("a token is missing")
}

func (panics) DeleteRecords(ctx context.Context, _ string, _ []libdns.Record) ([]libdns.Record, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		panic("no deadline")
	}
	return nil, nil
}

func TestFaultOfAProvider(t *testing.T) {
	if _, err := (timed{panics{}}).AppendRecords(t.Context(), "", nil); err == nil {
		t.Error("DL-01: a panic must be an error")
	}
	if _, err := (timed{panics{}}).DeleteRecords(t.Context(), "", nil); err != nil {
		t.Errorf("DL-01: %v", err)
	}
}

// TestEndIsTold checks that a certificate that is not renewed is still served and measured, with a
// warning (DL-01).
func TestEndIsTold(t *testing.T) {
	t.Parallel()
	h := newHouse(t, acmetest.Config{TLSPort: acmetest.Port(t, nettest.For(t)), Validity: time.Hour})
	states := make(chan State, 1000)
	h.c.Measure = func(s State) {
		select {
		case states <- s:
		default:
		}
	}
	first := h.replica("first")
	h.serve(first)
	h.run(first)
	h.log.until(t, "got a certificate")
	roots := h.authority.Issued(t)
	served := h.until(roots, "a certificate", whichever)
	for s := range states {
		if s.NotAfter.Equal(served.NotAfter) && !s.Failed {
			break
		}
	}
	leaf, err := Kept(t.Context(), h.store, h.c.Ring, h.c.Directory, h.domain)
	if err != nil || !leaf.Equal(served) {
		t.Errorf("the certificate of the store: %v", err)
	}
	// The clock of a second replica is ahead, so the certificate is about to expire.
	h.c.Now = func() time.Time { return served.NotAfter.Add(-time.Minute) }
	h.run(h.replica("second"))
	h.log.until(t, "the certificate ends soon, and is not renewed; see in this log")
	if _, err := h.shown(roots); err != nil {
		t.Errorf("it is not served on: %v", err)
	}
}

// TestEnds checks that the warning period depends on the lifetime.
func TestEnds(t *testing.T) {
	now := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for _, c := range []struct {
		lifetime, left time.Duration
		want           bool
	}{
		{90 * day, 15 * day, false}, {90 * day, 13 * day, true}, {365 * day, 15 * day, false},
		{6 * day, 2 * day, false}, {6 * day, day, true}, {90 * day, -day, true},
	} {
		end := now.Add(c.left)
		if got := Ends(end.Add(-c.lifetime), end, now); got != c.want {
			t.Errorf("%v of %v left: got %v", c.left, c.lifetime, got)
		}
	}
}
