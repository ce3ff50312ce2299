package admin

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/mail"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestLetter is the address of a test mail.
type TestLetter struct {
	Mail string `json:"mail" jsonschema:"the address, such as alice@example.com"`
}

// LetterSent is a mail that the mail server accepted.
type LetterSent struct {
	Mail   string    `json:"mail"`
	Server string    `json:"server" jsonschema:"the mail server, under mail.smtp.address"`
	SentAt time.Time `json:"sent_at"`
}

// MailTest sends a test mail.
var MailTest = define(Spec{
	Name: "mail test", Method: "POST", Path: "/mail/test", Fresh: true,
	Summary: "Send a test mail",
	Details: "Sends a test mail, and reports the answer of the mail server (mail.smtp). You can send ten within an\n" +
		"hour, three of them to one address. health show and doctor sign in to the mail server without\n" +
		"sending anything.",
}, (*Service).testMail)

// The limits of test mails, over all replicas and commands, so that they cannot be used to flood
// mailboxes.
const (
	testLetterSpan   = time.Hour
	maxTestLetters   = 10
	maxTestLettersTo = 3
)

func (s *Service) testMail(ctx context.Context, in TestLetter) (LetterSent, error) {
	smtp := s.Config.Mail.SMTP
	if !smtp.Configured() || s.Notifier == nil {
		return LetterSent{}, fault(ErrConflict, "there is no mail server: set mail.smtp.address and mail.smtp.from")
	}
	to, err := mail.ParseAddress(in.Mail)
	if err != nil {
		return LetterSent{}, fault(ErrInvalid, "%q is not an address such as alice@example.com", in.Mail)
	}
	if err := s.mayTestMail(ctx, to); err != nil {
		return LetterSent{}, err
	}
	err = s.Notifier.Test(ctx, to, s.localeOf(ctx))
	s.mailCheck.forget()
	outcome := "sent"
	if err != nil {
		outcome = "failed"
	}
	s.Audit.Record(ctx, audit.MailTested, slog.String("to", to), slog.String("outcome", outcome))
	if why := (*mail.Fault)(nil); errors.As(err, &why) {
		return LetterSent{}, fault(ErrConflict, "the letter was not sent. %s. What to do: %s", why.What, why.Advice)
	}
	return LetterSent{Mail: to, Server: smtp.Address, SentAt: s.Now().UTC()}, err
}

// mayTestMail takes one mail from the allowances, or returns ErrUnavailable.
func (s *Service) mayTestMail(ctx context.Context, to string) error {
	waits, err := s.Store.TakeAllowances(ctx, []storage.Draw{
		{Key: secrets.Hash("test letters"), Cost: testLetterSpan / maxTestLetters, Span: testLetterSpan},
		{
			Key:  secrets.Hash("test letters\x00" + strings.ToLower(to)),
			Cost: testLetterSpan / maxTestLettersTo, Span: testLetterSpan,
		},
	}, s.Now())
	if err != nil || waits == nil {
		return err
	}
	what := label.Count(maxTestLetters, "test letter was", "test letters were") + " sent"
	if waits[1] > waits[0] {
		what = label.Count(maxTestLettersTo, "test letter was", "test letters were") + " sent to " + to
	}
	return fault(ErrUnavailable, "%s within an hour; try again in %s", what, max(waits[0], waits[1]).Round(time.Second))
}

// localeOf returns the language of the calling user, or "".
func (s *Service) localeOf(ctx context.Context) string {
	a, _ := ctx.Value(actorKey{}).(Actor)
	if a.UserID == "" {
		return ""
	}
	u, err := s.Store.User(ctx, a.UserID)
	if err != nil {
		return ""
	}
	return u.Locale
}

// mailCheckedFor is how long the result of a mail server check is cached. A page that reloads
// itself must not sign in there every time, because mail providers lock accounts after wrong
// passwords.
const mailCheckedFor = 5 * time.Minute

// mailCheck caches the result of the last sign-in at the mail server.
type mailCheck struct {
	mu   sync.Mutex // also held during the check
	at   time.Time  // zero if not checked yet
	last error
}

func (m *mailCheck) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = time.Time{}
}

func (m *mailCheck) load(ctx context.Context, now time.Time, sender *mail.Sender) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if age := now.Sub(m.at); m.at.IsZero() || age < 0 || age >= mailCheckedFor {
		m.at, m.last = now, sender.Check(context.WithoutCancel(ctx))
	}
	return m.last
}

// MailFindings reports whether mail can be sent. It signs in at the mail server without sending a
// mail.
func (s *Service) MailFindings(ctx context.Context) (f findings, _ error) {
	smtp := s.Config.Mail.SMTP
	if !smtp.Configured() {
		f.add("mail", LevelSkipped, "to send invitations, notices and new passwords, set mail.smtp",
			"no mail server is configured")
		return f, nil
	}
	sender, err := smtp.Sender()
	if err != nil {
		f.add("mail", LevelFail, "", "mail.smtp: %s", err)
		return f, nil
	}
	switch err, why := s.mailCheck.load(ctx, s.Now(), sender), (*mail.Fault)(nil); {
	case errors.As(err, &why):
		f.add("mail", LevelFail, why.Advice, "%s", why.What)
	case err != nil:
		return nil, err
	default:
		f.add("mail", LevelOK, "", "the mail server %s can be used; mail test sends a letter", smtp.Address)
	}
	return f, nil
}
