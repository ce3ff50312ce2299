package mail

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"slices"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"
)

// Fault is the reason why a mail server could not be used, with advice for the operator.
type Fault struct {
	What   string // one line, without the password
	Advice string
	err    error
}

// Error implements error.
func (f *Fault) Error() string { return "mail: " + f.What }

// Unwrap returns the connection error.
func (f *Fault) Unwrap() error { return f.err }

// checkTime is the time limit for each step of Check.
const checkTime = 5 * time.Second

// Check connects to the mail server, encrypts the connection and signs in like Send, but sends no
// mail. Its error is a [*Fault].
func (s *Sender) Check(ctx context.Context) error {
	c, err := gomail.NewClient(s.host, append(slices.Clone(s.options), gomail.WithTimeout(checkTime))...)
	if err != nil {
		return s.fault(err)
	}
	conn, err := c.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return s.fault(err)
	}
	_ = c.CloseWithSMTPClient(conn) // the check has already succeeded
	return nil
}

// fault returns a Fault for the step that failed.
func (s *Sender) fault(err error) *Fault {
	f := &Fault{err: err}
	var refused *gomail.SendError
	var dial *net.OpError
	var answer *textproto.Error
	var timeout net.Error
	switch text := err.Error(); {
	case errors.As(err, &refused):
		f.What, f.Advice = "the mail server did not take the letter", adviceAbout(refused.Reason)
	case errors.As(err, &dial) && dial.Op == "dial":
		f.What = "the mail server cannot be reached"
		f.Advice = "check mail.smtp.address, and that the server runs and no firewall is between"
	case strings.Contains(text, "does not support STARTTLS"):
		f.What = "the mail server offers no STARTTLS"
		f.Advice = "set mail.smtp.tls to tls if the port expects TLS at once (465), or to none for a relay on this machine"
	case isTLS(err):
		f.What = "the connection to the mail server cannot be encrypted"
		f.Advice = "mail.smtp.address must have the name of the certificate; mail.smtp.tls is starttls for port 587, " +
			"and tls for port 465"
	case strings.Contains(text, "SMTP AUTH") || strings.Contains(text, "SMTP Auth"):
		f.What = "the mail server did not accept the sign-in"
		f.Advice = "check mail.smtp.username and mail.smtp.password; some providers want a password for applications"
	case errors.As(err, &timeout) && timeout.Timeout():
		f.What = "the mail server did not answer in time"
		f.Advice = "a port that expects TLS at once (465) needs mail.smtp.tls: tls"
	case errors.As(err, &answer):
		f.What = "the mail server refused the connection"
		f.Advice = "its answer says why"
	default:
		f.What = "the mail server ended the connection"
		f.Advice = "check that mail.smtp.address is a mail server for submission, usually port 587 or 465"
	}
	f.What += ": " + s.clean(err.Error())
	return f
}

func adviceAbout(r gomail.SendErrReason) string {
	switch r {
	case gomail.ErrSMTPMailFrom:
		return "set mail.smtp.from to an address from which this account may send"
	case gomail.ErrSMTPRcptTo:
		return "check the address of the person; a server that relays only for accounts needs mail.smtp.username"
	}
	return "its answer says why"
}

// isTLS reports whether err is about the handshake or the certificate.
func isTLS(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError)) ||
		errors.As(err, new(tls.AlertError)) || strings.Contains(err.Error(), "tls: ")
}

// maxAnswer is the maximum number of bytes to quote from a mail server's reply.
const maxAnswer = 300

// clean returns text as one line without the password, which a server may repeat.
func (s *Sender) clean(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "[password]")
	}
	text = strings.Join(strings.FieldsFunc(text, unicode.IsSpace), " ")
	text = strings.ToValidUTF8(strings.Map(printable, text), "")
	if len(text) > maxAnswer {
		text = strings.ToValidUTF8(text[:maxAnswer], "") + "…"
	}
	return text
}

// forms returns the encodings of a password that may be sent (RFC 4616, LOGIN, XOAUTH2).
func forms(username, password string) (out []string) {
	if password == "" {
		return nil
	}
	for _, text := range []string{
		"\x00" + username + "\x00" + password, password,
		fmt.Sprintf("user=%s\x01auth=Bearer %s\x01\x01", username, password),
	} {
		out = append(out, base64.StdEncoding.EncodeToString([]byte(text)))
	}
	return append(out, password)
}
