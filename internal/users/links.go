package users

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/text"
)

// LinkPolicy configures the lifetime of links, and the delay of a recovery link whose user has
// other authentication methods. Zero fields have the values of DefaultLinkPolicy.
type LinkPolicy struct {
	InviteTTL  time.Duration // lifetime of an invitation link
	RecoverTTL time.Duration // lifetime of an operator's recovery link, from the time when it becomes valid
	ResetTTL   time.Duration // lifetime of a password reset link that a user requested by mail
	// RecoverDelay is the delay of an operator's recovery link. If negative, the link is valid
	// immediately, so a user with other authentication methods cannot stop it before it is used.
	RecoverDelay time.Duration
}

// DefaultLinkPolicy returns the default policy.
func DefaultLinkPolicy() LinkPolicy {
	return LinkPolicy{
		InviteTTL: 72 * time.Hour, RecoverTTL: 24 * time.Hour, ResetTTL: 30 * time.Minute,
		RecoverDelay: 24 * time.Hour,
	}
}

// These are the bounds of LinkPolicy. A long-lived link can be found in a mailbox long after it was
// sent.
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

// Validate returns an error if a field is out of bounds. Zero fields are valid.
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

// linkPrefix identifies link tokens to users and secret scanners.
const linkPrefix = "mcplk_"

// LinkPath is the path of links below the issuer. The token follows.
const LinkPath = "/link/"

// Link is a new link. URL is a secret that only its user may get.
type Link struct {
	URL       string
	NotBefore time.Time
	ExpiresAt time.Time
	Mail      string // address that it was sent to, or ""
}

// Invitation is an account that its user will create.
type Invitation struct {
	Name string
	Role storage.Role
	Mail string // "": the operator delivers the link
	// Groups are the groups of the new account. The caller checks that they exist.
	Groups []string
	TTL    time.Duration // 0: LinkPolicy.InviteTTL
}

// Invite creates an invitation link for a new account with a name (PE-16), and sends it if mail is
// available. It returns ErrName, ErrMail or ErrExists. If the link cannot be sent, it returns both
// the link and the error.
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

// RecoveryOptions configure a recovery link.
type RecoveryOptions struct {
	TTL time.Duration // 0: LinkPolicy.RecoverTTL
	Now bool          // return ErrOtherWays instead of a delayed link
}

// Recover creates a recovery link for an account, notifies the user, and sends the link if mail is
// available. If the user has other authentication methods, the link is delayed and the user can
// stop it (PE-06), because someone else may have asked the operator. It returns ErrUnknown,
// ErrDisabled or ErrOtherWays.
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

// hasOtherWays reports whether a user can sign in or be verified without the password that will be
// replaced.
func (u *Users) hasOtherWays(ctx context.Context, userID string) (bool, error) {
	f, err := u.cfg.Store.Factors(ctx, userID, storage.Admission{Providers: u.cfg.Providers})
	if err != nil {
		return false, fmt.Errorf("users: recover: %w", err)
	}
	ways, err := u.cfg.Store.Ways(ctx, userID) // for every relying party
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

// LinkView describes a link for a page. Reading it does not use the link.
type LinkView struct {
	Kind      storage.LinkKind
	UserID    string // "" for an invitation
	Name      string // of the account
	Stops     bool   // the token stops the link
	NotBefore time.Time
	Early     bool // the link is not valid yet
	ExpiresAt time.Time
}

// ShowLink returns the description of the link with a token. It returns ErrLink if the link is not
// valid, and ErrBrowser if the link belongs to another browser.
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
		if !identifier.ValidName(l.Name) { // an earlier version accepted the name
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

// LinkUse is the password or the passkey that a user has chosen.
type LinkUse struct {
	Password string
	// Passkey is only for links from the operator. Its UserID is the id of the account, which may
	// be new. If nil, the password is used.
	Passkey *storage.Way
	Browser storage.Hash
}

// UseLink uses up the link. It sets the account's password or adds a passkey, or creates the
// account with one of them. It returns ErrLink, ErrBrowser, ErrPassword, ErrCommon, ErrExists or
// storage.ErrFull, and then the link remains valid. Recovery ends every session and grant of the
// account. Recovery with a passkey also removes the password, because someone who knows it may be
// the reason for the recovery.
func (u *Users) UseLink(ctx context.Context, token string, use LinkUse) (storage.User, error) {
	// Check this before hashing, so that strangers cannot make the server hash passwords.
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

// refuseLink records why a link was refused.
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

// StopLink ends the link that a token stops. It returns ErrLink for an unknown token.
func (u *Users) StopLink(ctx context.Context, token string) error {
	l, err := u.cfg.Store.StopLink(ctx, secrets.Hash(token), u.cfg.Now())
	if err != nil {
		return linkError(err)
	}
	u.stopped(ctx, l.UserID)
	return nil
}

// stopped notifies the user, who may be waiting for the link.
func (u *Users) stopped(ctx context.Context, userID string) {
	u.cfg.Audit.Record(ctx, audit.LinkStopped, audit.Person(userID, ""))
	u.cfg.Notifier.Tell(ctx, userID, notice.Change{Kind: notice.RecoveryStopped})
}

// Recovering returns the time when the recovery link of an account becomes valid, which may be in
// the future. It returns ErrLink if the account has no such link.
func (u *Users) Recovering(ctx context.Context, userID string) (time.Time, error) {
	l, err := u.cfg.Store.RecoveryLink(ctx, userID, u.cfg.Now())
	return l.NotBefore, linkError(err)
}

// StopRecovery ends every link of a signed-in user who has proved their identity.
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
