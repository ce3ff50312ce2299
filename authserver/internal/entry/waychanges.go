package entry

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/storage"
)

// WayChanges are what people change of their ways in.
type WayChanges struct {
	Store   WayStore
	Users   *users.Users
	Ways    *ways.Ways
	Notices *notice.Notifier
	Now     func() time.Time
}

// WayStore is what WayChanges need of the store.
type WayStore interface {
	User(ctx context.Context, id string) (storage.User, error)
	PutSession(ctx context.Context, s storage.Session, by storage.SignInStart) error
}

// WayForm is what the forms carry along with which a person changes their ways in.
type WayForm struct {
	UserID string `json:"u"`
	Way    string `json:"w,omitempty"` // the id of the one to change, PasswordWay or RecoveryWay
	Sealed string `json:"s,omitempty"` // of what was begun, by package ways
	Secret string `json:"k,omitempty"` // of the app that is being added, to show it again
	URI    string `json:"r,omitempty"`
	// To is where the person goes on to, who had to add a way; the zero value is nowhere.
	To Destination `json:"t,omitzero"`
}

// PasswordWay and RecoveryWay stand for the password and the recovery codes where ways are named.
const (
	PasswordWay = "password"
	RecoveryWay = "recovery"
)

// EnrolledWays are the ways in of a person, as the account page shows them.
type EnrolledWays struct {
	Ways     []ways.Listed
	Factors  storage.Factors
	Accepted []ways.Accepted
}

// Enrolled returns the ways in of a person.
func (c *WayChanges) Enrolled(ctx context.Context, userID string) (out EnrolledWays, err error) {
	if out.Ways, err = c.Ways.List(ctx, userID); err == nil {
		out.Factors, err = c.Ways.Factors(ctx, userID)
	}
	if err == nil {
		out.Accepted, err = c.Ways.Accepted(ctx, userID)
	}
	return out, refusal.Protocol(err)
}

// AddPasskey adds the passkey that a browser has made, and reports whether to propose a second way
// to the person, who has nothing else of that kind.
func (c *WayChanges) AddPasskey(
	ctx context.Context, v storage.Visit, f WayForm, a Answer, name string,
) (w storage.Way, first bool, err error) {
	in := c.Ways.In(v.Session.Hash)
	return c.added(ctx, v.User)(in.FinishPasskey(ctx, a.Browser, v.User, name, a.credential(f.Sealed)))
}

// AddApp adds the app whose code is right.
func (c *WayChanges) AddApp(
	ctx context.Context, v storage.Visit, f WayForm, a Answer, name string,
) (w storage.Way, first bool, err error) {
	in := c.Ways.In(v.Session.Hash)
	return c.added(ctx, v.User)(in.FinishApp(ctx, a.Browser, v.User, name, f.Sealed, a.Code))
}

// added tells the person of a way that was added.
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

// NewCodes replaces the recovery codes of a person.
func (c *WayChanges) NewCodes(ctx context.Context, v storage.Visit) ([]string, error) {
	codes, err := c.Ways.In(v.Session.Hash).NewRecoveryCodes(ctx, v.User.ID)
	if err == nil {
		c.Notices.Tell(ctx, v.User.ID, notice.Change{Kind: notice.RecoveryRenewed})
	}
	return codes, signedOut(err)
}

// RenameWay gives a way another name, and tells both: by a name a person knows their ways.
func (c *WayChanges) RenameWay(ctx context.Context, v storage.Visit, f WayForm, name string) error {
	before, after, err := c.Ways.In(v.Session.Hash).Rename(ctx, v.User.ID, f.Way, name)
	if err == nil && after != before {
		c.Notices.Tell(ctx, v.User.ID, notice.Change{Kind: notice.WayRenamed, Detail: notice.Renamed(before, after)})
	}
	return gone(signedOut(err))
}

// wayName returns the name of a way. It returns storage.ErrNotFound when the person has no such way.
func (c *WayChanges) wayName(ctx context.Context, userID, id string) (string, error) {
	all, err := c.Ways.List(ctx, userID)
	for _, w := range all {
		if w.ID == id {
			return w.Name, err
		}
	}
	return "", cmp.Or(err, storage.ErrNotFound)
}

// RemoveWay takes a way away: storage.ErrLast for the only one that lets the person in (PE-03).
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

// signedOut makes ErrAnotherPerson of the error for a session that has ended since its person was looked up:
// by then, perhaps, the owner of the account has stopped everything.
func signedOut(err error) error {
	if errors.Is(err, storage.ErrSignedOut) {
		return ErrAnotherPerson
	}
	return err
}

// gone makes ErrNotFound a success: the way that the person wanted removed is not there.
func gone(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}

// SetPassword gives a person another password. It ends all their sessions. The browser gets a new one
// that proves no more than the earlier one did. Applications keep their access; the person can end it
// one by one. ErrAnotherPerson: the person has been signed out.
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
	if errors.Is(err, storage.ErrNotFound) { // what the session rests on has ended, or the person stopped it
		return ErrAnotherPerson
	}
	return refusal.Protocol(err)
}
