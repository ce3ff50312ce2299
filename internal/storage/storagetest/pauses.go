package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// pausing is a user who has paused an application that each installation registers for itself.
type pausing struct {
	*env
	person
	app   storage.Client
	grant storage.Approval
	trust storage.TrustName // an issuer's name for the user
}

func (e *env) pausing(t testing.TB) *pausing {
	t.Helper()
	x := &pausing{env: e, person: e.person(t), app: e.client()}
	x.trust = storage.TrustName{Issuer: acme, Kind: storage.TrustSubject, Subject: "sub " + x.ID}
	e.tiedTo(t, x.person, x.trust)
	x.grant = x.page()
	check(t, e.s.Approve(e.ctx, x.grant))
	e.redeem(t, e.redemption(x.grant))
	return x
}

// registration returns another registration of the application.
func (x *pausing) registration() *storage.Client {
	cl := x.app
	cl.ID = secrets.ID("mcp_")
	return &cl
}

// page returns an approval on the consent page through another registration.
func (x *pausing) page() storage.Approval {
	a := x.approval(x.person)
	a.Client = x.registration()
	a.Grant.ClientID, a.PageUntil = a.Client.ID, x.now.Add(time.Hour)
	return a
}

// asserted returns an assertion about the user for another registration.
func (x *pausing) asserted() storage.AssertionGrant {
	a := x.assertion()
	a.Person = &storage.AssertedPerson{Issuer: x.trust.Issuer, Subject: x.trust.Subject}
	a.Client = x.registration()
	a.Grant.ClientID = a.Client.ID
	return a
}

// approveDevice approves the request of a device of another registration.
func (x *pausing) approveDevice(t testing.TB, s storage.Store) (storage.Approval, error) {
	t.Helper()
	a := x.deviceApprovalOf(x.person)
	a.Client = x.registration()
	a.Grant.ClientID = a.Client.ID
	x.device(t, a)
	return a, s.ApproveDevice(x.ctx, a)
}

// wantPaused checks that all ways to get a grant return want.
func (x *pausing) wantPaused(t testing.TB, want error) {
	t.Helper()
	wantErr(t, x.s.Approve(x.ctx, x.page()), want)
	silent := x.page()
	silent.Remembered, silent.PageUntil = silent.Grant.Scopes, time.Time{}
	if want != nil { // otherwise no grant exists
		wantErr(t, x.s.Approve(x.ctx, silent), want)
	}
	_, err := x.approveDevice(t, x.s)
	wantErr(t, err, want)
	_, err = x.s.GrantAssertion(x.ctx, x.asserted())
	wantErr(t, err, want)
}

// pauseOf returns the user's only pause.
func (x *pausing) pauseOf(t testing.TB) storage.Pause {
	t.Helper()
	all, err := x.s.Pauses(x.ctx, x.ID)
	check(t, err)
	if len(all) != 1 {
		t.Fatalf("%d pauses, want 1", len(all))
	}
	return all[0]
}

