package admin_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/mail"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/smtptest"
)

// mailService returns a service with a mail server, and its clock.
func mailService(t *testing.T, server *smtptest.Server) (*admin.Service, *installation.Installation, *time.Time) {
	t.Helper()
	in := installation.New(t)
	at := time.Now()
	s := &admin.Service{
		Store: in.Store, Audit: in.Audit, FreshFor: admin.FreshFor, Now: func() time.Time { return at },
		Config: &config.Loaded{Config: &config.Config{Issuer: "https://mcp.example.com"}},
	}
	if server != nil {
		s.Config.Mail.SMTP = config.SMTP{Address: server.Address, TLS: string(mail.None), From: "mcp@example.com"}
		sender, err := s.Config.Mail.SMTP.Sender()
		if err != nil {
			t.Fatal(err)
		}
		s.Notifier = notice.New(notice.Config{Store: in.Store, Issuer: s.Config.Issuer, Mailer: sender})
	}
	return s, in, &at
}

func testLetter(t *testing.T, by admin.Caller, to string) error {
	t.Helper()
	_, err := admin.MailTest.Do(t.Context(), by, admin.TestLetter{Mail: to})
	return err
}

// TestOB10MailTest checks that only an administrator can send a test mail, and that the audit log
// records it.
func TestOB10MailTest(t *testing.T) {
	server := smtptest.Start(t, nil)
	s, in, _ := mailService(t, server)
	for _, a := range []admin.Actor{
		{Role: admin.Support, Proved: s.Now()}, {Role: admin.Auditor, Proved: s.Now()}, {Proved: s.Now()},
	} {
		if err := testLetter(t, s.As(a), "bob@example.com"); !errors.Is(err, admin.ErrForbidden) {
			t.Errorf("OB-10: the role %q: %v", a.Role, err)
		}
	}
	ann := admin.Actor{Role: admin.Administrator}
	if err := testLetter(t, s.As(ann), "bob@example.com"); !same(err, &admin.StaleError{}) {
		t.Errorf("OB-10: without a fresh proof: %v", err)
	}
	ann.Proved = s.Now()
	if err := testLetter(t, s.As(ann), "bob@example.com"); err != nil {
		t.Fatal(err)
	}
	got := server.Await(t, 1)
	if len(got) != 1 || got[0].To != "bob@example.com" || !strings.Contains(got[0].Text, "https://mcp.example.com") {
		t.Errorf("OB-10: the letter: %+v", got)
	}
	if log := in.Log.String(); !strings.Contains(log, "mail.tested") || !strings.Contains(log, "bob@example.com") {
		t.Errorf("OB-10: the log: %s", log)
	}
	for _, to := range []string{"", "bob", "bob@example.com, eve@example.com", "a@example.com\r\nBcc: b@example.com"} {
		if err := testLetter(t, s.Operator(), to); !errors.Is(err, admin.ErrInvalid) {
			t.Errorf("OB-10: %q: %v", to, err)
		}
	}
}

// TestOB10MailTestIsBounded checks the limits of three mails to one address and ten in total per
// hour, for all callers together.
func TestOB10MailTestIsBounded(t *testing.T) {
	server := smtptest.Start(t, nil)
	s, _, at := mailService(t, server)
	for i, to := range []string{"bob@example.com", "BOB@example.com", "bob@EXAMPLE.com"} {
		if err := testLetter(t, s.Operator(), to); err != nil {
			t.Fatal(i, err)
		}
	}
	err := testLetter(t, s.Operator(), "bob@example.com")
	if !errors.Is(err, admin.ErrUnavailable) || !strings.Contains(err.Error(), "try again in 20m") {
		t.Errorf("OB-10: the fourth letter to one address: %v", err)
	}
	for i := range 7 {
		if err := testLetter(t, s.Operator(), strings.Repeat("x", i+1)+"@example.com"); err != nil {
			t.Fatal(i, err)
		}
	}
	if err = testLetter(t, s.Operator(), "eve@example.com"); !errors.Is(err, admin.ErrUnavailable) {
		t.Errorf("OB-10: the eleventh letter: %v", err)
	}
	if n := len(server.Mails()); n != 10 {
		t.Errorf("OB-10: %d letters were sent", n)
	}
	*at = at.Add(21 * time.Minute)
	if err := testLetter(t, s.Operator(), "bob@example.com"); err != nil {
		t.Errorf("OB-10: later: %v", err)
	}
}

// TestOB10MailFindings checks that health shows whether the mail server works, and connects to it
// once in five minutes.
func TestOB10MailFindings(t *testing.T) {
	look := func(s *admin.Service) admin.Finding {
		t.Helper()
		found, err := s.MailFindings(t.Context())
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		return found[0]
	}
	none, _, _ := mailService(t, nil)
	if got := look(none); got.Level != admin.LevelSkipped || got.Advice == "" {
		t.Errorf("OB-10: without a mail server: %+v", got)
	}
	if err := testLetter(t, none.Operator(), "bob@example.com"); !errors.Is(err, admin.ErrConflict) {
		t.Errorf("OB-10: a letter without a mail server: %v", err)
	}
	server := smtptest.Start(t, nil)
	s, in, at := mailService(t, server)
	if got := look(s); got.Level != admin.LevelOK {
		t.Errorf("OB-10: %+v", got)
	}
	server.Stop()
	if got := look(s); got.Level != admin.LevelOK {
		t.Errorf("OB-10: the answer of a moment ago is shown: %+v", got)
	}
	*at = at.Add(5 * time.Minute)
	if got := look(s); got.Level != admin.LevelFail || !strings.Contains(got.What, "cannot be reached") ||
		!strings.Contains(got.Advice, "mail.smtp.address") {
		t.Errorf("OB-10: the server is gone: %+v", got)
	}
	err := testLetter(t, s.Operator(), "bob@example.com")
	if !errors.Is(err, admin.ErrConflict) || !strings.Contains(err.Error(), "mail.smtp.address") {
		t.Errorf("OB-10: a letter to a server that is gone: %v", err)
	}
	if log := in.Log.String(); !strings.Contains(log, `"outcome":"failed"`) {
		t.Errorf("OB-10: the log: %s", log)
	}
	s.Config.Mail.SMTP.Address = smtptest.Start(t, nil).Address
	if got := look(s); got.Level != admin.LevelOK {
		t.Errorf("OB-10: a test letter has the mail server asked again: %+v", got)
	}
}
