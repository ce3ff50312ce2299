// Package entry gives a browser its session, and has its person prove who they are, as values. The
// edge parses a form, calls this package, and writes the Step that it gets. Package flow has what a
// person approves after that.
//
//	browser.go       the person who is signed in in a browser
//	step.go          the steps, and where a person goes after them
//	entry.go         a person signs in with a password, a passkey or a recovery code
//	answer.go        what a person gives in a form, and whether it is right
//	second.go        a second proof before a sign-in is complete
//	owes.go          the proofs that a session must show before it may act
//	prove.go         a new proof of a person who is signed in
//	homeprovider.go  the provider at which an account began is asked
//	waychanges.go    what a person changes of their ways in
//	remote.go        a browser that a person signs in from another device (PE-15)
package entry

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/storage"
)

// SignIns sign people in here: with a password, a passkey or a recovery code, and with what has to
// follow it.
type SignIns struct {
	Store    Store
	Users    *users.Users
	Ways     *ways.Ways
	Notices  *notice.Notifier
	Clients  *clients.Finder
	Browsers *Browsers
	Audit    *audit.Recorder
	Now      func() time.Time
}

// Store is what SignIns need of the store.
type Store interface {
	User(ctx context.Context, id string) (storage.User, error)
	PutSession(ctx context.Context, s storage.Session, by storage.SignInStart) error
	EndSession(ctx context.Context, h storage.Hash, now time.Time) error
	Spend(ctx context.Context, purpose, id string, expires time.Time) error
}

// Mint makes the session of a person who has signed in by methods. It is always a new one, so that
// an id planted before the sign-in is worth nothing.
type Mint func(u storage.User, methods []string) storage.Session

// Proof is what a person has given so far to sign in, or to prove again who they are.
type Proof struct {
	UserID  string   `json:"u"`
	Methods []string `json:"m"`
	// Password is the digest of the hash of the password that was given, "" for none: setting
	// another one ends also the sign-ins that are under way.
	Password string `json:"p,omitempty"`
	// RecoveryCode is what is stored of the recovery code that was given. It is spent with the beginning of
	// the session: a sign-in that is refused spends none.
	RecoveryCode *storage.Hash `json:"r,omitempty"`
	// Begun is when the sign-in or proof began, in milliseconds since the epoch: a person who stops
	// everything stops also what is under way by then.
	Begun int64 `json:"at,omitempty"`
	// Old is the session that a new one follows, none for a person who signs in.
	Old *storage.Hash `json:"o,omitempty"`
	To  Destination   `json:"t"`
}

// Password signs a person in with a name and a password, or leads to what must follow.
// users.ErrWrong and *users.ThrottledError say why not.
func (s *SignIns) Password(ctx context.Context, a Answer, to Destination, mint Mint) (Step, error) {
	begun := s.Now().UnixMilli()
	s.noteClient(ctx, to)
	u, err := s.Users.Authenticate(ctx, a.Attempt)
	if err != nil {
		return nil, err
	}
	p := Proof{
		UserID: u.ID, Methods: []string{ways.ByPassword}, Password: digest(u.PasswordHash), Begun: begun, To: to,
	}
	return s.complete(ctx, u, p, a, mint)
}

// PasskeyForm is what the form of a passkey carries along.
type PasskeyForm struct {
	Sealed string      `json:"w"` // by package ways
	To     Destination `json:"t"`
}

// Passkey signs in the person whose passkey has answered. The errors of package ways say why not.
func (s *SignIns) Passkey(ctx context.Context, f PasskeyForm, a Answer, mint Mint) (Step, error) {
	s.noteClient(ctx, f.To)
	by, err := s.Ways.FinishSignIn(ctx, a.Browser, ways.SignIn, a.credential(f.Sealed))
	if err != nil {
		return nil, err
	}
	p := Proof{
		UserID: by.User.ID, Methods: []string{ways.ByPasskey}, Begun: by.AskedAt.UnixMilli(), To: f.To,
	}
	return s.complete(ctx, by.User, p, a, mint)
}

