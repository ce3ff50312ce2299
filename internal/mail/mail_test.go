package mail_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/mail"
	"github.com/mcp-authd/mcp-authd/internal/testkit/smtptest"
)

func TestPE16AMessageArrives(t *testing.T) {
	server := smtptest.Start(t, nil)
	s := sender(t, mail.Config{Address: server.Address, TLS: mail.None, From: "Example <mcp@example.com>"})
	const text = "Grüße, 世界.\n\n.a line that begins with a dot\n"
	if err := s.Send(t.Context(), "anna@example.com", "Schlüssel 鍵", text, "<p>Grüße</p>"); err != nil {
		t.Fatal(err)
	}
	got := server.Await(t, 1)[0]
	if got.To != "anna@example.com" || got.Subject() != "Schlüssel 鍵" ||
		got.Text != text || got.HTML != "<p>Grüße</p>" {
		t.Errorf("got %q %q %q %q", got.To, got.Subject(), got.Text, got.HTML)
	}
	if from := got.Header.Get("From"); !strings.Contains(from, "<mcp@example.com>") {
		t.Errorf("From: got %q", from)
	}
}

// TestPE16NoHeaderIsInjected checks that text from others cannot add a header or a recipient.
func TestPE16NoHeaderIsInjected(t *testing.T) {
	server := smtptest.Start(t, nil)
	s := sender(t, mail.Config{Address: server.Address, TLS: mail.None, From: "mcp@example.com"})
	for _, to := range []string{
		"a@example.com\r\nBcc: b@example.com", "a@example.com, b@example.com", "A <a@example.com>", "a", "",
		"a@example.com\x00", "<a@example.com>\nX: y",
	} {
		if err := s.Send(t.Context(), to, "x", "x", ""); !errors.Is(err, mail.ErrRefused) {
			t.Errorf("%q: got %v, want ErrRefused", to, err)
		}
	}
	if err := s.Send(t.Context(), "a@example.com", "x\r\nBcc: b@example.com\r\n\r\nbody", "x", ""); err != nil {
		t.Fatal(err)
	}
	got := server.Await(t, 1)
	if len(got) != 1 || got[0].Header.Get("Bcc") != "" || strings.TrimSpace(got[0].Text) != "x" {
		t.Errorf("got %v", got)
	}
}

func TestPE16APasswordIsSentEncryptedOnly(t *testing.T) {
	server, address, roots := encrypted(t)
	local := func(s *smtptest.Server) string { return strings.Replace(s.Address, "127.0.0.1", "localhost", 1) }
	login := mail.Config{Username: "mcp", Password: "hunter2hunter2", From: "mcp@example.com", Roots: roots}

	login.Address = address
	if err := sender(t, login).Send(t.Context(), "a@example.com", "x", "x", ""); err != nil {
		t.Fatal(err)
	}
	if got := server.Passwords(); len(got) != 1 || got[0] != login.Password {
		t.Errorf("got %q", got)
	}
	for name, c := range map[string]mail.Config{
		"a server without TLS":       {Address: local(smtptest.Start(t, nil)), Roots: roots},
		"an unknown certificate":     {Address: address},
		"a certificate for a name":   {Address: server.Address, Roots: roots},
		"a server that has no AUTH":  {Address: local(smtptest.Start(t, nil)), Roots: roots, TLS: mail.STARTTLS},
		"a server that does not TLS": {Address: local(smtptest.Start(t, nil)), Roots: roots, TLS: mail.Implicit},
	} {
		t.Run(name, func(t *testing.T) {
			c.Username, c.Password, c.From = login.Username, login.Password, login.From
			if err := sender(t, c).Send(t.Context(), "a@example.com", "x", "x", ""); err == nil {
				t.Error("it was sent")
			}
		})
	}
	if strings.Contains(server.InClear(), "AUTH") {
		t.Errorf("in clear: %s", server.InClear())
	}
}

func TestPE16WhatTheServerRefusesIsNotSentAgain(t *testing.T) {
	server := smtptest.Start(t, nil)
	s := sender(t, mail.Config{Address: server.Address, TLS: mail.None, From: "mcp@example.com"})
	for answer, want := range map[string]bool{"550 no such person": true, "451 later": false} {
		server.Answer(answer)
		err := s.Send(t.Context(), "a@example.com", "x", "x", "")
		if err == nil || errors.Is(err, mail.ErrRefused) != want {
			t.Errorf("%s: got %v", answer, err)
		}
	}
}

func TestPE16AMisfitOfTheConfigurationIsNamed(t *testing.T) {
	good := mail.Config{Address: "smtp.example.com:587", From: "mcp@example.com"}
	for want, change := range map[string]func(*mail.Config){
		"address: ":  func(c *mail.Config) { c.Address = "smtp.example.com" },
		"from: ":     func(c *mail.Config) { c.From = "a@example.com\nX: y" },
		"username: ": func(c *mail.Config) { c.Password = "x" },
		"password: ": func(c *mail.Config) { c.Username = "x" },
		"tls: a password is not sent without TLS": func(c *mail.Config) {
			c.Username, c.Password, c.TLS = "x", "x", mail.None
		},
		"tls: \"maybe\"": func(c *mail.Config) { c.TLS = "maybe" },
	} {
		c := good
		change(&c)
		if _, err := mail.New(c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func sender(t *testing.T, c mail.Config) *mail.Sender {
	t.Helper()
	s, err := mail.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
