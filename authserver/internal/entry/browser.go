package entry

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Browsers finds the person who is signed in in a browser.
type Browsers struct {
	Store    BrowserStore
	Bindings binding.Checker
	// Notices tells why a provider ended a sign-in; nil: there are no providers.
	Notices interface {
		EndNotice(provider, reason string) string
	}
	Factors SecondFactors      // nil: no second factor is required
	Changes *allowance.Limiter // of each account; nil: no bound
	Audit   *audit.Recorder
	Now     func() time.Time
}

// BrowserStore is what Browsers needs of the store.
type BrowserStore interface {
	Visit(ctx context.Context, k storage.VisitKey) (storage.Visit, error)
	SessionEnd(ctx context.Context, session storage.Hash, now time.Time) (connector, reason string, err error)
	SeeSession(ctx context.Context, h storage.Hash, at time.Time) error
	SetLocale(ctx context.Context, userID, tag string) error
	EndSession(ctx context.Context, h storage.Hash, now time.Time) error
	HomeSession(ctx context.Context, userID string) (string, error)
}

// Visit returns who is signed in in the browser, nil for no person, and what they have consented
// to.
func (b *Browsers) Visit(ctx context.Context, token storage.Hash, consent storage.VisitKey) (*storage.Visit, error) {
	if token == (storage.Hash{}) {
		return nil, nil
	}
	consent.Session, consent.Now = token, b.Now()
	v, err := b.Store.Visit(ctx, consent)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, refusal.Unavailable(err)
	}
	if !b.Bindings.Honours(v.Session.UpstreamID) {
		return nil, nil // its provider was taken out of the configuration
	}
	audit.Note(ctx, audit.Person(v.User.ID, v.User.Name))
	b.see(ctx, v.Session)
	return &v, nil
}

// see notes that a session is used, once an hour. That it could not be noted is no reason to send
// the person away: the next verb tells whether the store works.
func (b *Browsers) see(ctx context.Context, s storage.Session) {
	if now := b.Now(); !now.Before(s.SeenAt.Add(storage.SeenEvery)) {
		_ = b.Store.SeeSession(ctx, s.Hash, now)
	}
}

// SetLanguage stores the language that the person has chosen who is signed in, for letters and their
// other browsers (PE-13). It returns who that is, "" for no person, and whether their account has the
// language now: a session without a fresh proof does not set the language of the letters that warn of
// it (PE-04).
func (b *Browsers) SetLanguage(ctx context.Context, token storage.Hash, tag string) (
	userID string, kept bool, err error,
) {
	v, err := b.Visit(ctx, token, storage.VisitKey{})
	switch {
	case err != nil || v == nil:
		return "", false, err
	case v.User.Locale == tag:
		return v.User.ID, true, nil
	}
	switch err := b.Owed(ctx, *v, Change); {
	case errors.Is(err, ErrMore), errors.Is(err, ErrProve):
		return v.User.ID, false, nil
	case err != nil:
		return v.User.ID, false, err
	}
	if err := b.Store.SetLocale(ctx, v.User.ID, tag); err != nil {
		return v.User.ID, false, refusal.Unavailable(err)
	}
	return v.User.ID, true, nil
}

// SignedIn returns who is signed in by the sessions that a browser holds, each person once.
func (b *Browsers) SignedIn(ctx context.Context, held []storage.Hash) (out []storage.Visit, err error) {
	for _, token := range held {
		v, err := b.Store.Visit(ctx, storage.VisitKey{Session: token, Now: b.Now()})
		switch {
		case errors.Is(err, storage.ErrNotFound):
			continue
		case err != nil:
			return nil, refusal.Unavailable(err)
		}
		again := slices.ContainsFunc(out, func(o storage.Visit) bool { return o.User.ID == v.User.ID })
		if !again && b.Bindings.Honours(v.Session.UpstreamID) {
			out = append(out, v)
		}
	}
	return out, nil
}

// SignOut ends a session that a browser holds.
func (b *Browsers) SignOut(ctx context.Context, token storage.Hash) error {
	v, err := b.Visit(ctx, token, storage.VisitKey{})
	if err != nil {
		return err
	}
	if err := b.Store.EndSession(ctx, token, b.Now()); err != nil {
		return refusal.Unavailable(err)
	}
	if v != nil {
		b.Audit.Record(ctx, audit.LoggedOut, audit.Person(v.User.ID, v.User.Name))
	}
	return nil
}

// LiveVisit is Visit for a person who is about to be given something: a sign-in that rests on a
// session at a provider counts only while that stands.
func (b *Browsers) LiveVisit(
	ctx context.Context, token storage.Hash, consent storage.VisitKey,
) (*storage.Visit, error) {
	v, err := b.Visit(ctx, token, consent)
	if err != nil || v == nil {
		return v, err
	}
	if active, err := b.Bindings.Stands(ctx, v.Session.UpstreamID); err != nil || !active {
		return nil, err
	}
	return v, nil
}

// visitor returns the person who is signed in in a browser that asks for a page of theirs, or the step to
// sign in and then on.
func (b *Browsers) visitor(ctx context.Context, token storage.Hash, to Destination) (*storage.Visit, Step, error) {
	v, err := b.LiveVisit(ctx, token, storage.VisitKey{})
	if err != nil || v != nil {
		return v, nil, err
	}
	return nil, b.login(ctx, token, to), nil
}

func (b *Browsers) login(ctx context.Context, token storage.Hash, to Destination) Step {
	return Login{To: to, EndNotice: b.EndNotice(ctx, token)}
}

// ErrAnotherPerson refuses a form that was made for another person than the one who is signed in.
var ErrAnotherPerson = oauth.NewError(oauth.AccessDenied,
	"Another person is signed in in this browser, or you have been signed out. Sign in and start again.")

// VisitOf is LiveVisit for a form that was made for the person with an id: ErrAnotherPerson when the
// browser is not theirs.
func (b *Browsers) VisitOf(ctx context.Context, token storage.Hash, userID string) (storage.Visit, error) {
	v, err := b.LiveVisit(ctx, token, storage.VisitKey{})
	switch {
	case err != nil:
		return storage.Visit{}, err
	case v == nil || v.User.ID != userID:
		return storage.Visit{}, ErrAnotherPerson
	}
	return *v, nil
}

// EndNotice tells why a browser is no longer signed in, if a provider has ended it.
func (b *Browsers) EndNotice(ctx context.Context, token storage.Hash) string {
	if b.Notices == nil || token == (storage.Hash{}) {
		return ""
	}
	provider, reason, err := b.Store.SessionEnd(ctx, token, b.Now())
	if err != nil {
		return "" // no end was stored, or the store fails: the next call to it will tell
	}
	return b.Notices.EndNotice(provider, reason)
}
