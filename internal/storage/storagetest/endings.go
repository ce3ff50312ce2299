package storagetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/ending"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// endings uses every waiting item after each act that ends access. Every pair of package ending is
// a test.
func endings(t *testing.T, e *env) {
	for _, row := range ending.Table() {
		for _, w := range ending.Everything() {
			ends := slices.Contains(row.Ends, w)
			kept := slices.ContainsFunc(row.Keeps, func(k ending.Kept) bool { return slices.Contains(k.Waiting, w) })
			t.Run(fmt.Sprintf("EN-01 %s: %s", row.Act, w), func(t *testing.T) {
				if ends == kept {
					t.Fatal("the table has to say that it is ended or kept, and not both")
				}
				x := newEnding(t, e)
				use := x.waiting(t, w)
				check(t, x.act(t, row.Act))
				err := use(x.signsIn())
				if ends && err == nil {
					t.Error("it can still be used")
				}
				if kept && err != nil {
					t.Errorf("it is of no use any more: %v", err)
				}
			})
		}
		t.Run(fmt.Sprintf("EN-02 %s: a pause", row.Act), func(t *testing.T) { pauseAfter(t, newEnding(t, e), row) })
	}
}

// pauseAfter checks that a pause lasts after an act and refuses every grant, unless the act ends
// it.
func pauseAfter(t *testing.T, x *endedThings, row ending.Row) {
	check(t, x.s.PauseGrant(x.ctx, x.ID, x.grant.Grant.ID, x.now))
	check(t, x.act(t, row.Act))
	left, err := x.s.Pauses(x.ctx, x.ID)
	check(t, err)
	if lasts := len(left) == 1; lasts == row.EndsPause {
		t.Fatalf("the pause lasts: %v", lasts)
	}
	session := x.signsIn()
	if session == (storage.Hash{}) { // the account no longer exists
		return
	}
	x.client.ID = secrets.ID("mcp_") // the program registers again
	a := x.approves(session)
	a.Now = x.later.Add(time.Second)
	a.Grant.CreatedAt = a.Now
	var want error
	if !row.EndsPause {
		want = storage.ErrPaused
	}
	wantErr(t, x.s.Approve(x.ctx, a), want)
}

// endedThings is a user with an application and waiting items.
type endedThings struct {
	*env
	person
	client  storage.Client
	grant   storage.Approval
	refresh storage.PresentedRefresh
	arrival storage.Arrival // of the user at a provider
	later   time.Time       // when the act takes place
}

func newEnding(t *testing.T, e *env) *endedThings {
	t.Helper()
	x := &endedThings{env: e, client: e.client(), later: e.now.Add(time.Second)}
	id := secrets.ID("usr_")
	x.person = person{
		User:    storage.User{ID: id, Name: "Name" + id, PasswordHash: "$old", CreatedAt: e.now},
		session: randomHash(),
	}
	check(t, e.s.CreateUser(e.ctx, x.User))
	e.signIn(t, x.person)
	linked := e.link("acme", x.ID)
	e.arrive(t, linked)
	x.arrival = e.arrival()
	x.arrival.Identity = linked.Identity
	x.arrival.Identity.UserID = ""
	x.grant = x.approves(x.session)
	check(t, e.s.Approve(e.ctx, x.grant))
	x.refresh = e.redeem(t, e.redemption(x.grant))
	return x
}

// approves returns an approval of the application in a session.
func (x *endedThings) approves(session storage.Hash) storage.Approval {
	a := x.approval(x.person)
	a.Session, a.Client, a.Grant.ClientID = session, &x.client, x.client.ID
	return a
}

// signsIn returns a new session of the user after the act, the zero Hash if that is not possible.
func (x *endedThings) signsIn() storage.Hash {
	at := x.later.Add(time.Second)
	se := storage.Session{
		Hash: randomHash(), UserID: x.ID, AuthTime: at, CreatedAt: at, ExpiresAt: at.Add(time.Hour),
	}
	if x.s.PutSession(x.ctx, se, storage.SignInStart{At: at}) != nil {
		return storage.Hash{}
	}
	return se.Hash
}

