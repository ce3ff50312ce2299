package auditsink

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/auditformat"
	"github.com/mcp-authd/mcp-authd/internal/testkit/certtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// collector is a syslog server that reads frames and collects the messages.
type collector struct {
	net.Listener
	files string // the directory of its certificate and the client's

	mu       sync.Mutex // guards the following fields
	messages []string
	names    []string // of client certificates
	fault    error
	conns    []net.Conn
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{files: t.TempDir()}
	certtest.WritePair(t, c.files, "localhost")
	certtest.WritePair(t, c.files, "client.example")
	c.listen(t, nettest.For(t)) // it restarts at the same address
	return c
}

func (c *collector) listen(t *testing.T, address string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.file("localhost.crt"), c.file("localhost.key"))
	if err != nil {
		t.Fatal(err)
	}
	clients, err := certificates(c.file("client.example.crt"))
	if err != nil {
		t.Fatal(err)
	}
	c.Listener, err = tls.Listen("tcp", address, &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.VerifyClientCertIfGiven,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.stop() })
	go func(l net.Listener) {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(conn.(*tls.Conn))
		}
	}(c.Listener)
}

func (c *collector) file(name string) string { return filepath.Join(c.files, name) }

func (c *collector) serve(conn *tls.Conn) {
	defer conn.Close()
	if conn.Handshake() != nil {
		return
	}
	c.mu.Lock()
	c.conns = append(c.conns, conn)
	for _, cert := range conn.ConnectionState().PeerCertificates {
		c.names = append(c.names, cert.DNSNames...)
	}
	c.mu.Unlock()
	in := bufio.NewReader(conn)
	for {
		message, err := frame(in)
		c.mu.Lock()
		if err == nil {
			c.messages = append(c.messages, message)
		} else if err != io.EOF {
			c.fault = err
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// frame reads a message from its RFC 5425 §4.3 frame.
func frame(in *bufio.Reader) (string, error) {
	var n int
	if _, err := fmt.Fscanf(in, "%d ", &n); err != nil {
		return "", io.EOF
	}
	b := make([]byte, n)
	_, err := io.ReadFull(in, b)
	return string(b), err
}

// stop closes the server and its connections, as if its process were killed.
func (c *collector) stop() {
	c.Listener.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

func (c *collector) got() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.messages...)
}

func (c *collector) wait(t *testing.T, n int) []string {
	t.Helper()
	wait.Until(t, fmt.Sprintf("%d messages have arrived", n), func() bool { return len(c.got()) >= n })
	return c.got()
}

func (c *collector) sink(t *testing.T) *syslog {
	t.Helper()
	roots, err := certificates(c.file("localhost.crt"))
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(c.Addr().String())
	s := newSyslog(asCEF, Peer{
		Address: "localhost:" + port, Roots: roots, CertFile: c.file("client.example.crt"),
		KeyFile: c.file("client.example.key"),
	})
	t.Cleanup(func() { s.Close() })
	return s
}

var asCEF = writer{format: auditformat.CEF, source: asJSON.source}

// rfc5424 matches PRI, VERSION, TIMESTAMP, HOSTNAME, APP-NAME, PROCID, MSGID, STRUCTURED-DATA, MSG.
var rfc5424 = regexp.MustCompile(
	`^<86>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z auth\.example\.com mcp-authd - login\.succeeded - CEF:0\|.*externalId=(\d+) `)

func TestSyslog(t *testing.T) {
	t.Run("OB-06 RFC 5425: messages arrive in their frames, in order, from a client that is known", func(t *testing.T) {
		c := newCollector(t)
		s := c.sink(t)
		for i := range int64(2) {
			if err := s.Deliver(deadline(t), entries(2*i, 2)); err != nil {
				t.Fatal(err)
			}
		}
		for i, m := range c.wait(t, 4) {
			if found := rfc5424.FindStringSubmatch(m); found == nil || found[1] != fmt.Sprint(i) {
				t.Errorf("message %d is %q", i, m)
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fault != nil || strings.Join(c.names, " ") != "client.example" || len(c.conns) != 1 {
			t.Errorf("got %v, %v, %d connections", c.fault, c.names, len(c.conns))
		}
	})
	t.Run("OB-06: a server that is gone has not taken a batch, and has it when it is back", func(t *testing.T) {
		c := newCollector(t)
		s := c.sink(t)
		if err := s.Deliver(deadline(t), entries(0, 1)); err != nil {
			t.Fatal(err)
		}
		c.wait(t, 1)
		address := c.Addr().String()
		c.stop()
		s.settle = time.Minute // closing is noticed eventually, even on a slow machine
		if err := s.Deliver(deadline(t), entries(1, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a batch counts as delivered to nobody: %v", err)
		}
		s.settle = settle
		c.listen(t, address)
		if err := s.Deliver(deadline(t), entries(1, 1)); err != nil {
			t.Fatal(err)
		}
		if got := c.wait(t, 2); len(got) != 2 || !strings.Contains(got[1], "externalId=1 ") {
			t.Errorf("got %q", got)
		}
	})
	t.Run("OB-06: a server that closes what it got has not taken it", func(t *testing.T) {
		c := newCollector(t)
		s := c.sink(t)
		if err := s.Deliver(deadline(t), entries(0, 1)); err != nil {
			t.Fatal(err)
		}
		c.wait(t, 1)
		go func() {
			wait.Poll(wait.Bound, func() bool { return len(c.got()) >= 2 || t.Context().Err() != nil })
			c.stop()
		}()
		s.settle = time.Minute
		err := s.Deliver(deadline(t), entries(1, 1))
		if err == nil || !strings.Contains(err.Error(), "closed the connection") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("OB-06: nothing is sent to a server that is not known, or not over TLS", func(t *testing.T) {
		c := newCollector(t)
		s := c.sink(t)
		s.Roots = x509.NewCertPool()
		if err := s.Deliver(deadline(t), entries(0, 1)); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("got %v", err)
		}
		plain, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		heard := make(chan string, 1)
		go func() {
			conn, err := plain.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 4096)
			n, _ := conn.Read(b)
			heard <- string(b[:n])
			fmt.Fprint(conn, "220 hello\r\n")
			conn.Close()
		}()
		s = c.sink(t)
		s.Address = strings.Replace(plain.Addr().String(), "127.0.0.1", "localhost", 1)
		if err := s.Deliver(deadline(t), entries(0, 1)); err == nil || strings.Contains(<-heard, "alice") {
			t.Errorf("got %v", err)
		}
	})
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
