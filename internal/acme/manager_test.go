package acme

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/testkit/acmetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

const domain = "auth.example.com"

// houses numbers the domains, because certmagic keeps a process's challenges by domain.
var houses atomic.Int64

// log is a buffer that can be read while others write.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) until(t *testing.T, want string) {
	t.Helper()
	wait.Success(t, fmt.Sprintf("the log has %q", want), func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if all := l.text.String(); !strings.Contains(all, want) {
			return errors.New(all)
		}
		return nil
	})
}

// house is a store with its replicas and their authority.
type house struct {
	t         *testing.T
	store     Store
	authority *acmetest.Authority
	domain    string
	c         Config
	log       log
}

func newHouse(t *testing.T, c acmetest.Config) *house {
	store := installation.Store(t)
	ring, err := secrets.NewRing(bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("auth%d.example.com", houses.Add(1))
	if c.Blocked != nil {
		c.Blocked = []string{name}
	}
	h := &house{t: t, store: store, domain: name, authority: acmetest.Start(t, c)}
	h.c = Config{
		Domains: []string{name}, Directory: h.authority.Directory, Roots: h.authority.Roots,
		HTTPPort: c.HTTPPort, TLSPort: c.TLSPort, Store: store, Ring: ring, Now: time.Now,
		Log: slog.New(slog.NewTextHandler(&h.log, nil)), RenewCheck: 200 * time.Millisecond,
	}
	return h
}

func (h *house) replica(name string) *Manager {
	c := h.c
	c.Holder = name
	return New(c)
}

// run runs a manager until the test ends.
func (h *house) run(m *Manager) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	h.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
}

// serve listens on the ports that the authority connects to.
func (h *house) serve(m *Manager) {
	if h.c.HTTPPort != 0 {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port(h.c.HTTPPort)))
		if err != nil {
			h.t.Fatal(err)
		}
		server := &http.Server{Handler: m.HTTP(), ReadHeaderTimeout: time.Minute}
		go server.Serve(l)
		h.t.Cleanup(func() { server.Close() })
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port(h.c.TLSPort)))
	if err != nil {
		h.t.Fatal(err)
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}),
		TLSConfig:         &tls.Config{GetCertificate: m.Certificate, NextProtos: []string{"h2", "http/1.1", Protocol}},
		ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	go server.ServeTLS(l, "", "")
	h.t.Cleanup(func() { server.Close() })
}

// shown returns the certificate of a handshake, verified with the authority's root.
func (h *house) shown(roots *x509.CertPool) (*x509.Certificate, error) {
	c, err := tls.Dial("tcp", net.JoinHostPort("127.0.0.1", port(h.c.TLSPort)), &tls.Config{
		RootCAs: roots, ServerName: h.domain,
	})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0], nil
}

func (h *house) until(
	roots *x509.CertPool, what string, is func(*x509.Certificate) bool,
) (cert *x509.Certificate) {
	h.t.Helper()
	wait.Success(h.t, what+" is shown", func() (err error) {
		if cert, err = h.shown(roots); err == nil && !is(cert) {
			err = errors.New("another is shown")
		}
		return err
	})
	return cert
}

func port(n int) string { return strconv.Itoa(n) }

func whichever(*x509.Certificate) bool { return true }

// TestOneObtains checks that one replica obtains the certificate and all serve it (DL-01). test/e2e
// checks that replicas answer each other's challenges.
func TestOneObtains(t *testing.T) {
	for _, c := range []struct {
		name string
		http bool
	}{{"DL-01 RFC 8555 8.3: over http", true}, {"DL-01 RFC 8737: in the handshake", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at := acmetest.Config{TLSPort: acmetest.Port(t, nettest.For(t))}
			if c.http {
				at.HTTPPort = acmetest.Port(t, nettest.For(t))
			}
			h := newHouse(t, at)
			front, behind := h.replica("front"), h.replica("behind")
			h.serve(front)
			h.run(behind)
			h.log.until(t, "got a certificate")
			roots := h.authority.Issued(t)
			if _, err := h.shown(roots); err == nil {
				t.Error("a replica that does not run has a certificate")
			}
			h.run(front)
			h.until(roots, "the certificate of the other replica", whichever)
			files, err := h.store.CertificateFilesBelow(t.Context(), "certificates", 100)
			if err != nil || len(files) != 3 {
				t.Errorf("the store has %d files of certificates, want one certificate of 3: %v", len(files), err)
			}
			if _, err := tls.Dial("tcp", net.JoinHostPort("127.0.0.1", port(at.TLSPort)), &tls.Config{
				RootCAs: roots, ServerName: "other.example.com",
			}); err == nil {
				t.Error("a certificate for a name that is not ours")
			}
		})
	}
}