// Recovery signs in the person with a name and one of their recovery codes. An unknown name takes
// the same way as a wrong code (PE-08).
func (s *SignIns) Recovery(ctx context.Context, a Answer, to Destination, mint Mint) (Step, error) {
	begun := s.Now().UnixMilli()
	s.noteClient(ctx, to)
	u, code, err := s.Ways.CheckRecoveryCode(ctx, a.Attempt, a.Recovery)
	if err != nil {
		return nil, err
	}
	p := Proof{UserID: u.ID, Methods: []string{ways.ByRecovery}, RecoveryCode: &code, Begun: begun, To: to}
	return s.complete(ctx, u, p, a, mint)
}

// complete begins the session of a person who has proved enough, or asks for the rest.
func (s *SignIns) complete(ctx context.Context, u storage.User, p Proof, a Answer, mint Mint) (Step, error) {
	need, err := s.Ways.Needs(ctx, u, p.Methods)
	if err != nil {
		return nil, refusal.Unavailable(err)
	}
	if need.Missing && !need.Enrol {
		return s.second(ctx, u, p, need, a.Browser)
	}
	if p.Password != "" && p.Password != digest(u.PasswordHash) {
		return nil, users.ErrWrong
	}
	if err := s.begin(ctx, u, p, mint); err != nil {
		return nil, err
	}
	if p.RecoveryCode != nil {
		s.Notices.Tell(ctx, u.ID, notice.Change{Kind: notice.RecoveryUsed})
	}
	s.Users.SignedIn(ctx, u, a.Attempt.Network, p.Methods)
	switch {
	case p.Old != nil:
		err = s.Store.EndSession(ctx, *p.Old, s.Now())
	case need.Enrol: // before anything else
		return StepUp{p.To}, nil
	}
	return Continue{p.To}, refusal.Protocol(err)
}

// begin begins the session. The home provider is asked before.
func (s *SignIns) begin(ctx context.Context, u storage.User, p Proof, mint Mint) (err error) {
	se := mint(u, p.Methods)
	if elsewhere(p.Methods) { // proofs on another device do not count as a proof in this browser
		se.ProvedAt = notProved
	}
	if se.UpstreamID, err = s.follows(ctx, p); err != nil {
		return err
	}
	if err := s.Browsers.AskHomeProvider(ctx, u, se.UpstreamID); err != nil {
		return err
	}
	by := storage.SignInStart{At: time.UnixMilli(p.Begun), RecoveryCode: p.RecoveryCode}
	if p.Password != "" {
		by.PasswordHash = u.PasswordHash
	}
	switch err := s.Store.PutSession(ctx, se, by); {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrSpent): // the code was used at the same moment
		return users.ErrWrong
	case !errors.Is(err, storage.ErrNotFound):
		return s.Browsers.homeError(ctx, u, err)
	case len(p.Methods) > 1, p.Methods[0] == ways.ByPasskey: // see below; what was given is right
		return ErrLate
	}
	return users.ErrWrong // disabled, stopped, or the password or code was changed in between
}

// follows returns the session at a provider on which the session rests that the new one follows.
func (s *SignIns) follows(ctx context.Context, p Proof) (upstream string, err error) {
	if p.Old == nil {
		return "", nil
	}
	v, err := s.Browsers.LiveVisit(ctx, *p.Old, storage.VisitKey{})
	switch {
	case err != nil:
		return "", err
	case v == nil || v.User.ID != p.UserID:
		return "", ErrAnotherPerson
	}
	return v.Session.UpstreamID, nil
}

func digest(passwordHash string) string {
	sum := sha256.Sum256([]byte("password of a sign-in\x00" + passwordHash))
	return base64.RawStdEncoding.EncodeToString(sum[:])
}

// noteClient has the log say which application a person signs in for.
func (s *SignIns) noteClient(ctx context.Context, to Destination) {
	id := to.Query.Values().Get("client_id")
	if id == "" {
		return
	}
	audit.Note(ctx, slog.String("client_id", id))
	if c, err := s.Clients.Find(ctx, id); err == nil {
		audit.Note(ctx, audit.Client(c))
	}
}
