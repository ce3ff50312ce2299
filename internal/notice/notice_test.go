package notice_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mail"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/smtptest"
)

const secret = "0123456789abcdef0123456789abcdef"

// TestPE04AChangeIsToldEverywhere checks the audit log, the next visit, mail and webhook.
func TestPE04AChangeIsToldEverywhere(t *testing.T) {
	r := newRig(t)
	got := make(chan *http.Request, 1)
	bodies := make(chan []byte, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		got <- req
		bodies <- b
	}))
	defer hook.Close()
	r.cfg.Hook = notice.NewWebhook(hook.URL, secret, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	notifier := notice.New(r.cfg)
	notifier.Tell(t.Context(), "usr_1", notice.Change{Kind: notice.WayAdded, Detail: "Anna's phone\r\nBcc: x\u202e"})
	notifier.Drain(t.Context())

	const detail, told = "Anna's phone  Bcc: x", "What: “Anna's phone Bcc: x” (this name has not been verified)"
	unseen, err := notifier.Unseen(t.Context(), "usr_1")
	if err != nil || len(unseen) != 1 || unseen[0].Kind != "way-added" || unseen[0].Detail != detail {
		t.Fatalf("got %v, %v", unseen, err)
	}
	m := r.smtp.Await(t, 1)[0]
	if m.To != "anna@example.com" || m.Subject() != "mcp-authd: A new way to sign in was added" ||
		!strings.Contains(m.Text, told) || !strings.Contains(m.HTML, "Anna&#39;s phone") ||
		!strings.Contains(m.Text, "https://mcp.example.com/account/notices") {
		t.Errorf("got %s", m.Raw)
	}
	req, body := <-got, <-bodies
	stamp, signature, _ := strings.Cut(strings.TrimPrefix(req.Header.Get(safehttp.SignatureHeader), "t="), ",v1=")
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s", stamp, body)
	if signature != hex.EncodeToString(mac.Sum(nil)) {
		t.Errorf("the signature %q is not that of %s", signature, body)
	}
	var e notice.Event
	err = json.Unmarshal(body, &e)
	if err != nil || e.ID != unseen[0].ID || e.Name != "anna" || e.Kind != "way-added" {
		t.Errorf("got %s, %v", body, err)
	}
	if log := r.Log.String(); !strings.Contains(log, `"event":"account.changed"`) ||
		!strings.Contains(log, `"what":"way-added"`) {
		t.Errorf("the audit says %s", log)
	}
	if err := notifier.See(t.Context(), "usr_1", []string{unseen[0].ID}); err != nil {
		t.Fatal(err)
	}
	if unseen, err = notifier.Unseen(t.Context(), "usr_1"); err != nil || len(unseen) != 0 {
		t.Errorf("got %v, %v", unseen, err)
	}
}

// TestPE04TellingFailsNoRequest checks that a failing store, mail server and webhook, and a
// canceled caller, do no harm.
func TestPE04TellingFailsNoRequest(t *testing.T) {
	r := newRig(t)
	r.cfg.Mailer = failing{}
	r.cfg.Hook = notice.NewWebhook("http://127.0.0.1:1/", secret, nil)
	notifier := notice.New(r.cfg)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	notifier.Tell(gone, "usr_1", notice.Change{Kind: notice.KeyMade})
	notifier.Tell(gone, "usr_none", notice.Change{Kind: notice.KeyMade})
	notifier.Drain(t.Context())
	if unseen, err := notifier.Unseen(t.Context(), "usr_1"); err != nil || len(unseen) != 1 {
		t.Errorf("got %v, %v", unseen, err)
	}
	for _, by := range []string{"mail", "webhook", "account page"} {
		if !strings.Contains(r.Log.String(), `"by":"`+by+`"`) {
			t.Errorf("that it was lost by %s is not logged", by)
		}
	}
	var none *notice.Notifier
	none.Tell(t.Context(), "usr_1", notice.Change{Kind: notice.KeyMade})
	none.Drain(t.Context())
}

// TestPE04WhatFailsIsSentAgainAFewTimes checks that a failed delivery is retried a few times, and a
// refused one is not.
func TestPE04WhatFailsIsSentAgainAFewTimes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{{errors.New("later"), 4}, {mail.ErrRefused, 1}} {
		r := newRig(t)
		m := &counting{err: c.err}
		r.cfg.Mailer = m
		notifier := notice.New(r.cfg)
		notifier.Tell(t.Context(), "usr_1", notice.Change{Kind: notice.KeyMade})
		notifier.Drain(t.Context())
		if m.count() != c.want {
			t.Errorf("%v: got %d attempts, want %d", c.err, m.count(), c.want)
		}
	}
}

// TestPE04TheQueueIsBounded checks that a hanging mail server blocks nobody, and that excess mails
// are dropped.
func TestPE04TheQueueIsBounded(t *testing.T) {
	r := newRig(t)
	r.cfg.Mailer = hanging{}
	notifier := notice.New(r.cfg)
	for range 300 {
		notifier.Tell(t.Context(), "usr_1", notice.Change{Kind: notice.KeyMade})
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	notifier.Drain(gone)
	if n := strings.Count(r.Log.String(), `"event":"notice.lost"`); n != 300 {
		t.Errorf("got %d lost, want 300", n)
	}
}

// TestPE04TheWebhookReachesNoInnerNetwork checks that private networks are refused unless
// configured.
func TestPE04TheWebhookReachesNoInnerNetwork(t *testing.T) {
	reached := make(chan bool, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached <- true }))
	defer hook.Close()
	err := notice.NewWebhook(hook.URL, secret, nil).Post(t.Context(), notice.Event{ID: "x"})
	if err == nil || !strings.Contains(err.Error(), "address refused") {
		t.Errorf("got %v", err)
	}
	select {
	case <-reached:
		t.Error("it was reached")
	default:
	}
}

