package users

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web/text"
)

// LinkPolicy says how long links are good, and how long one waits when its person has other ways in.
// Zero fields take those of DefaultLinkPolicy.
type LinkPolicy struct {
	InviteTTL  time.Duration // of an invitation
	RecoverTTL time.Duration // of a link of the operator to get back in, from the moment when it starts to work
	ResetTTL   time.Duration // of a link that a person asked for by mail
	// RecoverDelay is how long one of the operator waits. Negative: not at all, so that its person,
	// who has other ways in, cannot stop it before it is used.
	RecoverDelay time.Duration
}

// DefaultLinkPolicy is what the zero LinkPolicy means.
func DefaultLinkPolicy() LinkPolicy {
	return LinkPolicy{
		InviteTTL: 72 * time.Hour, RecoverTTL: 24 * time.Hour, ResetTTL: 30 * time.Minute,
		RecoverDelay: 24 * time.Hour,
	}
}

// The bounds of LinkPolicy. A link that is good for long is found in a mailbox long after it was sent.
const (
	MinLinkTTL      = time.Minute
	MaxInviteTTL    = 30 * 24 * time.Hour
	MaxRecoverTTL   = 7 * 24 * time.Hour
	MaxResetTTL     = 24 * time.Hour
	MaxRecoverDelay = 30 * 24 * time.Hour
)

func (p LinkPolicy) withDefaults() LinkPolicy {
	d := DefaultLinkPolicy()
	return LinkPolicy{
		InviteTTL: cmp.Or(p.InviteTTL, d.InviteTTL), RecoverTTL: cmp.Or(p.RecoverTTL, d.RecoverTTL),
		ResetTTL: cmp.Or(p.ResetTTL, d.ResetTTL), RecoverDelay: max(cmp.Or(p.RecoverDelay, d.RecoverDelay), 0),
	}
}

// Validate says what is out of bounds; zero fields are within them.
func (p LinkPolicy) Validate() error {
	p = p.withDefaults()
	within := func(what string, d, least, most time.Duration) error {
		if d < least || d > most {
			return fmt.Errorf("%s: %s is not between %s and %s", what, d, least, most)
		}
		return nil
	}
	return errors.Join(
		within("an invitation", p.InviteTTL, MinLinkTTL, MaxInviteTTL),
		within("a link to recover an account", p.RecoverTTL, MinLinkTTL, MaxRecoverTTL),
		within("a link to reset a password", p.ResetTTL, MinLinkTTL, MaxResetTTL),
		within("the delay of a recovery", p.RecoverDelay, 0, MaxRecoverDelay),
	)
}

// linkPrefix tells people and scanners what a token is.
const linkPrefix = "mcplk_"

// LinkPath is where links lead, below the issuer; the token follows.
const LinkPath = "/link/"

// Link is a link that was made. URL is a secret: it goes to its person alone.
type Link struct {
	URL       string
	NotBefore time.Time
	ExpiresAt time.Time
	Mail      string // where it was sent, "" for nowhere
}

// Invitation is an account that its person is to make.
type Invitation struct {
	Name string
	Role storage.Role
	Mail string // "": the operator hands the link over
	// Groups are joined by the new account. The caller checks that they exist.
	Groups []string
	TTL    time.Duration // 0: that of the LinkPolicy
}

// Invite makes a link by which a person makes an account of a name (PE-16), and sends it where there
// is mail. It returns ErrName, ErrMail or ErrExists. A link that was made, and could not be sent, comes
// with the error.
func (u *Users) Invite(ctx context.Context, issuer string, i Invitation) (Link, error) {
	if !identifier.ValidName(i.Name) {
		return Link{}, ErrName
	}
	if err := checkMail(i.Mail); err != nil {
		return Link{}, err
	}
	now := u.cfg.Now()
	l := storage.OneTimeLink{
		Kind: storage.LinkInvite, Name: i.Name, Role: i.Role, Mail: i.Mail, Groups: i.Groups,
		NotBefore: now, CreatedAt: now,
		ExpiresAt: now.Add(cmp.Or(i.TTL, u.cfg.Links.InviteTTL)),
	}
	made, err := u.put(ctx, issuer, l)
	if errors.Is(err, storage.ErrExists) {
		return Link{}, ErrExists
	}
	if err != nil || i.Mail == "" || !u.cfg.Notifier.HasMail() {
		return made, err
	}
	made.Mail = i.Mail
	return made, u.cfg.Notifier.SendNow(ctx, notice.Letter{
		To: i.Mail, Subject: text.Say("letter.invite"),
		Lines: []text.Sentence{
			text.Say("letter.invite_text", "name", i.Name, "server", issuer),
			text.Say("letter.invite_link", "time", l.ExpiresAt),
		},
		Link: made.URL,
	})
}

// RecoveryOptions say how a person gets back in.
type RecoveryOptions struct {
	TTL time.Duration // 0: that of the LinkPolicy
	Now bool          // ErrOtherWays instead of a delay
}

