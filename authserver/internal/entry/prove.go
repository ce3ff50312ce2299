package entry

import (
	"context"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// ProveForm is what the form carries along with which a person proves again who they are.
type ProveForm struct {
	UserID string      `json:"u"`
	Sealed string      `json:"w,omitempty"` // for a passkey, by package ways
	To     Destination `json:"t"`
}

// Prove is the page on which a person who is signed in proves again who they are.
type Prove struct {
	Form          ProveForm
	Username      string
	Password, App bool
	Options       []byte // for a passkey; nil: the person has none that works here
	// Reauth is what a provider has to do for a proof.
	Reauth delegation.Reauthentication
}

func (Prove) step() {}

// Ask shows how the person who is signed in in the browser can prove again who they are. A person who
// is not signed in signs in, which is a proof.
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

// renewable reports whether a code of an app, beside what the person has given before, is a proof. A
// session by a passkey it does not renew: a page of another site can ask for the code. Nor a session that
// another device let in: the person gave nothing else in this browser, and reads a code to a stranger as they
// read the number.
func renewable(s storage.Session) bool {
	return len(s.Methods) > 0 && ways.ACR(s.Methods) != oauth.ACRPhishingResistant && !elsewhere(s.Methods)
}

// reauthOf is what a provider has to do for a proof of the person of a session. One that has said before
// when it had a proof has to say so again.
func reauthOf(s storage.Session) delegation.Reauthentication {
	if !s.ProvedAt.IsZero() && !s.AuthTime.IsZero() {
		return delegation.ReauthProved
	}
	return delegation.ReauthAsked
}

// Prove carries out a proof: the browser gets a session that is as good as a new sign-in, so that
// a thief who has the cookie of the old one gains nothing by it.
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

// Reprove sends the browser to where the person proves again who they are, and then on.
type Reprove struct{ To Destination }

func (Reprove) step() {}