// waiting creates a waiting item, and returns the function that uses it in a session begun after
// the act.
func (x *endedThings) waiting(t *testing.T, w ending.Waiting) func(session storage.Hash) error {
	t.Helper()
	if use := x.waitingAccess(t, w); use != nil {
		return use
	}
	if use := x.waitingLink(t, w); use != nil {
		return use
	}
	after := x.later.Add(time.Second)
	begins := x.begins(x.ID)
	switch w {
	case ending.SignIn, ending.PasskeyChallenge:
		by := storage.SignInStart{At: x.now}
		if w == ending.SignIn {
			by.PasswordHash = x.PasswordHash
		}
		return func(storage.Hash) error { return x.s.PutSession(x.ctx, begins, by) }
	case ending.RemoteSignIn:
		r := x.remote(t)
		check(t, x.s.DecideRemoteSignIn(x.ctx, r.Secret, &x.session, x.now))
		return func(storage.Hash) error { return x.s.CollectRemoteSignIn(x.ctx, r.Secret, begins, after) }
	case ending.Departure:
		a := x.arrival
		a.NewUser, a.LeftAt, a.Now = nil, x.now, after
		return func(storage.Hash) error {
			_, err := x.s.Arrive(x.ctx, a)
			return err
		}
	case ending.Assertion:
		return x.waitingAssertion(t)
	case ending.Notice:
		n := storage.Notice{ID: secrets.ID("ntc_"), UserID: x.ID, Kind: "password-changed", At: x.now}
		check(t, x.s.PutNotice(x.ctx, n))
		return func(storage.Hash) error {
			unseen, err := x.s.UnseenNotices(x.ctx, x.ID)
			if err == nil && len(unseen) == 0 {
				err = storage.ErrNotFound
			}
			return err
		}
	}
	t.Fatalf("nothing tries what waits as %q", w)
	return nil
}

// waitingAccess is waiting for items of applications.
func (x *endedThings) waitingAccess(t *testing.T, w ending.Waiting) func(session storage.Hash) error {
	t.Helper()
	after := x.later.Add(time.Second)
	redeem := func(a storage.Approval) func(storage.Hash) error {
		r := x.redemption(a)
		r.Now = after
		return func(storage.Hash) error {
			_, err := x.s.RedeemCode(x.ctx, r)
			return err
		}
	}
	device := func() storage.Approval {
		a := x.deviceApprovalOf(x.person)
		a.Client, a.Grant.ClientID = &x.client, x.client.ID
		x.device(t, a)
		return a
	}
	switch w {
	case ending.Code:
		a := x.approves(x.session)
		check(t, x.s.Approve(x.ctx, a))
		return redeem(a)
	case ending.DeviceCode:
		a := device()
		check(t, x.s.ApproveDevice(x.ctx, a))
		return redeem(a)
	case ending.DeviceRequest:
		a := device()
		return func(session storage.Hash) error {
			if session == (storage.Hash{}) { // the holder of the device may ask another user
				other := x.env.person(t)
				session, a.Grant.UserID = other.session, other.ID
			}
			a.Session, a.Now = session, after
			return x.s.ApproveDevice(x.ctx, a)
		}
	case ending.PushedRequest:
		r := x.pushed(t)
		return func(storage.Hash) error {
			_, err := x.open(r, randomHash(), after)
			return err
		}
	case ending.Page:
		return func(storage.Hash) error { return x.s.Approve(x.ctx, x.approves(x.session)) }
	case ending.Consent:
		return func(session storage.Hash) error {
			a := x.approves(session)
			a.Remembered, a.Now = a.Grant.Scopes, after
			return x.s.Approve(x.ctx, a)
		}
	case ending.CallWaits:
		c := x.ask(t, x.clearance(x.grant))
		return func(session storage.Hash) error { return x.decide(c, session, true, after) }
	case ending.CallGiven:
		c := x.ask(t, x.clearance(x.grant))
		check(t, x.decide(c, x.session, true, x.now))
		return func(storage.Hash) error {
			got, err := x.s.AskClearance(x.ctx, again(c, after))
			if err == nil && got.State != storage.ClearanceSpent {
				err = storage.ErrNotFound
			}
			return err
		}
	}
	return nil
}

