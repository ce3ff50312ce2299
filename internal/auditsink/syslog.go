package auditsink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/auditformat"
)

// Peer is a TLS server.
type Peer struct {
	Address string         // host:port
	Roots   *x509.CertPool // its certificate authorities; nil for the system's
	// CertFile and KeyFile authenticate us; "" for no certificate. They are read for each
	// connection.
	CertFile, KeyFile string
}

const (
	dialTime = 10 * time.Second
	// settle is how long a connection must stay open after a batch until it counts as delivered.
	// Syslog has no acknowledgment, and a stopped server closes the connection when it receives
	// data.
	settle = 200 * time.Millisecond
	// facility 10 is for security and authorization messages.
	facility = 10
)

// levels maps severities to RFC 5424 §6.2.1.
var levels = map[auditformat.Severity]int{
	auditformat.Informational: 6, auditformat.Low: 5, auditformat.Medium: 4, auditformat.High: 2,
}

// syslog sends RFC 5424 messages over TLS (RFC 5425).
type syslog struct {
	writer
	Peer
	host   string        // the host in the messages
	settle time.Duration // see the constant

	conn   net.Conn      // nil if not connected
	closed chan struct{} // closed once the other side has closed conn
}

func newSyslog(w writer, p Peer) *syslog {
	return &syslog{writer: w, Peer: p, host: hostName(w.source.Issuer), settle: settle}
}

// hostName returns the host of the issuer for messages (RFC 5424 §6.2.4).
func hostName(issuer string) string {
	if u, err := url.Parse(issuer); err == nil && u.Hostname() != "" {
		return visible(u.Hostname(), 255)
	}
	return "-"
}

// visible returns text for the header of a message.
func visible(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < '!' || r > '~' {
			return '_'
		}
		return r
	}, s)
	return s[:min(len(s), most)]
}

// message returns an entry in its frame (RFC 5425 §4.3): the length in bytes, a space, and the
// message.
func (s *syslog) message(e auditformat.Entry) []byte {
	const id = 32
	m := fmt.Sprintf("<%d>1 %s %s mcp-authd - %s - %s", facility*8+levels[e.Severity()],
		e.At.UTC().Format("2006-01-02T15:04:05.000Z"), s.host, visible(e.Event, id), s.line(e))
	return []byte(strconv.Itoa(len(m)) + " " + m)
}

// Deliver implements Sink.
func (s *syslog) Deliver(ctx context.Context, batch []auditformat.Entry) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	var frames []byte
	for _, e := range batch {
		frames = append(frames, s.message(e)...)
	}
	until, _ := ctx.Deadline()
	err := s.conn.SetWriteDeadline(until)
	if err == nil {
		_, err = s.conn.Write(frames)
	}
	if err == nil {
		err = s.stays(ctx)
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// stays checks that the connection stays open for a moment.
func (s *syslog) stays(ctx context.Context) error {
	timer := time.NewTimer(s.settle)
	defer timer.Stop()
	select {
	case <-s.closed:
		return fmt.Errorf("%s has closed the connection", s.Address)
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// connect opens a connection if it is not open.
func (s *syslog) connect(ctx context.Context) error {
	if s.conn != nil {
		select {
		case <-s.closed:
			_ = s.Close() // the other side has closed it
		default:
			return nil
		}
	}
	c := &tls.Config{RootCAs: s.Roots, MinVersion: tls.VersionTLS12}
	if s.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
		if err != nil {
			return err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := (&tls.Dialer{Config: c}).DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return err
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		var nothing [256]byte
		for {
			if _, err := conn.Read(nothing[:]); err != nil {
				return
			}
		}
	}()
	s.conn, s.closed = conn, closed
	return nil
}

// Close implements Sink.
func (s *syslog) Close() error {
	if s.conn == nil {
		return nil
	}
	_ = s.conn.Close() // the data was already sent
	<-s.closed
	s.conn = nil
	return nil
}