// TestRenewalUnderLoad checks that no handshake fails during a renewal (DL-01).
func TestRenewalUnderLoad(t *testing.T) {
	t.Parallel()
	h := newHouse(t, acmetest.Config{TLSPort: acmetest.Port(t, nettest.For(t)), Validity: 30 * time.Second})
	m := h.replica("one")
	h.serve(m)
	h.run(m)
	h.log.until(t, "got a certificate")
	roots := h.authority.Issued(t)
	first := h.until(roots, "a certificate", whichever)
	stop, failed := make(chan struct{}), atomic.Int64{}
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond): // leaves processor time for the renewal
				}
				if _, err := h.shown(roots); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	h.until(roots, "DL-01 another certificate", func(c *x509.Certificate) bool {
		return c.SerialNumber.Cmp(first.SerialNumber) != 0
	})
	close(stop)
	load.Wait()
	if n := failed.Load(); n != 0 {
		t.Errorf("DL-01: %d handshakes failed", n)
	}
	h.log.until(t, "renewed the certificate")
}

// TestFailures checks that the log contains advice (DL-01).
func TestFailures(t *testing.T) {
	t.Run("DL-01: a name without an address", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t, acmetest.Config{TLSPort: acmetest.Port(t, nettest.For(t))})
		h.authority.Forget(h.domain)
		m := h.replica("one")
		h.serve(m)
		h.run(m)
		h.log.until(t, "the first certificate is missing")
		if _, err := h.shown(nil); err == nil {
			t.Error("a handshake without a certificate")
		}
	})
	t.Run("DL-01: a name that the authority refuses", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t, acmetest.Config{TLSPort: acmetest.Port(t, nettest.For(t)), Blocked: []string{}})
		h.run(h.replica("one"))
		h.log.until(t, "the authority issues no certificate for this name")
	})
	t.Run("DL-01: nobody answers at the name", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t, acmetest.Config{TLSPort: acmetest.Port(t, nettest.For(t))})
		h.c.TLSPort = acmetest.Port(t, nettest.For(t)) // not where the authority looks
		h.run(h.replica("one"))
		h.log.until(t, "it has to lead here, with port 443 open")
	})
	t.Run("DL-01: no authority", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t, acmetest.Config{TLSPort: acmetest.Port(t, nettest.For(t))})
		h.c.Directory = "https://" + nettest.For(t) + "/dir"
		h.run(h.replica("one"))
		h.log.until(t, "the certificate authority cannot be reached from here")
	})
}

// TestHTTP checks the redirects to https, which only lead to our own domains.
func TestHTTP(t *testing.T) {
	m := New(Config{Domains: []string{domain}, HTTPPort: 80, Log: slog.New(slog.DiscardHandler)})
	defer m.cache.Stop()
	for _, c := range []struct {
		method, host, path string
		status             int
		location           string
	}{
		{"GET", domain, "/authorize?a=b", http.StatusPermanentRedirect, "https://" + domain + "/authorize?a=b"},
		{"HEAD", domain + ":80", "/", http.StatusPermanentRedirect, "https://" + domain + "/"},
		{"GET", domain, "//evil.example/", http.StatusPermanentRedirect, "https://" + domain + "//evil.example/"},
		{"POST", domain, "/token", http.StatusForbidden, ""},
		{"GET", "evil.example", "/", http.StatusMisdirectedRequest, ""},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(c.method, "http://"+domain+c.path, nil)
		r.Host = c.host
		m.HTTP().ServeHTTP(w, r)
		if w.Code != c.status || w.Header().Get("Location") != c.location {
			t.Errorf("%s %s%s: %d %q, want %d %q", c.method, c.host, c.path, w.Code, w.Header().Get("Location"),
				c.status, c.location)
		}
	}
}