// Recover makes a link by which a person gets back into an account, tells the person, and sends the
// link where there is mail. When the person has other ways in, it waits, and the person can stop
// it (PE-06): another person may have asked the operator. It returns
// ErrUnknown, ErrDisabled or ErrOtherWays.
func (u *Users) Recover(ctx context.Context, issuer, name string, o RecoveryOptions) (Link, error) {
	account, err := u.Find(ctx, name)
	if err != nil {
		return Link{}, err
	}
	others, err := u.hasOtherWays(ctx, account.ID)
	switch {
	case err != nil:
		return Link{}, err
	case others && o.Now && u.cfg.Links.RecoverDelay > 0:
		return Link{}, ErrOtherWays
	}
	now := u.cfg.Now()
	l := storage.OneTimeLink{Kind: storage.LinkRecover, UserID: account.ID, NotBefore: now, CreatedAt: now}
	if others {
		l.NotBefore = now.Add(u.cfg.Links.RecoverDelay)
	}
	l.ExpiresAt = l.NotBefore.Add(cmp.Or(o.TTL, u.cfg.Links.RecoverTTL))
	stop := secrets.Token(linkPrefix)
	l.StopHash = secrets.Hash(stop)
	made, err := u.put(ctx, issuer, l)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return Link{}, ErrDisabled
	case err != nil:
		return Link{}, err
	}
	u.cfg.Notifier.TellOfRecovery(ctx, account.ID, notice.Change{
		Kind: notice.RecoverLinkMade, Detail: notice.From(l.NotBefore),
	}, issuer+LinkPath+stop)
	if account.Mail == "" || !u.cfg.Notifier.HasMail() {
		return made, nil
	}
	made.Mail = account.Mail
	return made, u.cfg.Notifier.SendNow(ctx, notice.Letter{
		To: account.Mail, Locale: account.Locale, Subject: text.Say("letter.recover"),
		Lines: []text.Sentence{
			text.Say("letter.account", "name", account.Name, "server", issuer),
			text.Say("letter.recover_link", "start", l.NotBefore, "end", l.ExpiresAt),
		},
		Link: made.URL,
	})
}

// hasOtherWays reports whether a person can get in, or show who they are, otherwise than by the
// password that is to be replaced.
func (u *Users) hasOtherWays(ctx context.Context, userID string) (bool, error) {
	f, err := u.cfg.Store.Factors(ctx, userID, storage.Admission{Providers: u.cfg.Providers})
	if err != nil {
		return false, fmt.Errorf("users: recover: %w", err)
	}
	ways, err := u.cfg.Store.Ways(ctx, userID) // of every relying party
	if err != nil {
		return false, fmt.Errorf("users: recover: %w", err)
	}
	return len(ways) > 0 || f.RecoveryCodes > 0 || f.Identities > 0, nil
}

// put stores a link with a new token.
func (u *Users) put(ctx context.Context, issuer string, l storage.OneTimeLink) (Link, error) {
	token := secrets.Token(linkPrefix)
	l.Hash = secrets.Hash(token)
	if err := u.cfg.Store.PutLink(ctx, l, u.cfg.Now()); err != nil {
		return Link{}, fmt.Errorf("users: link: %w", err)
	}
	u.cfg.Audit.Record(ctx, audit.LinkMade, audit.Person(l.UserID, l.Name), slog.String("kind", string(l.Kind)))
	return Link{URL: issuer + LinkPath + token, NotBefore: l.NotBefore, ExpiresAt: l.ExpiresAt}, nil
}

// LinkView is what a page shows of a link: nothing is spent by it.
type LinkView struct {
	Kind      storage.LinkKind
	UserID    string // "" of an invitation
	Name      string // of the account
	Stops     bool   // the token is the one that stops the link
	NotBefore time.Time
	Early     bool // it is not good yet
	ExpiresAt time.Time
}

// ShowLink returns what the link of a token is for, in a browser; ErrLink when it is no good, ErrBrowser
// when it belongs to another browser.
func (u *Users) ShowLink(ctx context.Context, token string, browser storage.Hash) (LinkView, error) {
	h := secrets.Hash(token)
	l, err := u.cfg.Store.Link(ctx, h, u.cfg.Now())
	if err != nil {
		return LinkView{}, linkError(err)
	}
	s := LinkView{
		Kind: l.Kind, Name: l.Name, Stops: l.StopHash == h, NotBefore: l.NotBefore,
		Early: u.cfg.Now().Before(l.NotBefore), ExpiresAt: l.ExpiresAt,
	}
	if l.Browser != (storage.Hash{}) && l.Browser != browser {
		return LinkView{}, ErrBrowser
	}
	if l.Kind == storage.LinkInvite {
		if !identifier.ValidName(l.Name) { // an earlier version took it
			return LinkView{}, ErrLink
		}
		return s, nil
	}
	account, err := u.cfg.Store.User(ctx, l.UserID)
	if err != nil || account.Disabled {
		return LinkView{}, linkError(orNotFound(err))
	}
	s.UserID, s.Name = account.ID, account.Name
	return s, nil
}

// LinkUse is what a person does with a link: they choose a password, or have made a passkey.
type LinkUse struct {
	Password string
	// Passkey is for a link of the operator alone; its UserID is that of the account, or of the one to be
	// made. Nil: the password.
	Passkey *storage.Way
	Browser storage.Hash
}

