// Package entry signs users in and authenticates them again, without HTTP. The edge parses a form,
// calls this package, and writes the Step that it returns. Package flow handles the user's
// approvals after that.
//
//	browser.go       the user who is signed in in a browser
//	step.go          the steps, and the user's destination after them
//	entry.go         sign-in with a password, a passkey or a recovery code
//	answer.go        verifies the content of a form
//	second.go        a second factor before a sign-in is complete
//	owes.go          the authentication that a session needs before it may act
//	prove.go         authenticates a signed-in user again
//	homeprovider.go  asks the provider of the account's origin
//	waychanges.go    changes of authentication methods
//	remote.go        signs a browser in from another device (PE-15)
package entry

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// SignIns signs users in with a password, a passkey or a recovery code, and with required further
// steps.
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

// Store lists the storage methods that SignIns uses.
type Store interface {
	User(ctx context.Context, id string) (storage.User, error)
	PutSession(ctx context.Context, s storage.Session, by storage.SignInStart) error
	EndSession(ctx context.Context, h storage.Hash, now time.Time) error
	Spend(ctx context.Context, purpose, id string, expires time.Time) error
}

// Mint creates the session of a user who signed in with methods. It is always a new session, so
// that an id planted before the sign-in is useless.
type Mint func(u storage.User, methods []string) storage.Session

// Proof is the authentication that a user has completed so far.
type Proof struct {
	UserID  string   `json:"u"`
	Methods []string `json:"m"`
	// Password is the digest of the hash of the entered password, "" for none. A change of the
	// password also ends unfinished sign-ins.
	Password string `json:"p,omitempty"`
	// RecoveryCode is the stored hash of the entered recovery code. The code is used up when the
	// session begins: a refused sign-in uses up none.
	RecoveryCode *storage.Hash `json:"r,omitempty"`
	// Begun is when the sign-in began, in milliseconds since the epoch. A user who ends all
	// sessions also ends sign-ins that began before.
	Begun int64 `json:"at,omitempty"`
	// Old is the session that the new one replaces; nil for a sign-in.
	Old *storage.Hash `json:"o,omitempty"`
	To  Destination   `json:"t"`
}

// Password signs a user in with a name and a password, or returns the required further step. It
// returns users.ErrWrong or a *users.ThrottledError if the sign-in fails.
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

// PasskeyForm is the content of a passkey form.
type PasskeyForm struct {
	Sealed string      `json:"w"` // by package ways
	To     Destination `json:"t"`
}

// Passkey signs in the user whose passkey responded. It returns the errors of package ways.
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

// Recovery signs a user in with a name and a recovery code. An unknown name is handled like a wrong
// code (PE-08).
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

// complete begins the user's session if their authentication is sufficient, or returns the next
// step.
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

// begin begins the session after it has asked the home provider.
func (s *SignIns) begin(ctx context.Context, u storage.User, p Proof, mint Mint) (err error) {
	se := mint(u, p.Methods)
	if elsewhere(p.Methods) { // methods on another device do not count in this browser
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
	case errors.Is(err, storage.ErrSpent): // the code was used concurrently
		return users.ErrWrong
	case !errors.Is(err, storage.ErrNotFound):
		return s.Browsers.homeError(ctx, u, err)
	case len(p.Methods) > 1, p.Methods[0] == ways.ByPasskey: // the answer was right
		return ErrLate
	}
	return users.ErrWrong // disabled, stopped, or the password or code has changed
}

// follows returns the provider session that the replaced session depends on.
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

// noteClient logs the application that a user signs in for.
func (s *SignIns) noteClient(ctx context.Context, to Destination) {
	id := to.Query.Values().Get("client_id")
	if id == "" {
		return
	}
	request.Of(ctx).Note(slog.String("client_id", id))
	if c, err := s.Clients.Find(ctx, id); err == nil {
		request.Of(ctx).Note(audit.Client(c))
	}
}
