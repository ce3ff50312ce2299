// Package mail sends mail through the operator's SMTP server.
package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"strconv"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"
)

// Config configures a Sender. Address and From are required.
type Config struct {
	Address string // host:port
	// TLS is STARTTLS (the default: the connection must be encrypted before mail is sent),
	// Implicit, or None for a relay on this machine or its network.
	TLS                TLS
	Username, Password string // "": no authentication
	From               string // such as "Example <mcp@example.com>"
	// Roots are the roots for verifying the server certificate. Default: the system's.
	Roots *x509.CertPool
}

// TLS selects how a connection is encrypted.
type TLS string

// These are the ways to encrypt. None is for a server that trusts the network; it allows no
// password.
const (
	STARTTLS TLS = "starttls"
	Implicit TLS = "tls"
	None     TLS = "none"
)

// Sender sends mail. It is safe for concurrent use.
type Sender struct {
	host    string
	from    *netmail.Address
	options []gomail.Option
	secrets []string // must not appear in errors
}

const sendTime = 20 * time.Second

// New returns a Sender, or an error that names the fault in the configuration.
func New(c Config) (*Sender, error) {
	host, port, err := address(c.Address)
	if err != nil {
		return nil, err
	}
	from, err := netmail.ParseAddress(c.From)
	if err != nil {
		return nil, fmt.Errorf("from: %q is not an address such as mcp@example.com", c.From)
	}
	s := &Sender{host: host, from: from, secrets: forms(c.Username, c.Password), options: []gomail.Option{
		gomail.WithPort(port), gomail.WithTimeout(sendTime), gomail.WithoutNoop(),
		gomail.WithTLSConfig(&tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, RootCAs: c.Roots}),
	}}
	switch c.TLS {
	case STARTTLS, "":
		s.options = append(s.options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	case Implicit:
		s.options = append(s.options, gomail.WithSSL())
	case None:
		s.options = append(s.options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		return nil, fmt.Errorf("tls: %q is not one of %s, %s, %s", c.TLS, STARTTLS, Implicit, None)
	}
	switch {
	case c.Username == "" && c.Password != "":
		return nil, errors.New("username: is missing, and there is a password")
	case c.Username != "" && c.Password == "":
		return nil, errors.New("password: is missing, and there is a username")
	case c.Username != "" && c.TLS == None: // RFC 4954 §4: only with an encryption layer
		return nil, errors.New("tls: a password is not sent without TLS; set tls to starttls or tls")
	case c.Username != "":
		s.options = append(s.options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover),
			gomail.WithUsername(c.Username), gomail.WithPassword(c.Password))
	}
	return s, nil
}

func address(s string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(s)
	if err == nil {
		port, err = strconv.Atoi(number)
	}
	if err != nil || host == "" || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("address: %q is not a server such as smtp.example.com:587", s)
	}
	return host, port, nil
}

// ErrRefused means that sending the message again would not help.
var ErrRefused = errors.New("mail: refused")

// ParseAddress returns s if it is exactly one plain address without a name, and ErrRefused
// otherwise.
func ParseAddress(s string) (string, error) {
	a, err := netmail.ParseAddress(s)
	if err != nil || a.Name != "" || a.Address != s || len(s) > 254 || hasControl(s) {
		return "", fmt.Errorf("%w: %q is not an address such as alice@example.com", ErrRefused, s)
	}
	return a.Address, nil
}

// Send delivers one message in plain text and HTML to the server (PE-16). It returns ErrRefused if
// another attempt would not help. An error of the server is a [*Fault].
func (s *Sender) Send(ctx context.Context, to, subject, text, html string) error {
	m, err := s.compose(to, subject, text, html)
	if err != nil {
		return err
	}
	c, err := gomail.NewClient(s.host, s.options...)
	if err != nil {
		return fmt.Errorf("mail: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	err = c.DialAndSendWithContext(ctx, m)
	var refused *gomail.SendError
	if errors.As(err, &refused) && !refused.IsTemp() && refused.ErrorCode() >= 500 {
		return fmt.Errorf("%w: %w", ErrRefused, s.fault(err))
	}
	if err != nil {
		return s.fault(err)
	}
	return nil
}

// compose builds the message. A line end in an address or subject would start another header (RFC
// 5322 §2.2), so compose does not allow it.
func (s *Sender) compose(to, subject, text, html string) (*gomail.Msg, error) {
	if _, err := ParseAddress(to); err != nil {
		return nil, err
	}
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	m.FromMailAddress(s.from)
	if err := m.To(to); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	m.Subject(strings.Map(printable, subject))
	m.SetDate()
	m.SetMessageID()
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834 §5: prevents automatic replies
	m.SetBodyString(gomail.TypeTextPlain, text)
	if html != "" {
		m.AddAlternativeString(gomail.TypeTextHTML, html)
	}
	return m, nil
}

func printable(r rune) rune {
	if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
		return ' '
	}
	return r
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }
