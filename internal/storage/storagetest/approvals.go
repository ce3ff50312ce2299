package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// wantApproved checks whether an approval is stored and its code is unused.
func (e *env) wantApproved(t *testing.T, a storage.Approval, want bool) {
	t.Helper()
	got, err := e.s.Approved(e.ctx, a)
	check(t, err)
	if got != want {
		t.Errorf("approved: got %v, want %v", got, want)
	}
}

// approvedTwice checks the result of a repeated approval.
func approvedTwice(t *testing.T, e *env) {
	p, cl := e.person(t), e.client()
	a := e.placed(p, cl, claudeAI, "mcp", "notes:write")
	e.wantApproved(t, a, false)
	check(t, e.s.Approve(e.ctx, a))
	wantErr(t, e.s.Approve(e.ctx, a), storage.ErrExists)
	e.wantApproved(t, a, true)
	t.Run("of another choice, person, code or client it is not the same", func(t *testing.T) {
		for _, change := range []func(*storage.Approval){
			func(a *storage.Approval) { a.Grant.Scopes = oauth.Scopes{"mcp"} },
			func(a *storage.Approval) { a.Grant.UserID = e.person(t).ID },
			func(a *storage.Approval) { a.Grant.Resource = "https://other.example/mcp" },
			func(a *storage.Approval) { a.Grant.ClientID = "another" },
			func(a *storage.Approval) { a.Code.Hash = randomHash() },
			func(a *storage.Approval) { a.Code.Challenge = "another" },
			func(a *storage.Approval) { a.Code.RedirectURI = "https://other.example/cb" },
			func(a *storage.Approval) { a.Now = a.Code.ExpiresAt },
		} {
			other := a
			change(&other)
			e.wantApproved(t, other, false)
		}
	})
	t.Run("one whose code was redeemed waits no longer", func(t *testing.T) {
		_, err := e.s.RedeemCode(e.ctx, e.redemption(a))
		check(t, err)
		wantErr(t, e.s.Approve(e.ctx, a), storage.ErrExists)
		e.wantApproved(t, a, false)
		e.wantLive(t, a, true)
	})
	t.Run("one that was taken back brings neither grant nor consent back", func(t *testing.T) {
		check(t, e.s.WithdrawGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now))
		e.wantConsent(t, p, cl, claudeAI)
		again := a
		again.Now = a.Now.Add(time.Second)
		wantErr(t, e.s.Approve(e.ctx, again), storage.ErrExists)
		e.wantApproved(t, again, false)
		e.wantConsent(t, p, cl, claudeAI)
		e.wantLive(t, a, false)
	})
}

// onPage returns an approval on a page that can be answered until a time.
func (e *env) onPage(p person, cl storage.Client) storage.Approval {
	a := e.placed(p, cl, claudeAI, "mcp", "notes:write")
	a.PageUntil = e.now.Add(time.Hour)
	return a
}

// denied checks that a page is either approved or denied.
func denied(t *testing.T, e *env) {
	p, cl := e.person(t), e.client()
	a := e.onPage(p, cl)
	check(t, e.s.Deny(e.ctx, a.Grant.ID, a.PageUntil))
	check(t, e.s.Deny(e.ctx, a.Grant.ID, a.PageUntil))
	wantErr(t, e.s.Approve(e.ctx, a), storage.ErrExists)
	e.wantApproved(t, a, false)
	e.wantConsent(t, p, cl, claudeAI)
	b := e.onPage(p, cl)
	check(t, e.s.Approve(e.ctx, b))
	for range 2 {
		wantErr(t, e.s.Deny(e.ctx, b.Grant.ID, b.PageUntil), storage.ErrExists)
	}
	wantErr(t, e.s.Approve(e.ctx, b), storage.ErrExists)
	e.wantApproved(t, b, true)
	other := e.onPage(e.person(t), cl)
	other.Session = randomHash()
	wantErr(t, e.s.Approve(e.ctx, other), storage.ErrNotFound)
	check(t, e.s.Deny(e.ctx, other.Grant.ID, other.PageUntil)) // it was not approved
}

// raceDenied posts pages 32 times, with both answers.
func raceDenied(t *testing.T, e *env) {
	for range 8 {
		a := e.onPage(e.person(t), e.client())
		var yes, no tally
		compete(func(i int) {
			if i%2 == 0 {
				yes.add(e.s.Approve(e.ctx, a), storage.ErrExists)
			} else {
				no.add(e.s.Deny(e.ctx, a.Grant.ID, a.PageUntil), storage.ErrExists)
			}
		})
		if approved, denials := yes.won, no.won; approved > 1 || approved == 1 && denials > 0 || approved+denials == 0 {
			t.Errorf("%d approvals and %d denials of one page", approved, denials)
		}
	}
}

// raceApproved posts one form 32 times.
func raceApproved(t *testing.T, e *env) {
	a := e.placed(e.person(t), e.client(), claudeAI, "mcp")
	var c tally
	compete(func(int) { c.add(e.s.Approve(e.ctx, a), storage.ErrExists) })
	c.want(t, 1)
	e.wantApproved(t, a, true)
}
