package users

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web/text"
)

// Reset is the wish of a person who has forgotten a password.
type Reset struct {
	Issuer  string
	Name    string
	Browser storage.Hash // in which the link will be good
	Network string       // part of the address of the caller, by which wishes are counted
}

// The wishes of one network, and those for one name, beyond which none is fulfilled. All replicas
// together make storage.MaxResets links of a person that are good at one time.
var (
	resetsOfNetwork = bounded.Rate{Every: time.Minute, Burst: 10}
	resetsOfName    = bounded.Rate{Every: 10 * time.Minute, Burst: 3}
)

const (
	maxResets   = 16 // under way
	resetTime   = 30 * time.Second
	limitedKeys = 10_000
)

// resets bounds what strangers have this server do.
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

// HasMail reports whether people can be written to.
func (u *Users) HasMail() bool { return u.cfg.Notifier.HasMail() }

// Forgotten writes to a person who has forgotten the password, if there is an account of the name with
// an address, and returns until when the link in the letter works. It returns before anything is
// looked up, so that a stranger learns nothing, from the time either (PE-08).
func (u *Users) Forgotten(ctx context.Context, r Reset) (until time.Time) {
	until = u.cfg.Now().Add(u.cfg.Links.ResetTTL)
	wait := u.resets.limiter.Take(
		bounded.Draw[storage.Hash]{Key: key("reset network", r.Network), Rate: resetsOfNetwork},
		bounded.Draw[storage.Hash]{Key: key("reset name", strings.ToLower(r.Name)), Rate: resetsOfName},
	)
	if wait > 0 || !u.HasMail() || !validName(r.Name) {
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

// reset makes the link and queues the letter.
func (u *Users) reset(ctx context.Context, r Reset, until time.Time) error {
	account, err := u.cfg.Store.UserByName(ctx, r.Name)
	if err != nil {
		return err
	}
	if account.Mail == "" {
		return fmt.Errorf("users: reset: there is no address")
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
			text.Say("letter.reset_text", "time", notice.Time(made.ExpiresAt)),
		},
		Link: made.URL,
	})
	return nil
}
