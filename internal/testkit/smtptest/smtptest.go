// Package smtptest is a mail server for tests. It stores the messages that it receives.
package smtptest

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// Server is a mail server on loopback.
type Server struct {
	Address string

	tls      *tls.Config // nil: no STARTTLS
	listener net.Listener

	mu        sync.Mutex // guards the fields below
	mails     []Mail
	answer    string // replaces 250 after DATA
	login     string // replaces 235 after AUTH
	passwords []string
	inClear   []string // commands received before TLS
}

// Mail is a received message.
type Mail struct {
	To     string // envelope recipient
	Header mail.Header
	Text   string // plain text part
	HTML   string
	Raw    string
}

// Subject returns the decoded subject.
func (m Mail) Subject() string {
	s, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		return m.Header.Get("Subject")
	}
	return s
}

// Start starts a server that ends with the test. With a certificate it offers STARTTLS and accepts
// passwords.
func Start(t testing.TB, certificate *tls.Certificate) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return start(t, l, certificate)
}

func start(t testing.TB, l net.Listener, certificate *tls.Certificate) *Server {
	s := &Server{Address: l.Addr().String(), listener: l}
	if certificate != nil {
		s.tls = &tls.Config{Certificates: []tls.Certificate{*certificate}}
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

// Stop closes the listener, so new connections fail.
func (s *Server) Stop() { s.listener.Close() }

// Answer makes the server answer each further message with a line such as "451 later".
func (s *Server) Answer(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = line
}

// AnswerLogin makes the server answer each further sign-in with a line such as "535 no". The server
// replaces PASSWORD with the password, and SENT with the argument of AUTH.
func (s *Server) AnswerLogin(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.login = line
}

// Mails returns the accepted messages.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.mails...)
}

// InClear returns the commands received before TLS.
func (s *Server) InClear() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.inClear, "\n")
}

// Passwords returns the passwords received.
func (s *Server) Passwords() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.passwords...)
}

// Await waits up to a minute until n messages are accepted, and returns them.
func (s *Server) Await(t testing.TB, n int) []Mail {
	t.Helper()
	var got []Mail
	wait.Success(t, "the messages are taken", func() error {
		if got = s.Mails(); len(got) < n {
			return fmt.Errorf("got %d, want %d", len(got), n)
		}
		return nil
	})
	return got
}

type session struct {
	*textproto.Conn
	server    *Server
	conn      net.Conn
	encrypted bool
	to        string
}

func (s *Server) serve(conn net.Conn) {
	c := &session{Conn: textproto.NewConn(conn), server: s, conn: conn}
	defer func() { c.conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	c.say("220 test")
	for {
		line, err := c.ReadLine()
		if err != nil || !c.obey(line) {
			return
		}
	}
}

func (c *session) say(line string) { _ = c.PrintfLine("%s", line) }

// obey executes a command, and reports whether more may follow.
func (c *session) obey(line string) bool {
	if !c.encrypted {
		c.server.mu.Lock()
		c.server.inClear = append(c.server.inClear, line)
		c.server.mu.Unlock()
	}
	verb, rest, _ := strings.Cut(line, " ")
	switch strings.ToUpper(verb) {
	case "EHLO":
		c.hello()
	case "STARTTLS":
		c.say("220 go on")
		c.conn, c.encrypted = tls.Server(c.conn, c.server.tls), true
		c.Conn = textproto.NewConn(c.conn)
	case "AUTH":
		c.authenticate(rest)
	case "RCPT":
		c.to = strings.Trim(strings.TrimPrefix(rest, "TO:"), "<>")
		c.say("250 ok")
	case "DATA":
		return c.take()
	case "QUIT":
		c.say("221 bye")
		return false
	default:
		c.say("250 ok")
	}
	return true
}

func (c *session) hello() {
	switch {
	case c.server.tls == nil:
		c.say("250 test")
	case c.encrypted:
		c.say("250-test")
		c.say("250 AUTH PLAIN")
	default:
		c.say("250-test")
		c.say("250 STARTTLS")
	}
}

func (c *session) authenticate(rest string) {
	_, encoded, _ := strings.Cut(rest, " ")
	b, _ := base64.StdEncoding.DecodeString(encoded)
	parts := strings.Split(string(b), "\x00")
	c.server.mu.Lock()
	password, answer := parts[len(parts)-1], cmp.Or(c.server.login, "235 ok")
	c.server.passwords = append(c.server.passwords, password)
	c.server.mu.Unlock()
	c.say(strings.NewReplacer("PASSWORD", password, "SENT", encoded).Replace(answer))
}

func (c *session) take() bool {
	c.say("354 go on")
	raw, err := io.ReadAll(c.DotReader())
	if err != nil {
		return false
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.server.answer != "" {
		c.say(c.server.answer)
		return true
	}
	c.server.mails = append(c.server.mails, parse(c.to, string(raw)))
	c.say("250 taken")
	return true
}

func parse(to, raw string) Mail {
	m := Mail{To: to, Raw: raw}
	msg, err := mail.ReadMessage(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		return m
	}
	m.Header = msg.Header
	kind, params, _ := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if !strings.HasPrefix(kind, "multipart/") {
		m.Text = decoded(msg.Body, msg.Header.Get("Content-Transfer-Encoding"))
		return m
	}
	parts := multipart.NewReader(msg.Body, params["boundary"])
	for {
		p, err := parts.NextRawPart()
		if err != nil {
			return m
		}
		body := decoded(p, p.Header.Get("Content-Transfer-Encoding"))
		if strings.HasPrefix(p.Header.Get("Content-Type"), "text/html") {
			m.HTML = body
		} else {
			m.Text = body
		}
	}
}

func decoded(r io.Reader, encoding string) string {
	if strings.EqualFold(encoding, "quoted-printable") {
		r = quotedprintable.NewReader(r)
	}
	b, _ := io.ReadAll(r)
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}
