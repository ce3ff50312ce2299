package entry

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// WayChanges changes users' authentication methods.
type WayChanges struct {
	Store   WayStore
	Users   *users.Users
	Ways    *ways.Ways
	Notices *notice.Notifier
	Now     func() time.Time
}

// WayStore lists the storage methods that WayChanges uses.
type WayStore interface {
	User(ctx context.Context, id string) (storage.User, error)
	PutSession(ctx context.Context, s storage.Session, by storage.SignInStart) error
}

// WayForm is the content of the forms for authentication methods.
type WayForm struct {
	UserID string `json:"u"`
	Way    string `json:"w,omitempty"` // id of the method to change, PasswordWay or RecoveryWay
	Sealed string `json:"s,omitempty"` // a ceremony that has begun, by package ways
	Secret string `json:"k,omitempty"` // of the authenticator app that is being added, to show it again
	URI    string `json:"r,omitempty"`
	// To is the destination of a user who had to add a method; the zero value means none.
	To Destination `json:"t,omitzero"`
}

// PasswordWay and RecoveryWay name the password and the recovery codes in place of a method's id.
const (
	PasswordWay = "password"
	RecoveryWay = "recovery"
)

// EnrolledWays lists the authentication methods of a user for the account page.
type EnrolledWays struct {
	Ways     []ways.Listed
	Factors  storage.Factors
	Accepted []ways.Accepted
}

// Enrolled returns the authentication methods of a user.
func (c *WayChanges) Enrolled(ctx context.Context, userID string) (out EnrolledWays, err error) {
	if out.Ways, err = c.Ways.List(ctx, userID); err == nil {
		out.Factors, err = c.Ways.Factors(ctx, userID)
	}
	if err == nil {
		out.Accepted, err = c.Ways.Accepted(ctx, userID)
	}
	return out, refusal.Protocol(err)
}

// AddPasskey adds the passkey that a browser has created. first reports whether to suggest a second
// one, because the user has no other.
func (c *WayChanges) AddPasskey(
	ctx context.Context, v storage.Visit, f WayForm, a Answer, name string,
) (w storage.Way, first bool, err error) {
	in := c.Ways.In(v.Session.Hash)
	return c.added(ctx, v.User)(in.FinishPasskey(ctx, a.Browser, v.User, name, a.credential(f.Sealed)))
}

// AddApp adds the authenticator app if its code is right.
func (c *WayChanges) AddApp(
	ctx context.Context, v storage.Visit, f WayForm, a Answer, name string,
) (w storage.Way, first bool, err error) {
	in := c.Ways.In(v.Session.Hash)
	return c.added(ctx, v.User)(in.FinishApp(ctx, a.Browser, v.User, name, f.Sealed, a.Code))
}

// added notifies the user about an added method.
func (c *WayChanges) added(ctx context.Context, u storage.User) func(storage.Way, error) (storage.Way, bool, error) {
	return func(w storage.Way, err error) (storage.Way, bool, error) {
		if err != nil {
			return w, false, signedOut(err)
		}
		c.Notices.Tell(ctx, u.ID, notice.Change{Kind: notice.WayAdded, Detail: w.Name})
		has, err := c.Ways.Factors(ctx, u.ID)
		return w, err == nil && has.Passkeys+has.Apps == 1 && has.RecoveryCodes == 0, nil
	}
}

// NewCodes replaces the recovery codes of a user.
func (c *WayChanges) NewCodes(ctx context.Context, v storage.Visit) ([]string, error) {
	codes, err := c.Ways.In(v.Session.Hash).NewRecoveryCodes(ctx, v.User.ID)
	if err == nil {
		c.Notices.Tell(ctx, v.User.ID, notice.Change{Kind: notice.RecoveryRenewed})
	}
	return codes, signedOut(err)
}

// RenameWay renames a method and notifies the user with both names, because users know their
// methods by name.
func (c *WayChanges) RenameWay(ctx context.Context, v storage.Visit, f WayForm, name string) error {
	before, after, err := c.Ways.In(v.Session.Hash).Rename(ctx, v.User.ID, f.Way, name)
	if err == nil && after != before {
		c.Notices.Tell(ctx, v.User.ID, notice.Change{Kind: notice.WayRenamed, Detail: notice.Renamed(before, after)})
	}
	return gone(signedOut(err))
}

// wayName returns the name of a method, or storage.ErrNotFound if the user has no such method.
func (c *WayChanges) wayName(ctx context.Context, userID, id string) (string, error) {
	all, err := c.Ways.List(ctx, userID)
	for _, w := range all {
		if w.ID == id {
			return w.Name, err
		}
	}
	return "", cmp.Or(err, storage.ErrNotFound)
}

// RemoveWay removes a method. It returns storage.ErrLast for the only one that can sign the user in
// (PE-03).
func (c *WayChanges) RemoveWay(ctx context.Context, v storage.Visit, f WayForm) error {
	var told notice.Change
	var err error
	switch in := c.Ways.In(v.Session.Hash); f.Way {
	case PasswordWay:
		told.Kind, err = notice.PasswordRemoved, in.RemovePassword(ctx, v.User.ID)
	case RecoveryWay:
		told.Kind, err = notice.RecoveryRemoved, in.RemoveRecoveryCodes(ctx, v.User.ID)
	default:
		told.Kind = notice.WayRemoved
		if told.Detail, err = c.wayName(ctx, v.User.ID, f.Way); err == nil {
			err = in.Remove(ctx, v.User.ID, f.Way)
		}
	}
	if err == nil {
		c.Notices.Tell(ctx, v.User.ID, told)
	}
	return gone(signedOut(err))
}

// signedOut turns storage.ErrSignedOut into ErrAnotherPerson. The session has ended since it was
// read; perhaps the account's owner has ended all sessions.
func signedOut(err error) error {
	if errors.Is(err, storage.ErrSignedOut) {
		return ErrAnotherPerson
	}
	return err
}

// gone turns ErrNotFound into success: the method to remove does not exist.
func gone(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}

// SetPassword changes a user's password and ends all their sessions. The browser gets a new session
// with no more authentication than before. Applications keep their access; the user can revoke it
// one by one. It returns ErrAnotherPerson if the user has been signed out.
func (c *WayChanges) SetPassword(ctx context.Context, v storage.Visit, password string, mint Mint) error {
	by := storage.SignInStart{At: c.Now()}
	in := users.Within{Session: v.Session.Hash, TwoFactors: ways.ACR(v.Session.Methods) != ""}
	if err := c.Users.ChangePassword(ctx, v.User, password, in); err != nil {
		return signedOut(err)
	}
	u, err := c.Store.User(ctx, v.User.ID)
	if err != nil {
		return refusal.Unavailable(err)
	}
	s := mint(u, v.Session.Methods)
	s.UpstreamID, s.AuthTime, s.ProvedAt = v.Session.UpstreamID, v.Session.AuthTime, v.Session.ProvedAt
	by.PasswordHash = u.PasswordHash
	err = c.Store.PutSession(ctx, s, by)
	if errors.Is(err, storage.ErrNotFound) { // the provider session has ended, or the user ended all sessions
		return ErrAnotherPerson
	}
	return refusal.Protocol(err)
}
