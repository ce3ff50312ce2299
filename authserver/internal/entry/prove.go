package entry

import (
	"context"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// ProveForm is the content of the form for authenticating again.
type ProveForm struct {
	UserID string      `json:"u"`
	Sealed string      `json:"w,omitempty"` // for a passkey, by package ways
	To     Destination `json:"t"`
}

// Prove is the page where a signed-in user authenticates again.
type Prove struct {
	Form          ProveForm
	Username      string
	Password, App bool
	Options       []byte // for a passkey; nil: the user has none that works here
	// Reauth tells a provider how to authenticate the user again.
	Reauth delegation.Reauthentication
}

func (Prove) step() {}

// Ask returns the page where the browser's user authenticates again. A user who is not signed in
// signs in, which also counts.
func (s *SignIns) Ask(ctx context.Context, token storage.Hash, to Destination, browser string) (Step, error) {
	v, login, err := s.Browsers.visitor(ctx, token, to)
	if v == nil {
		return login, err
	}
	has, err := s.Ways.Factors(ctx, v.User.ID)
	if err != nil {
		return nil, refusal.Unavailable(err)
	}
	step := Prove{
		Form:     ProveForm{UserID: v.User.ID, To: to},
		Username: v.User.Name,
		Password: has.Password,
		App:      has.Apps > 0 && renewable(v.Session),
		Reauth:   reauthOf(v.Session),
	}
	if has.Passkeys > 0 {
		c, err := s.Ways.BeginSignIn(ctx, browser, ways.Ask{Purpose: ways.Proof, UserID: v.User.ID})
		if err != nil {
			return nil, refusal.Unavailable(err)
		}
		step.Options, step.Form.Sealed = c.Options, c.Sealed
	}
	return step, nil
}

// renewable reports whether a code of an authenticator app renews a session, together with earlier
// methods. It cannot renew a passkey session, because a phishing page can ask for the code. It
// cannot renew a session that another device approved either: the user entered nothing else in this
// browser, and would read a code to a stranger as readily as the number.
func renewable(s storage.Session) bool {
	return len(s.Methods) > 0 && ways.ACR(s.Methods) != oauth.ACRPhishingResistant && !elsewhere(s.Methods)
}

// reauthOf returns how a provider has to authenticate the user of a session again. A provider that
// reported the authentication time before has to report it again.
func reauthOf(s storage.Session) delegation.Reauthentication {
	if !s.ProvedAt.IsZero() && !s.AuthTime.IsZero() {
		return delegation.ReauthProved
	}
	return delegation.ReauthAsked
}

// Prove carries out another authentication. The browser gets a new session, as after a sign-in, so
// that the stolen cookie of the old one becomes useless.
func (s *SignIns) Prove(ctx context.Context, f ProveForm, a Answer, token storage.Hash, mint Mint) (Step, error) {
	begun := s.Now().UnixMilli()
	v, err := s.Browsers.VisitOf(ctx, token, f.UserID)
	if err != nil {
		return nil, err
	}
	if a.method() == ways.ByApp && !renewable(v.Session) {
		return nil, users.ErrWrong
	}
	method, _, err := s.check(ctx, v.User, ways.Proof, f.Sealed, a)
	if err != nil {
		return nil, err
	}
	p := Proof{UserID: v.User.ID, Methods: []string{method}, Begun: begun, Old: &token, To: f.To}
	switch method {
	case ways.ByPassword:
		p.Password = digest(v.User.PasswordHash)
	case ways.ByApp:
		if p.Methods = v.Session.Methods; !slices.Contains(p.Methods, method) {
			p.Methods = append(slices.Clone(p.Methods), method)
		}
	}
	return s.complete(ctx, v.User, p, a, mint)
}

// Reprove sends the browser to the page for authenticating again, and then to its destination.
type Reprove struct{ To Destination }

func (Reprove) step() {}
