// Package notice notifies users of changes to their accounts: in the audit log, at their next
// visit, and by mail. It notifies administrators with a webhook. A notification never fails or
// delays the change.
package notice

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/text"
)

// Store is the part of a store that this package needs.
type Store interface {
	storage.Notices
	User(ctx context.Context, id string) (storage.User, error)
}

// Mailer sends one message. It is usually a mail.Sender.
type Mailer interface {
	Send(ctx context.Context, to, subject, text, html string) error
}

// Hook delivers one event to the administrator. It is usually a Webhook.
type Hook interface {
	Post(ctx context.Context, e Event) error
}

// Config configures a Notifier. Store and Issuer are required.
type Config struct {
	Store  Store
	Issuer string
	// Product is the name of this server in mails. Default: "mcp-authd".
	Product string
	// Texts returns the texts of mails. Default: the built-in texts.
	Texts  func() (*text.Catalogues, error)
	Mailer Mailer // nil without mail
	Hook   Hook   // nil without a webhook
	Audit  *audit.Recorder
	Logger *slog.Logger
	Now    func() time.Time
	// Sleep waits between attempts, or returns the context's error. Default: a timer.
	Sleep func(context.Context, time.Duration) error
}

// Notifier notifies users. It is safe for concurrent use. A nil Notifier does nothing.
type Notifier struct {
	cfg   Config
	mail  *queue[Letter]
	hooks *queue[Event]
}

// New returns a Notifier.
func New(c Config) *Notifier {
	if c.Product == "" {
		c.Product = "mcp-authd"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Texts == nil {
		c.Texts = sync.OnceValues(func() (*text.Catalogues, error) { return text.Load(nil) })
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	t := &Notifier{cfg: c}
	t.mail = newQueue(c.Sleep, Letter.destination, t.send,
		func(l Letter, err error) { t.lost("mail", l.UserID, err) })
	t.hooks = newQueue(c.Sleep, Event.destination, t.post,
		func(e Event, err error) { t.lost("webhook", e.UserID, err) })
	return t
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Change is a change to an account.
type Change struct {
	Kind   Kind
	Detail string // the changed object, such as the name of a passkey; may be ""
}

// Event is a change as sent to the administrator.
type Event struct {
	ID     string    `json:"id"` // the same in each attempt
	Kind   Kind      `json:"kind"`
	At     time.Time `json:"at"`
	Issuer string    `json:"issuer"`
	UserID string    `json:"user"`
	Name   string    `json:"user_name,omitempty"`
	Detail string    `json:"detail,omitempty"`
}

func (e Event) destination() destination { return destination{person: e.UserID, kind: string(e.Kind)} }

// From returns the detail of RecoverLinkMade: the time when the link becomes valid.
func From(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// Moment parses such a detail. It also accepts the form of servers that had no translated mails.
func Moment(detail string) (at time.Time, ok bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04 UTC", "good from 2006-01-02 15:04 UTC"} {
		if at, err := time.Parse(layout, detail); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// keepTime limits the writing of a notice.
const keepTime = 5 * time.Second

// maxDetail limits a detail chosen by users or applications, in bytes. Both names of a renamed
// authentication method fit.
const maxDetail = 400

// Tell records a change (PE-04), stores it for the user's next visit, and queues it for mail and
// webhook. It continues after the caller's request has ended.
func (t *Notifier) Tell(ctx context.Context, userID string, c Change) { t.tell(ctx, userID, c, "") }

// TellOfRecovery is Tell for a recovery link. The mail says how to stop it, with stopURL.
func (t *Notifier) TellOfRecovery(ctx context.Context, userID string, c Change, stopURL string) {
	t.tell(ctx, userID, c, stopURL)
}

func (t *Notifier) tell(ctx context.Context, userID string, c Change, stopURL string) {
	if t == nil {
		return
	}
	c.Detail = plain(c.Detail)
	t.cfg.Audit.Record(ctx, audit.AccountChanged, slog.String("user", userID), slog.String("what", string(c.Kind)),
		slog.String("detail", c.Detail))
	e := Event{
		ID: secrets.ID("ntc_"), Kind: c.Kind, At: t.cfg.Now().UTC().Truncate(time.Millisecond), Issuer: t.cfg.Issuer,
		UserID: userID, Detail: c.Detail,
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer cancel()
	err := t.cfg.Store.PutNotice(ctx, storage.Notice{
		ID: e.ID, UserID: userID, Kind: string(c.Kind), Detail: c.Detail, At: e.At,
	})
	if err != nil {
		t.lost("account page", userID, err)
	}
	if t.cfg.Hook != nil {
		t.hooks.add(e)
	}
	if t.cfg.Mailer != nil {
		t.mail.add(Letter{UserID: userID, event: &e, stopURL: stopURL})
	}
}

// Write queues a mail that is not about a change, such as one with a requested link.
func (t *Notifier) Write(l Letter) {
	if t.HasMail() {
		t.mail.add(l)
	}
}

// HasMail reports whether mail can be sent.
func (t *Notifier) HasMail() bool { return t != nil && t.cfg.Mailer != nil }

// SendNow delivers a mail in a single attempt, and returns its error.
func (t *Notifier) SendNow(ctx context.Context, l Letter) error {
	if !t.HasMail() {
		return errors.New("notice: mail is not configured")
	}
	return t.send(ctx, l)
}

// Unseen returns the notices that a user has not seen, newest first.
func (t *Notifier) Unseen(ctx context.Context, userID string) ([]storage.Notice, error) {
	return t.cfg.Store.UnseenNotices(ctx, userID)
}

// See marks notices of a user as seen.
func (t *Notifier) See(ctx context.Context, userID string, ids []string) error {
	return t.cfg.Store.SeeNotices(ctx, userID, ids, t.cfg.Now())
}

// Drain waits until all notices are delivered, or ctx ends. The rest is then lost.
func (t *Notifier) Drain(ctx context.Context) {
	if t == nil {
		return
	}
	t.mail.drain(ctx)
	t.hooks.drain(ctx)
}

func (t *Notifier) post(ctx context.Context, e Event) error {
	if user, err := t.cfg.Store.User(ctx, e.UserID); err == nil {
		e.Name = user.Name
	}
	return t.cfg.Hook.Post(ctx, e)
}

func (t *Notifier) lost(by, userID string, err error) {
	t.cfg.Audit.Record(context.Background(), audit.NoticeLost, slog.String("user", userID), slog.String("by", by),
		slog.String("reason", err.Error()))
}

// plain returns a name for a line of text, without line breaks or characters that change the
// direction of the text around it.
func plain(s string) string {
	return cut(strings.Map(func(r rune) rune {
		switch {
		case unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s))
}

func cut(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	n := maxDetail
	for n > 0 && s[n]&0xC0 == 0x80 { // not within a character
		n--
	}
	return s[:n] + "…"
}