// UseLink sets the password of the account of a link, or adds a passkey, or makes the account with it,
// and spends the link. ErrLink, ErrBrowser, ErrPassword, ErrCommon, ErrExists, storage.ErrFull; none of
// them spends it. Recovery ends every session and grant of the account, and by a passkey the password:
// a person who knew it may be why the account has to be recovered.
func (u *Users) UseLink(ctx context.Context, token string, use LinkUse) (storage.User, error) {
	// Before the password is hashed: strangers must not have that work done for them.
	shown, err := u.ShowLink(ctx, token, use.Browser)
	if err != nil || shown.Stops || shown.Early || use.Passkey != nil && shown.Kind == storage.LinkReset {
		return storage.User{}, u.refuseLink(ctx, err)
	}
	var hash string
	if use.Passkey == nil {
		if hash, err = u.hash(ctx, shown.Name, use.Password); err != nil {
			return storage.User{}, err
		}
	}
	now := u.cfg.Now()
	if shown.Kind == storage.LinkInvite {
		account := storage.User{ID: NewID(), PasswordHash: hash, CreatedAt: now}
		if use.Passkey != nil {
			account.ID = use.Passkey.UserID
		}
		var joined []string
		account, joined, err = u.cfg.Store.AcceptInvitation(ctx, storage.Acceptance{
			Hash: secrets.Hash(token), User: account, Passkey: use.Passkey, Now: now,
		})
		if err != nil {
			return storage.User{}, u.refuseLink(ctx, err)
		}
		u.cfg.Audit.Record(ctx, audit.UserCreated, audit.Person(account.ID, account.Name))
		for _, group := range joined {
			u.cfg.Audit.Record(ctx, audit.GroupChanged, slog.String("group", group), slog.String("user", account.ID),
				slog.String("what", "added"))
		}
		u.used(ctx, account, shown.Kind)
		return account, nil
	}
	account, err := u.cfg.Store.RecoverAccount(ctx, storage.Recovery{
		Hash: secrets.Hash(token), Browser: use.Browser, PasswordHash: hash, Passkey: use.Passkey, Now: now,
	})
	if err != nil {
		return storage.User{}, u.refuseLink(ctx, err)
	}
	u.used(ctx, account, shown.Kind)
	u.cfg.Notifier.Tell(ctx, account.ID, notice.Change{Kind: notice.RecoveryUsed})
	return account, nil
}

func (u *Users) used(ctx context.Context, account storage.User, kind storage.LinkKind) {
	u.cfg.Audit.Record(ctx, audit.LinkUsed, audit.Person(account.ID, account.Name), slog.String("kind", string(kind)))
}

// refuseLink records why a link was of no use.
func (u *Users) refuseLink(ctx context.Context, err error) error {
	reason := "not valid yet, or not the one to use"
	if err != nil {
		reason = err.Error()
	}
	u.cfg.Audit.Record(ctx, audit.LinkRefused, slog.String("reason", reason))
	return linkError(orNotFound(err))
}

func orNotFound(err error) error {
	if err == nil {
		return storage.ErrNotFound
	}
	return err
}

// StopLink ends the link that a token stops; ErrLink when there is no such link.
func (u *Users) StopLink(ctx context.Context, token string) error {
	l, err := u.cfg.Store.StopLink(ctx, secrets.Hash(token), u.cfg.Now())
	if err != nil {
		return linkError(err)
	}
	u.stopped(ctx, l.UserID)
	return nil
}

// stopped tells the person, who may be waiting for the link.
func (u *Users) stopped(ctx context.Context, userID string) {
	u.cfg.Audit.Record(ctx, audit.LinkStopped, audit.Person(userID, ""))
	u.cfg.Notifier.Tell(ctx, userID, notice.Change{Kind: notice.RecoveryStopped})
}

// Recovering returns the time from which the recovery link of an account works, which may be in the
// future; ErrLink when there is no such link.
func (u *Users) Recovering(ctx context.Context, userID string) (time.Time, error) {
	l, err := u.cfg.Store.RecoveryLink(ctx, userID, u.cfg.Now())
	return l.NotBefore, linkError(err)
}

// StopRecovery ends every link of a person, who is signed in and has proved who they are.
func (u *Users) StopRecovery(ctx context.Context, userID string) error {
	n, err := u.cfg.Store.StopLinks(ctx, userID, u.cfg.Now())
	if err != nil {
		return fmt.Errorf("users: stop links: %w", err)
	}
	if n > 0 {
		u.stopped(ctx, userID)
	}
	return nil
}

func linkError(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrLink), errors.Is(err, ErrBrowser):
		return err
	case errors.Is(err, storage.ErrMismatch):
		return ErrBrowser
	case errors.Is(err, storage.ErrExists):
		return ErrExists
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrExpired), errors.Is(err, storage.ErrRevoked),
		errors.Is(err, storage.ErrEarly):
		return ErrLink
	}
	return fmt.Errorf("users: link: %w", err)
}
