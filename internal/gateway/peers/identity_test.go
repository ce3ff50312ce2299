package peers

import (
	"bytes"
	"crypto/ed25519"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

func newTestIdentity(t *testing.T, id string, keys ...[]byte) *identity {
	t.Helper()
	ring, err := secrets.NewRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	i, err := newIdentity(ring, id)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// asks reports whether a request over c is answered. Either side may refuse it.
func asks(c net.Conn) bool {
	defer c.Close()
	_, err := io.WriteString(c, "GET "+pathCheck+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	answer, readErr := io.ReadAll(c)
	return err == nil && readErr == nil && bytes.HasPrefix(answer, []byte("HTTP/1.1 204 "))
}

// TestMutualAuthentication: RU-08: a connection without the master key is refused, whatever else
// the other side knows.
func TestMutualAuthentication(t *testing.T) {
	a := start(t, newTable(), "rep_a", nil, key(0), key(3))
	genuine := newTestIdentity(t, "rep_b", key(0))
	for name, c := range map[string]struct {
		config *tls.Config // nil: plain text
		want   bool
	}{
		"the same key":     {genuine.client("rep_a"), true},
		"an older key":     {newTestIdentity(t, "rep_b", key(3), key(0)).client("rep_a"), true},
		"another key":      {newTestIdentity(t, "rep_b", key(1)).client("rep_a"), false},
		"another wanted":   {genuine.client("rep_c"), false},
		"plain text":       {nil, false},
		"no certificate":   {with(genuine, func(c *tls.Config) { c.Certificates = nil }), false},
		"no protocol":      {with(genuine, func(c *tls.Config) { c.NextProtos = nil }), false},
		"another protocol": {with(genuine, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }), false},
		"TLS 1.2": {with(genuine, func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = 0, tls.VersionTLS12
		}), false},
		"a certificate that was seen, without its key": {with(genuine, func(c *tls.Config) {
			c.Certificates = []tls.Certificate{{
				Certificate: genuine.certificate.Certificate,
				PrivateKey:  ed25519.NewKeyFromSeed(secrets.Bytes(ed25519.SeedSize)),
			}}
		}), false},
		"another key that takes any replica": {with(newTestIdentity(t, "rep_b", key(1)), func(c *tls.Config) {
			c.VerifyConnection = nil
		}), false},
	} {
		t.Run("RU-08 "+name, func(t *testing.T) {
			raw, err := net.Dial("tcp", a.at)
			if err != nil {
				t.Fatal(err)
			}
			if c.config != nil {
				raw = tls.Client(raw, c.config)
			}
			if got := asks(raw); got != c.want {
				t.Errorf("it is answered: %v", got)
			}
		})
	}
}

func with(i *identity, change func(*tls.Config)) *tls.Config {
	c := i.client("rep_a")
	c.VerifyConnection = nil // accepts any peer
	change(c)
	return c
}

// recorded records the bytes that one side of a connection has sent.
type recorded struct {
	net.Conn
	mu   sync.Mutex
	sent bytes.Buffer
}

func (r *recorded) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent.Write(b)
	return r.Conn.Write(b)
}

// TestReplay: RU-08: recorded bytes of a replica get no answer when they are sent again.
func TestReplay(t *testing.T) {
	a := start(t, newTable(), "rep_a", nil, key(0))
	raw, err := net.Dial("tcp", a.at)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorded{Conn: raw}
	if !asks(tls.Client(r, newTestIdentity(t, "rep_b", key(0)).client("rep_a"))) {
		t.Fatal("a replica is not answered")
	}
	again, err := net.Dial("tcp", a.at)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Write(r.sent.Bytes()); err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, again) // the connection ends
	if used := len(a.log.String()); used == 0 {
		t.Errorf("RU-08: it is not refused, %v", err)
	}
}

// TestClocksApart: RU-08: replicas trust each other even if their clocks differ.
func TestClocksApart(t *testing.T) {
	i, b := newTestIdentity(t, "rep_a", key(0)), newTestIdentity(t, "rep_b", key(0))
	for _, at := range []time.Time{time.Unix(0, 0), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)} {
		server, client := i.server(), b.client("rep_a")
		server.Time, client.Time = func() time.Time { return at }, time.Now
		x, y := net.Pipe()
		go func() { _ = tls.Server(x, server).Handshake() }()
		if err := tls.Client(y, client).Handshake(); err != nil {
			t.Errorf("RU-08: at %s: %v", at, err)
		}
		y.Close()
	}
}

// BenchmarkHop measures the cost of forwarding: one request and its answer on loopback.
func BenchmarkHop(b *testing.B) {
	d := newTable()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":7,"result":{}}`)
	})
	a := start(b, d, "rep_a", nil, key(0))
	start(b, d, "rep_b", h, key(0))
	b.ReportAllocs()
	for b.Loop() {
		if w := a.pass(b.Context(), http.MethodPost, "s.rep_b", `{"jsonrpc":"2.0","id":7,"method":"ping"}`,
			alice); w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