// waitingLink is waiting for links.
func (x *endedThings) waitingLink(t *testing.T, w ending.Waiting) func(session storage.Hash) error {
	t.Helper()
	after := x.later.Add(time.Second)
	put := func(l storage.OneTimeLink) storage.OneTimeLink {
		check(t, x.s.PutLink(x.ctx, l, x.now))
		return l
	}
	recoverBy := func(kind storage.LinkKind) func(storage.Hash) error {
		r := x.recovery(put(x.oneTime(kind, x.ID)))
		r.Now = after
		return func(storage.Hash) error {
			_, err := x.s.RecoverAccount(x.ctx, r)
			return err
		}
	}
	switch w {
	case ending.RecoveryLink:
		return recoverBy(storage.LinkRecover)
	case ending.ResetLink:
		return recoverBy(storage.LinkReset)
	case ending.Invitation:
		l := x.invitation(secrets.ID("Invited"))
		l.Role = ""
		put(l)
		u := storage.User{ID: secrets.ID("usr_"), PasswordHash: "$h", CreatedAt: after}
		return func(storage.Hash) error {
			_, _, err := x.s.AcceptInvitation(x.ctx, storage.Acceptance{Hash: l.Hash, User: u, Now: after})
			return err
		}
	case ending.SetupLink:
		h := randomHash()
		check(t, x.s.PutSetupToken(x.ctx, h, x.now.Add(time.Hour), x.now))
		return func(storage.Hash) error { return x.s.CheckSetupToken(x.ctx, h, after) }
	}
	return nil
}

// waitingAssertion is waiting for an assertion about the user that was issued before the act.
func (x *endedThings) waitingAssertion(t *testing.T) func(session storage.Hash) error {
	t.Helper()
	n := storage.TrustName{Issuer: acme, Kind: storage.TrustSubject, Subject: "sub " + x.ID}
	x.tiedTo(t, x.person, n)
	a := x.assertion()
	a.Person = &storage.AssertedPerson{Issuer: n.Issuer, Subject: n.Subject}
	a.Client, a.Grant.ClientID = nil, x.client.ID
	a.Grant.CreatedAt = x.later.Add(time.Second)
	return func(storage.Hash) error {
		_, err := x.s.GrantAssertion(x.ctx, a)
		return err
	}
}

// act carries out an act at later.
func (x *endedThings) act(t *testing.T, act ending.Act) error {
	t.Helper()
	grant, now := x.grant.Grant.ID, x.later
	switch act {
	case ending.Disconnect:
		return x.s.WithdrawGrant(x.ctx, grant, storage.ByPerson, now)
	case ending.Narrow:
		return x.s.NarrowGrant(x.ctx, x.ID, grant, oauth.Scopes{"mcp"}, now)
	case ending.Pause:
		return x.s.PauseGrant(x.ctx, x.ID, grant, now)
	case ending.ClientRevokes:
		_, err := x.s.RevokeRefresh(x.ctx, x.refresh, x.client.ID, now)
		return err
	case ending.CutPerson:
		_, err := x.s.CutGrants(x.ctx, storage.Selection{UserID: x.ID}, storage.ByOperator, now)
		return err
	case ending.DeleteClient:
		return x.s.DeleteClient(x.ctx, x.client.ID, now)
	case ending.RotateSecret:
		h := randomHash()
		x.client.SecretHash = &h
		return x.s.ReplaceClient(x.ctx, x.client, now)
	}
	return x.actOnAccount(t, act)
}

// actOnAccount is act for an act on the account.
func (x *endedThings) actOnAccount(t *testing.T, act ending.Act) error {
	t.Helper()
	now := x.later
	use := func(kind storage.LinkKind) error {
		l := x.oneTime(kind, x.ID)
		if kind == storage.LinkRecover { // a new one would replace the waiting one
			if there, err := x.s.RecoveryLink(x.ctx, x.ID, now); err == nil {
				l = there
			}
		}
		err := x.s.PutLink(x.ctx, l, x.now)
		if err != nil {
			return err
		}
		r := x.recovery(l)
		r.Now = now
		_, err = x.s.RecoverAccount(x.ctx, r)
		return err
	}
	switch act {
	case ending.NewPassword:
		return x.s.ChangePassword(x.ctx, x.ID, "$new", x.session, now)
	case ending.Passwd:
		return x.s.SetPassword(x.ctx, x.ID, "$new", true, now)
	case ending.SetMail:
		return x.s.SetMail(x.ctx, x.ID, "new@a.example")
	case ending.Disable:
		return errors.Join(x.s.SetUserDisabled(x.ctx, x.ID, true, now), x.s.SetUserDisabled(x.ctx, x.ID, false, now))
	case ending.DeleteUser:
		return x.s.DeleteUser(x.ctx, x.ID, now)
	case ending.StopEverything:
		return x.s.StopEverything(x.ctx, x.ID, now)
	case ending.Recovery:
		return use(storage.LinkRecover)
	case ending.Reset:
		return use(storage.LinkReset)
	case ending.SignOut:
		return x.s.EndSession(x.ctx, x.session, now)
	}
	t.Fatalf("nothing carries out %q", act)
	return nil
}
