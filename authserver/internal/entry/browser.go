package entry

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Browsers finds the user who is signed in in a browser.
type Browsers struct {
	Store    BrowserStore
	Bindings binding.Checker
	// Notices returns the text about a sign-in that a provider ended; nil: there are no providers.
	Notices interface {
		EndNotice(provider, reason string) sentence.Sentence
	}
	Factors SecondFactors      // nil: no second factor is required
	Changes *allowance.Limiter // per account; nil: no limit
	Audit   *audit.Recorder
	Now     func() time.Time
}

// BrowserStore lists the storage methods that Browsers uses.
type BrowserStore interface {
	Visit(ctx context.Context, k storage.VisitKey) (storage.Visit, error)
	SessionEnd(ctx context.Context, session storage.Hash, now time.Time) (connector, reason string, err error)
	SeeSession(ctx context.Context, h storage.Hash, at time.Time) error
	SetLocale(ctx context.Context, userID, tag string) error
	EndSession(ctx context.Context, h storage.Hash, now time.Time) error
	HomeSession(ctx context.Context, userID string) (string, error)
}

// Visit returns the user who is signed in in the browser, or nil, and their consent.
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
		return nil, nil // its provider was removed from the configuration
	}
	request.Of(ctx).Note(audit.Person(v.User.ID, v.User.Name))
	b.see(ctx, v.Session)
	return &v, nil
}

// see records the use of a session once an hour. A failure does not end the visit; the next storage
// call reports whether the store works.
func (b *Browsers) see(ctx context.Context, s storage.Session) {
	if now := b.Now(); !now.Before(s.SeenAt.Add(storage.SeenEvery)) {
		_ = b.Store.SeeSession(ctx, s.Hash, now)
	}
}

// SetLanguage stores the signed-in user's language for mail and for their other browsers (PE-13).
// It returns the user's id, or "", and whether the account now has the language. A session without
// recent authentication cannot change the language of mails that warn about it (PE-04).
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

// SignedIn returns the users of the sessions in a browser, each once.
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

// SignOut ends a session of a browser.
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

// LiveVisit is Visit before the user gets access to something: a sign-in that depends on a provider
// session counts only while that session lives.
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

// visitor returns the user of a browser that requests a page, or the step to sign in and continue.
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

// ErrAnotherPerson refuses a form that was made for another user.
var ErrAnotherPerson = sentence.NewError(oauth.AccessDenied,
	"Another person is signed in in this browser, or you have been signed out. Sign in and start again.", "another_person")

// VisitOf is LiveVisit for a form that was made for the user with an id. It returns
// ErrAnotherPerson if another user is signed in.
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

// EndNotice returns the text about a session that a provider has ended, or an empty one.
func (b *Browsers) EndNotice(ctx context.Context, token storage.Hash) (none sentence.Sentence) {
	if b.Notices == nil || token == (storage.Hash{}) {
		return none
	}
	provider, reason, err := b.Store.SessionEnd(ctx, token, b.Now())
	if err != nil {
		return none // no stored reason, or the store fails; the next call to it reports that
	}
	return b.Notices.EndNotice(provider, reason)
}
