package mail_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/mail"
	"github.com/mcp-authd/mcp-authd/internal/testkit/certtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/smtptest"
)

// encrypted starts a mail server with STARTTLS for localhost, and returns its address and the roots to trust.
func encrypted(t *testing.T) (s *smtptest.Server, address string, roots *x509.CertPool) {
	t.Helper()
	dir := t.TempDir()
	certtest.WritePair(t, dir, "localhost")
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "localhost.crt"), filepath.Join(dir, "localhost.key"))
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(filepath.Join(dir, "localhost.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	s = smtptest.Start(t, &pair)
	return s, strings.Replace(s.Address, "127.0.0.1", "localhost", 1), roots
}

// TestPE16ACheckSendsNothing checks that Check signs in to the mail server and sends no mail.
func TestPE16ACheckSendsNothing(t *testing.T) {
	server, address, roots := encrypted(t)
	s := sender(t, mail.Config{
		Address: address, Username: "mcp", Password: "hunter2hunter2", From: "mcp@example.com", Roots: roots,
	})
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := server.Passwords(); len(got) != 1 || got[0] != "hunter2hunter2" || len(server.Mails()) != 0 {
		t.Errorf("PE-16: passwords %q, letters %d", got, len(server.Mails()))
	}
}

// TestPE16ACheckNamesTheStep checks that each failing step has a specific message and advice.
func TestPE16ACheckNamesTheStep(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	plain := smtptest.Start(t, nil)
	server, address, roots := encrypted(t)
	server.AnswerLogin("535 5.7.8 no")
	login := func(c mail.Config) mail.Config {
		c.Username, c.Password = "mcp", "hunter2hunter2"
		return c
	}
	for name, c := range map[string]struct {
		config       mail.Config
		what, advice string
	}{
		"nothing listens": {mail.Config{Address: gone.Addr().String()}, "cannot be reached", "mail.smtp.address"},
		"no STARTTLS":     {mail.Config{Address: plain.Address}, "offers no STARTTLS", "mail.smtp.tls"},
		"TLS at once": {mail.Config{Address: plain.Address, TLS: mail.Implicit}, "cannot be encrypted",
			"starttls for port 587"},
		"unknown certificate": {mail.Config{Address: address}, "cannot be encrypted", "the name of the certificate"},
		"wrong password": {login(mail.Config{Address: address, Roots: roots}), "did not accept the sign-in",
			"mail.smtp.password"},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.From = "mcp@example.com"
			err := sender(t, c.config).Check(t.Context())
			var f *mail.Fault
			if !errors.As(err, &f) || !strings.Contains(f.What, c.what) || !strings.Contains(f.Advice, c.advice) {
				t.Errorf("PE-16: got %v, %+v", err, f)
			}
		})
	}
}

// TestPE16NoErrorHasThePassword checks that no error contains the password, even if the mail server
// repeats it in an encoded form.
func TestPE16NoErrorHasThePassword(t *testing.T) {
	server, address, roots := encrypted(t)
	const password = "hunter2hunter2"
	s := sender(t, mail.Config{
		Address: address, Username: "mcp", Password: password, From: "mcp@example.com", Roots: roots,
	})
	server.AnswerLogin("535 5.7.8 you said PASSWORD by SENT")
	for name, do := range map[string]func() error{
		"check": func() error { return s.Check(t.Context()) },
		"send":  func() error { return s.Send(t.Context(), "a@example.com", "x", "x", "") },
	} {
		err := do()
		if err == nil || !strings.Contains(err.Error(), "you said [password] by [password]") {
			t.Errorf("PE-16: %s: got %v", name, err)
			continue
		}
		for _, secret := range []string{password, base64.StdEncoding.EncodeToString([]byte("\x00mcp\x00" + password))} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("PE-16: %s repeats %q: %v", name, secret, err)
			}
		}
	}
}

// TestPE16ARefusedLetterSaysWhatToDo checks that the error for refused mail has the server's reply
// and advice.
func TestPE16ARefusedLetterSaysWhatToDo(t *testing.T) {
	server := smtptest.Start(t, nil)
	server.Answer("550 5.7.1 not from here")
	s := sender(t, mail.Config{Address: server.Address, TLS: mail.None, From: "mcp@example.com"})
	err := s.Send(t.Context(), "a@example.com", "x", "x", "")
	var f *mail.Fault
	if !errors.As(err, &f) || !errors.Is(err, mail.ErrRefused) || !strings.Contains(f.What, "5.7.1 not from here") ||
		f.Advice == "" {
		t.Errorf("PE-16: got %v", err)
	}
}