// lastingPauses checks that a pause outlives the grants and the clients, until it is resumed.
func lastingPauses(t *testing.T, e *env) {
	ends := map[string]func(x *pausing){
		"nothing ends": func(*pausing) {},
		"its grant is revoked": func(x *pausing) {
			check(t, e.s.RevokeGrant(e.ctx, x.grant.Grant.ID, storage.ByClient, e.now))
		},
		"its grant expires": func(x *pausing) {
			x.now = x.grant.Grant.ExpiresAt.Add(time.Minute)
			x.session = randomHash()
			x.signIn(t, x.person)
		},
		"its client is deleted": func(x *pausing) {
			check(t, e.s.DeleteClient(e.ctx, x.grant.Grant.ClientID, e.now))
		},
		"everything is swept": func(x *pausing) {
			x.now = x.grant.Grant.ExpiresAt.Add(48 * time.Hour)
			_, err := e.s.Sweep(e.ctx, storage.Retention{Now: x.now, ClientUnused: x.now, ClientIdle: x.now}, 10_000)
			check(t, err)
			x.session = randomHash()
			x.signIn(t, x.person)
		},
	}
	for name, end := range ends {
		t.Run("EN-02 a pause lasts when "+name, func(t *testing.T) {
			here := *e
			x := here.pausing(t)
			check(t, x.s.PauseGrant(x.ctx, x.ID, x.grant.Grant.ID, x.now))
			p := x.pauseOf(t)
			same(t, p, storage.Pause{
				ID: storage.PauseID(x.ID, x.app.Application(), x.grant.Grant.Resource), UserID: x.ID,
				Application: x.app.Application(), Resource: x.grant.Grant.Resource, ClientID: x.grant.Grant.ClientID,
				ClientName: x.app.Name, At: x.now,
			})
			end(x)
			x.wantPaused(t, storage.ErrPaused)
			same(t, x.pauseOf(t), p)
			check(t, x.s.EndPause(x.ctx, x.ID, p.ID, x.now))
			x.wantPaused(t, nil)
		})
	}
	t.Run("EN-02 a pause is of one person, one application and one MCP server", func(t *testing.T) {
		x, other := e.pausing(t), e.person(t)
		check(t, e.s.PauseGrant(e.ctx, x.ID, x.grant.Grant.ID, e.now))
		theirs := x.page()
		theirs.Session, theirs.Grant.UserID = other.session, other.ID
		check(t, e.s.Approve(e.ctx, theirs))
		elsewhere := x.page()
		elsewhere.Grant.Resource = "https://other.example/mcp"
		check(t, e.s.Approve(e.ctx, elsewhere))
		named := x.page()
		named.Client.Name = "Another name"
		check(t, e.s.Approve(e.ctx, named))
		p := x.pauseOf(t)
		wantErr(t, e.s.EndPause(e.ctx, other.ID, p.ID, e.now), storage.ErrNotFound)
		wantErr(t, e.s.EndPause(e.ctx, x.ID, "pau_none", e.now), storage.ErrNotFound)
		_, err := e.s.PauseByID(e.ctx, "pau_none")
		wantErr(t, err, storage.ErrNotFound)
		got, err := e.s.PauseByID(e.ctx, p.ID)
		check(t, err)
		same(t, got, p)
		x.wantPaused(t, storage.ErrPaused)
	})
	t.Run("EN-02 the client that was paused stays so under another name", func(t *testing.T) {
		x := e.pausing(t)
		check(t, e.s.PauseGrant(e.ctx, x.ID, x.grant.Grant.ID, e.now))
		p, renamed := x.pauseOf(t), *x.grant.Client
		renamed.Name, renamed.RedirectURIs = "Another name", []string{"https://elsewhere.example/cb"}
		renamed.Source = storage.SourceManaged
		check(t, e.s.ReplaceClient(e.ctx, renamed, e.now))
		x.app = renamed
		tries := func(want error) {
			t.Helper()
			a := x.page()
			a.Client, a.Grant.ClientID = &renamed, renamed.ID
			wantErr(t, e.s.Approve(e.ctx, a), want)
			d := x.deviceApprovalOf(x.person)
			d.Client, d.Grant.ClientID = &renamed, renamed.ID
			x.device(t, d)
			wantErr(t, e.s.ApproveDevice(e.ctx, d), want)
			asserted := x.asserted()
			asserted.Client, asserted.Grant.ClientID = nil, renamed.ID
			_, err := e.s.GrantAssertion(e.ctx, asserted)
			wantErr(t, err, want)
		}
		tries(storage.ErrPaused)
		found, err := e.s.PauseOf(e.ctx, x.ID, &renamed, p.Resource)
		check(t, err)
		same(t, found, p)
		_, err = e.s.PauseOf(e.ctx, e.person(t).ID, &renamed, p.Resource)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.PauseOf(e.ctx, x.ID, &renamed, "https://other.example/mcp")
		wantErr(t, err, storage.ErrNotFound)
		check(t, e.s.EndPause(e.ctx, x.ID, p.ID, e.now))
		tries(nil)
		_, err = e.s.PauseOf(e.ctx, x.ID, &renamed, p.Resource)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("EN-02 a refused assertion is not spent", func(t *testing.T) {
		x := e.pausing(t)
		check(t, e.s.PauseGrant(e.ctx, x.ID, x.grant.Grant.ID, e.now))
		a := x.asserted()
		_, err := e.s.GrantAssertion(e.ctx, a)
		wantErr(t, err, storage.ErrPaused)
		check(t, e.s.EndPause(e.ctx, x.ID, x.pauseOf(t).ID, e.now))
		_, err = e.s.GrantAssertion(e.ctx, a)
		check(t, err)
	})
}

// pausedApplications checks the other effects of a pause, and their limit.
func pausedApplications(t *testing.T, e *env) {
	t.Run("EN-02 a resumed grant has its application go on, and the other way round", func(t *testing.T) {
		x := e.pausing(t)
		for range 2 {
			check(t, e.s.PauseGrant(e.ctx, x.ID, x.grant.Grant.ID, e.now))
		}
		e.wantLive(t, x.grant, false)
		check(t, e.s.EndPause(e.ctx, x.ID, x.pauseOf(t).ID, e.now))
		e.wantLive(t, x.grant, true)
		check(t, e.s.PauseGrant(e.ctx, x.ID, x.grant.Grant.ID, e.now))
		check(t, e.s.ResumeGrant(e.ctx, x.ID, x.grant.Grant.ID, e.now))
		x.wantPaused(t, nil)
	})
	t.Run("EN-02 a key for a program is paused by its grant", func(t *testing.T) {
		p := e.person(t)
		k := e.programKey(p)
		check(t, e.s.MakeProgramKey(e.ctx, k))
		check(t, e.s.PauseGrant(e.ctx, p.ID, k.Grant.ID, e.now))
		all, err := e.s.Pauses(e.ctx, p.ID)
		check(t, err)
		same(t, len(all), 0)
	})
	t.Run("EN-02 a person has no more pauses than MaxPauses", func(t *testing.T) {
		x := e.pausing(t)
		first := x.grant.Grant.ID
		for i := range storage.MaxPauses {
			a := x.page()
			a.Grant.Resource = fmt.Sprintf("https://%d.example/mcp", i)
			check(t, e.s.Approve(e.ctx, a))
			e.redeem(t, e.redemption(a))
			check(t, e.s.PauseGrant(e.ctx, x.ID, a.Grant.ID, e.now))
			check(t, e.s.PauseGrant(e.ctx, x.ID, a.Grant.ID, e.now)) // its pause already counts
		}
		wantErr(t, e.s.PauseGrant(e.ctx, x.ID, first, e.now), storage.ErrFull)
		e.wantLive(t, x.grant, true)
		all, err := e.s.Pauses(e.ctx, x.ID)
		check(t, err)
		same(t, len(all), storage.MaxPauses)
		check(t, e.s.EndPause(e.ctx, x.ID, all[0].ID, e.now))
		check(t, e.s.PauseGrant(e.ctx, x.ID, first, e.now))
	})
	t.Run("EN-02 a grant names its application, and how many connections that has", func(t *testing.T) {
		x := e.pausing(t)
		more := x.page()
		check(t, e.s.Approve(e.ctx, more))
		e.redeem(t, e.redemption(more))
		check(t, e.s.Approve(e.ctx, x.page())) // not redeemed
		got, err := e.s.GrantApplication(e.ctx, more.Grant.ID, e.now)
		check(t, err)
		same(t, got, storage.Application{Key: x.app.Application(), Connections: 2})
		_, err = e.s.GrantApplication(e.ctx, "gr_none", e.now)
		wantErr(t, err, storage.ErrNotFound)
	})
}

// raceLastingPause pauses an application while the user approves it in every way. Afterwards no
// approval is usable, and none follows.
func raceLastingPause(t *testing.T, e *env) { racePauses(t, e, e.s) }

// PauseElsewhere is the same race, where another handle on the database pauses, such as a command
// beside a server, or another replica.
func PauseElsewhere(t *testing.T, here, elsewhere storage.Store) {
	t.Run("EN-02 a pause by one replica, and every way to a grant at another", func(t *testing.T) {
		e := newEnv(t, here)
		racePauses(t, e, elsewhere)
		x := e.pausing(t)
		check(t, elsewhere.PauseGrant(e.ctx, x.ID, x.grant.Grant.ID, e.now))
		x.wantPaused(t, storage.ErrPaused)
		check(t, elsewhere.EndPause(e.ctx, x.ID, x.pauseOf(t).ID, e.now))
		x.wantPaused(t, nil)
	})
}

func racePauses(t *testing.T, e *env, by storage.Store) {
	for range 10 {
		x := e.pausing(t)
		asked := make([]storage.Approval, racers) // each is approved and redeemed by one racer
		redeemed := make([]bool, racers)
		asserted := make([]storage.AssertionOutcome, racers)
		allowed := []error{storage.ErrPaused, storage.ErrExpired, storage.ErrRevoked}
		var c tally
		compete(func(i int) {
			switch {
			case i == 0:
				c.add(by.PauseGrant(x.ctx, x.ID, x.grant.Grant.ID, x.now))
				x.wantPaused(t, storage.ErrPaused)
			case i%4 == 1:
				out, err := x.s.GrantAssertion(x.ctx, x.asserted())
				asserted[i] = out
				c.add(err, allowed...)
			case i%4 == 2:
				a, err := x.approveDevice(t, x.s)
				if asked[i] = a; err == nil {
					_, err = x.s.RedeemCode(x.ctx, x.redemption(a))
					redeemed[i] = err == nil
				}
				c.add(err, allowed...)
			default:
				a := x.page()
				err := x.s.Approve(x.ctx, a)
				if asked[i] = a; err == nil {
					_, err = x.s.RedeemCode(x.ctx, x.redemption(a))
					redeemed[i] = err == nil
				}
				c.add(err, allowed...)
			}
		})
		for _, err := range c.odd {
			t.Error(err)
		}
		for i := range racers {
			if redeemed[i] {
				x.wantLive(t, asked[i], false)
			}
			if asked[i].Grant.ID != "" && !redeemed[i] {
				if _, err := x.s.RedeemCode(x.ctx, x.redemption(asked[i])); err == nil {
					t.Error("an earlier code is redeemed after the pause")
				}
			}
			if g := asserted[i].Grant; g.ID != "" {
				x.wantLive(t, storage.Approval{Grant: g}, false)
			}
		}
		x.wantPaused(t, storage.ErrPaused)
	}
}

// deniedCalls checks that the denial of a call holds for the user's application, through any
// connection, and for as long as it held for the grant.
func deniedCalls(t *testing.T, e *env) {
	x := e.pausing(t)
	first := e.ask(t, e.clearance(x.grant))
	check(t, e.decide(first, x.session, false, e.now))
	connect := func(change func(*storage.Client)) storage.Approval {
		t.Helper()
		a := x.page()
		change(a.Client)
		check(t, e.s.Approve(e.ctx, a))
		e.redeem(t, e.redemption(a))
		return a
	}
	unchanged := func(*storage.Client) {}
	state := func(c storage.Clearance) storage.ClearanceState {
		t.Helper()
		return e.ask(t, c).State
	}
	again := connect(unchanged)
	t.Run("EN-02 a denial holds for a new connection of the application", func(t *testing.T) {
		got := e.ask(t, e.clearance(again))
		same(t, got.ID, first.ID)
		same(t, got.State, storage.ClearanceRefused)
	})
	t.Run("EN-02 a denial outlives the connection", func(t *testing.T) {
		check(t, e.s.DeleteClient(e.ctx, x.grant.Grant.ClientID, e.now))
		same(t, state(e.clearance(connect(unchanged))), storage.ClearanceRefused)
	})
	t.Run("EN-02 a denial is of one call, one application and one person", func(t *testing.T) {
		tool, arguments := e.clearance(again), e.clearance(again)
		tool.Tool, arguments.Digest = "read", storage.Hash{2}
		same(t, state(tool), storage.ClearanceWaits)
		same(t, state(arguments), storage.ClearanceWaits)
		same(t, state(e.clearance(connect(func(cl *storage.Client) { cl.Name = "Other" }))), storage.ClearanceWaits)
		y := e.pausing(t)
		same(t, state(e.clearance(y.grant)), storage.ClearanceWaits)
	})
	t.Run("EN-02 a denial ends when it would have for the grant", func(t *testing.T) {
		late := e.clearance(again)
		late.CreatedAt = first.ExpiresAt
		late.ExpiresAt = late.CreatedAt.Add(time.Minute)
		same(t, state(late), storage.ClearanceWaits)
	})
}
