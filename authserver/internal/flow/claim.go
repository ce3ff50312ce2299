package flow

import (
	"context"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// ClaimForm is the sealed content of the form that asks whether an account at a provider belongs to
// the user. It is bound to the browser and works once, like its ticket.
type ClaimForm struct {
	Ticket   string       `json:"t"`
	Provider string       `json:"p"`
	Label    string       `json:"l"`
	Subject  string       `json:"s"`
	UserID   string       `json:"u"`
	Session  storage.Hash `json:"b"` // the session of the user who is asked
	Connect  string       `json:"c,omitempty"`
}

// askClaim asks whether the account that the provider returned belongs to the user before it is
// linked. The browser may be signed in at the provider as someone else, who could then sign in here
// as this user (RFC 6749 §10.12).
func (s *ProviderSignIns) askClaim(ctx context.Context, r delegation.Result, p Payload, token storage.Hash) Step {
	c := ClaimForm{
		Ticket:   r.Claim.Ticket,
		Provider: r.Request.Provider,
		Label:    r.Claim.Label,
		Subject:  r.Claim.Subject,
		UserID:   r.Request.UserID,
		Session:  token,
		Connect:  p.Connect,
	}
	v, err := s.Flow.Browsers.VisitOf(ctx, c.Session, c.UserID)
	if err != nil {
		return Fail{Err: err}
	}
	provider, _ := s.Flow.Options.Provider(c.Provider)
	return AskClaim{c, provider, v.User.Name}
}

// Claim carries out a user's answer. A user without a recent authentication is asked for one first:
// no account is linked, and they begin again.
func (s *ProviderSignIns) Claim(ctx context.Context, c ClaimForm, verdict string) Step {
	if _, err := s.Flow.Browsers.VisitOf(ctx, c.Session, c.UserID); err != nil {
		return Fail{Err: err}
	}
	p := Payload{Destination: entry.Destination{Connect: c.Connect}}
	switch verdict {
	case "approve":
		if err := s.mayTie(ctx, c.Session, c.UserID); err != nil {
			return unproved(p.Destination, err)
		}
		result, err := s.Delegation.Claim(ctx, c.Ticket, c.UserID)
		if err != nil {
			return s.claimFailed(c, err)
		}
		s.Notices.Tell(ctx, c.UserID, notice.Change{Kind: notice.AccountConnected, Detail: c.Provider})
		return s.goOn(ctx, p, result, storage.Session{})
	case "deny":
		if err := s.Delegation.Disclaim(ctx, c.Ticket, c.UserID); err != nil {
			return s.claimFailed(c, err)
		}
		if c.Connect != "" {
			return s.connected(ctx, c.Connect, true)
		}
		return SignInStep{entry.Continue{}}
	}
	return incomplete
}

func (s *ProviderSignIns) claimFailed(c ClaimForm, err error) Step {
	provider, _ := s.Flow.Options.Provider(c.Provider)
	return ProviderFailed{Provider: provider, To: entry.Destination{Connect: c.Connect}, Err: refusal.Protocol(err)}
}