// TestFiles checks that files follow certmagic's contract and are encrypted.
func TestFiles(t *testing.T) {
	store := installation.Store(t)
	old, young := bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("y"), 32)
	ring := func(keys ...[]byte) *secrets.Ring {
		r, err := secrets.NewRing(keys...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	f := &files{store: store, ring: ring(old), now: time.Now, locked: locks{holder: "a"}}
	ctx := t.Context()
	for _, key := range []string{"a/b/c", "a/d"} {
		if err := f.Store(ctx, key, []byte("marked secret")); err != nil {
			t.Fatal(err)
		}
	}
	if kept, _ := store.CertificateFile(ctx, "a/d"); bytes.Contains(kept.Sealed, []byte("marked")) {
		t.Error("a file is kept in clear")
	}
	for _, c := range []struct {
		path      string
		recursive bool
		want      string
	}{{"a", false, "a/b a/d"}, {"a", true, "a/b a/b/c a/d"}, {"", false, "a"}, {"a/b/", false, "a/b/c"}} {
		got, err := f.List(ctx, c.path, c.recursive)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%q: got %v, %v, want %s", c.path, got, err, c.want)
		}
	}
	if _, err := f.List(ctx, "b", false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a list of nothing: %v", err)
	}
	if _, err := f.Load(ctx, "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a path without a file: %v", err)
	}
	if info, err := f.Stat(ctx, "a/b"); err != nil || info.IsTerminal {
		t.Errorf("a path: %+v, %v", info, err)
	}
	if err := f.Store(ctx, strings.Repeat("x", 600), nil); err == nil {
		t.Error("a path without a bound")
	}

	t.Run("another place", func(t *testing.T) {
		moved, _ := store.CertificateFile(ctx, "a/d")
		moved.Key = "a/e"
		if err := store.PutCertificateFile(ctx, moved); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Load(ctx, "a/e"); !errors.Is(err, secrets.ErrOpen) {
			t.Errorf("a file in another place: %v", err)
		}
		if err := f.Delete(ctx, "a/e"); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("another master key", func(t *testing.T) {
		n, err := Reseal(ctx, store, ring(young, old))
		if err != nil || n != 2 {
			t.Fatalf("resealed %d: %v", n, err)
		}
		if n, err := Reseal(ctx, store, ring(young, old)); err != nil || n != 0 {
			t.Errorf("resealed %d again: %v", n, err)
		}
		after := &files{store: store, ring: ring(young), now: time.Now}
		if got, err := after.Load(ctx, "a/b/c"); err != nil || string(got) != "marked secret" {
			t.Errorf("got %q, %v", got, err)
		}
		if _, err := f.Load(ctx, "a/b/c"); !errors.Is(err, secrets.ErrOpen) {
			t.Errorf("under the old key: %v", err)
		}
	})
	t.Run("one holds a lock", func(t *testing.T) {
		other := &files{store: store, ring: ring(old), now: time.Now, locked: locks{holder: "b"}}
		if err := f.Lock(ctx, "x"); err != nil {
			t.Fatal(err)
		}
		for _, who := range []*files{f, other} {
			if held, err := who.TryLock(ctx, "x"); err != nil || held {
				t.Errorf("a lock that is held: %v, %v", held, err)
			}
		}
		if err := other.Unlock(ctx, "x"); err == nil {
			t.Error("a lock of another was given back")
		}
		if err := f.Unlock(ctx, "x"); err != nil {
			t.Fatal(err)
		}
		if held, err := other.TryLock(ctx, "x"); err != nil || !held {
			t.Errorf("a lock that is free: %v, %v", held, err)
		}
		waiting, stop := context.WithTimeout(ctx, 50*time.Millisecond)
		defer stop()
		if err := f.Lock(waiting, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for a lock: %v", err)
		}
		if err := other.Unlock(ctx, "x"); err != nil {
			t.Fatal(err)
		}
	})
}
