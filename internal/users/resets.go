package users

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/text"
)

// Reset is the request of a user who has forgotten their password.
type Reset struct {
	Issuer  string
	Browser storage.Hash // the link will be valid only in this browser
	From    Attempt      // the name and the caller, for counting; it has no password
}

// resetsOfNetwork limits the requests of one network, for any name, that one process handles.
var resetsOfNetwork = bounded.Rate{Every: time.Minute, Burst: 10}

// These limit the requests for one name during the lifetime of a link, over all replicas. Strangers
// cannot use up the requests of the user: each network has its own limit, and so has each known
// browser of the user. storage.MaxResets has room for two windows of strangers and of two known
// browsers.
const (
	resetsKnown  = 5                // for a known browser
	resetsNear   = 3                // for a network
	resetsOfName = 20               // for all unknown browsers
	resetsWindow = 15 * time.Minute // at least
)

const (
	maxResets   = 16 // concurrent requests
	resetTime   = 30 * time.Second
	limitedKeys = 10_000
)

// resets limits the work that strangers can cause.
type resets struct {
	slots   chan struct{}
	limiter *bounded.Limiter[storage.Hash]
}

func newResets(now func() time.Time) *resets {
	return &resets{
		slots:   make(chan struct{}, maxResets),
		limiter: bounded.NewLimiter[storage.Hash](limitedKeys, now),
	}
}

// HasMail reports whether the server can send mail to users.
func (u *Users) HasMail() bool { return u.cfg.Notifier.HasMail() }

// Forgotten sends a reset link to a user who has forgotten their password, if the named account has
// a mail address. It returns when the link will expire. It returns before it looks up the account,
// so that a stranger learns nothing, not even from the response time (PE-08).
func (u *Users) Forgotten(ctx context.Context, r Reset) (until time.Time) {
	until = u.cfg.Now().Add(u.cfg.Links.ResetTTL)
	wait := u.resets.limiter.Take(
		bounded.Draw[storage.Hash]{Key: key("reset network", r.From.Network), Rate: resetsOfNetwork},
	)
	if wait > 0 || !u.HasMail() || !identifier.WellFormed(r.From.Name) {
		return until
	}
	select {
	case u.resets.slots <- struct{}{}:
	default:
		return until
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resetTime)
	go func() {
		defer func() { <-u.resets.slots }()
		defer cancel()
		if err := u.reset(ctx, r, until); err != nil {
			u.cfg.Audit.Record(ctx, audit.LinkRefused, slog.String("kind", string(storage.LinkReset)),
				slog.String("reason", err.Error()))
		}
	}()
	return until
}

// reset creates the link and queues the mail.
func (u *Users) reset(ctx context.Context, r Reset, until time.Time) error {
	if err := u.admit(ctx, r.From); err != nil {
		return err
	}
	account, err := u.cfg.Store.UserByName(ctx, r.From.Name)
	if err != nil {
		return err
	}
	if account.Mail == "" {
		return fmt.Errorf("users: reset: the account has no address")
	}
	now := u.cfg.Now()
	made, err := u.put(ctx, r.Issuer, storage.OneTimeLink{
		Kind: storage.LinkReset, UserID: account.ID, Browser: r.Browser,
		NotBefore: now, ExpiresAt: until, CreatedAt: now,
	})
	if err != nil {
		return err
	}
	u.cfg.Notifier.Write(notice.Letter{
		To: account.Mail, Locale: account.Locale, Subject: text.Say("letter.reset"),
		Lines: []text.Sentence{
			text.Say("letter.account", "name", account.Name, "server", r.Issuer),
			text.Say("letter.reset_text", "time", made.ExpiresAt),
		},
		Link: made.URL,
	})
	return nil
}

var errResets = errors.New("users: reset: too many were asked for")

// admit counts a request and returns errResets if there are too many. A request that is refused for
// its network does not count for the name.
func (u *Users) admit(ctx context.Context, a Attempt) error {
	name := strings.ToLower(a.Name)
	if a.known() {
		return u.wished(ctx, key("reset known", name, a.KnownBrowser.ID), resetsKnown)
	}
	for i, n := range append([]string{a.Network}, a.Wider...) {
		if err := u.wished(ctx, key("reset near", name, n), network.Allowance(i)*resetsNear); err != nil {
			return err
		}
	}
	return u.wished(ctx, key("reset name", name), resetsOfName)
}

func (u *Users) wished(ctx context.Context, key storage.Hash, most int) error {
	n, err := u.cfg.Store.RecordFailure(ctx, key, u.cfg.Now(), max(u.cfg.Links.ResetTTL, resetsWindow))
	if err == nil && n > most {
		err = errResets
	}
	return err
}