// TestPE04NamesInLettersSayNothingInOurWords checks names chosen by an application, by a thief who
// adds an authentication method, or by a program on another device. A mail must quote and truncate
// them, call them unverified, and link nothing in them.
func TestPE04NamesInLettersSayNothingInOurWords(t *testing.T) {
	r := newRig(t)
	notifier := notice.New(r.cfg)
	for i, c := range []struct {
		kind       notice.Kind
		name, want string
	}{
		{notice.Resumed, "Nothing to do. Not you? Call +1 555 0100 or open https://evil.example/help now",
			"“Nothing to do. Not you? Call +1 555 01……”"},
		{notice.KeyMade, "Call +1 (555) 0100-22 now", "“Call +1 (555) 01…- now”"},
		{notice.WayAdded, "Phone” (verified). See https://evil.example", "“Phone (verified). See https: / / evil. exam…”"},
		{notice.KeyMade, "evil.example/help a@evil.example", "“evil. example/ help a@ evil. example”"},
		{notice.WayRemoved, "YubiKey 5.1 (2026)", "“YubiKey 5.1 (2026)”"},
		{notice.WayRenamed, notice.Renamed("Phone", "www.evil.example"), "“Phone → www. evil. example”"},
		{notice.RemoteSignIn, "evil.com", "“evil. com”"},
		{notice.RemoteSignIn, "Firefox on Linux", "“Firefox on Linux”"},
	} {
		notifier.Tell(t.Context(), "usr_1", notice.Change{Kind: c.kind, Detail: c.name})
		notifier.Drain(t.Context())
		m := r.smtp.Await(t, i+1)[i]
		if want := "What: " + c.want + " (this name has not been verified)"; !strings.Contains(m.Text, want) {
			t.Errorf("%s: got %s, want %s", c.kind, m.Text, want)
		}
	}
	notifier.Tell(t.Context(), "usr_1", notice.Change{Kind: notice.AccountConnected, Detail: "Google"})
	notifier.Drain(t.Context())
	if m := r.smtp.Await(t, 9)[8]; !strings.Contains(m.Text, "What: Google\n") {
		t.Errorf("a name by the operator: got %s", m.Text)
	}
}

// TestPE13LettersAreInTheLanguageOfThePerson checks the mails of all kinds, and that a name in
// another direction reorders nothing.
func TestPE13LettersAreInTheLanguageOfThePerson(t *testing.T) {
	r := newRig(t)
	notifier := notice.New(r.cfg)
	const name = "\u05d8\u05dc\u05e4\u05d5\u05df"
	subjects := map[string]bool{}
	tags := []string{"", "de", "fr", "es", "pt", "ja", "zh"}
	for i, tag := range tags {
		if err := r.cfg.Store.(storage.Locales).SetLocale(t.Context(), "usr_1", tag); err != nil {
			t.Fatal(err)
		}
		notifier.Tell(t.Context(), "usr_1", notice.Change{Kind: notice.WayAdded, Detail: name})
		notifier.Drain(t.Context())
		m := r.smtp.Await(t, i+1)[i]
		subjects[m.Subject()] = true
		if tag == "" {
			tag = "en"
		}
		if !strings.Contains(m.HTML, `<html lang="`+tag+`">`) ||
			strings.Contains(m.Text, "Account:") != (tag == "en") ||
			!strings.Contains(m.HTML, "<bdi>"+name+"</bdi>") {
			t.Errorf("%s: got %s %s", tag, m.Text, m.HTML)
		}
	}
	if len(subjects) != len(tags) {
		t.Errorf("got %v", subjects)
	}
}

func TestPE04APersonWithoutAnAddressIsToldAtTheNextVisit(t *testing.T) {
	r := newRig(t)
	m := &counting{}
	r.cfg.Mailer = m
	notifier := notice.New(r.cfg)
	notifier.Tell(t.Context(), "usr_2", notice.Change{Kind: notice.KeyMade})
	notifier.Drain(t.Context())
	if unseen, err := notifier.Unseen(t.Context(), "usr_2"); err != nil || len(unseen) != 1 || m.count() != 0 {
		t.Errorf("got %v, %v and %d letters", unseen, err, m.count())
	}
}

type rig struct {
	*installation.Installation
	cfg  notice.Config
	smtp *smtptest.Server
}

func newRig(t *testing.T) rig {
	t.Helper()
	r := rig{Installation: installation.New(t), smtp: smtptest.Start(t, nil)}
	for _, u := range []storage.User{
		{ID: "usr_1", Name: "anna", Mail: "anna@example.com"}, {ID: "usr_2", Name: "berta"},
	} {
		u.CreatedAt = r.Now()
		if err := r.Store.CreateUser(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	sender, err := mail.New(mail.Config{Address: r.smtp.Address, TLS: mail.None, From: "mcp@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	r.cfg = notice.Config{
		Store: r.Store, Issuer: "https://mcp.example.com", Mailer: sender, Audit: r.Audit,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
	return r
}

type failing struct{}

func (failing) Send(context.Context, string, string, string, string) error { return errors.New("down") }

type hanging struct{}

func (hanging) Send(ctx context.Context, _, _, _, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

type counting struct {
	err error
	mu  sync.Mutex
	n   int
}

func (c *counting) Send(context.Context, string, string, string, string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.err
}

func (c *counting) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
