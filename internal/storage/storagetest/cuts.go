package storagetest

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// crowd is more grants than one verb marks by itself.
const crowd = 300

// crowded is a crowd of grants. Fields that are set are common to all of them; the others differ.
type crowded struct {
	p                  person
	cl                 storage.Client
	resource           string
	all                []storage.Approval
	refresh            storage.PresentedRefresh // of the first grant
	pending, bystander storage.Approval
	otherRefresh       storage.PresentedRefresh
}

func (e *env) crowd(t *testing.T, onePerson, oneClient bool) crowded {
	t.Helper()
	c := crowded{p: e.person(t), cl: e.client(), resource: "https://" + secrets.ID("r") + ".example/mcp"}
	check(t, e.s.PutClient(e.ctx, c.cl))
	c.all = make([]storage.Approval, crowd)
	for i := range c.all {
		a := e.approval(c.p)
		if !onePerson && i%30 == 0 { // to save time: few users with many grants
			c.p = e.person(t)
			a = e.approval(c.p)
		}
		if oneClient {
			a.Client, a.Grant.ClientID = nil, c.cl.ID
		}
		a.Grant.Resource, a.Grant.Scopes = c.resource, oauth.Scopes{"mcp"}
		a.Place = secrets.ID("https://") // a different approval for each
		c.all[i] = a
	}
	var wg sync.WaitGroup
	for part := range slices.Chunk(c.all, 20) {
		wg.Go(func() {
			for _, a := range part {
				if err := e.s.Approve(e.ctx, a); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	r := e.redemption(c.all[0])
	c.refresh, c.pending = e.redeem(t, r), c.all[1]
	c.bystander, c.otherRefresh = e.granted(t)
	return c
}

// grantedAgain stores a new approval with the same terms as one of the crowd.
func (e *env) grantedAgain(t *testing.T, like storage.Approval) storage.Approval {
	t.Helper()
	a := like
	if _, err := e.s.Visit(e.ctx, storage.VisitKey{Session: a.Session, Now: e.now}); errors.Is(err,
		storage.ErrNotFound) {
		u, err := e.s.User(e.ctx, a.Grant.UserID)
		check(t, err)
		p := person{u, randomHash()}
		e.signIn(t, p)
		a.Session = p.session
	}
	a.Grant.ID, a.Code.Hash = secrets.ID("gr_"), randomHash()
	check(t, e.s.Approve(e.ctx, a))
	return a
}

// wantCut checks that every verb treats the crowd as revoked and its consents as forgotten.
func (e *env) wantCut(t *testing.T, c crowded) {
	t.Helper()
	first := c.all[0]
	e.wantLive(t, first, false)
	e.wantLive(t, c.all[crowd-1], false)
	e.wantRefreshRefused(t, first, c.refresh)
	_, err := e.s.RedeemCode(e.ctx, e.redemption(c.pending))
	wantErr(t, err, storage.ErrRevoked)
	left, err := e.s.ListGrants(e.ctx, first.Grant.UserID, first.Grant.ClientID, "", 2*crowd)
	check(t, err)
	if len(left) > 0 {
		t.Errorf("%d grants are listed", len(left))
	}
	e.wantLive(t, c.bystander, true)
}

// wantForgotten checks that a signed-in user of the crowd has no consent left.
func (e *env) wantForgotten(t *testing.T, like storage.Approval) {
	t.Helper()
	k := storage.VisitKey{
		Session: like.Session, ClientID: like.Grant.ClientID, Resource: like.Grant.Resource, Place: like.Place,
		Material: like.Material, Now: e.now,
	}
	v, err := e.s.Visit(e.ctx, k)
	if errors.Is(err, storage.ErrNotFound) {
		return // the session has ended
	}
	check(t, err)
	if v.Consented != nil {
		t.Errorf("the consent to %v is still there", v.Consented)
	}
	silent := like
	silent.Grant.ID, silent.Code.Hash, silent.Remembered = secrets.ID("gr_"), randomHash(), oauth.Scopes{"mcp"}
	if err := e.s.Approve(e.ctx, silent); !errors.Is(err, storage.ErrRevoked) { // of a deleted client
		wantErr(t, err, storage.ErrChanged)
	}
}

// listed returns the indexes of all grants and nodes that the status lists show as ended.
func (e *env) listed(t *testing.T) []int64 {
	t.Helper()
	all, err := e.s.RevokedGrants(e.ctx, 0, 1<<40)
	check(t, err)
	return all
}

// follow completes every cut, and returns how many grants were marked. The status lists contain
// these from the beginning.
func (e *env) follow(t *testing.T, limit int) (marked int64) {
	t.Helper()
	listed := e.listed(t)
	defer func() { same(t, e.listed(t), listed) }()
	cuts, err := e.s.PendingCuts(e.ctx, e.now)
	check(t, err)
	for _, c := range cuts {
		for rounds := 0; ; rounds++ {
			step, err := e.s.FollowCut(e.ctx, c.ID, e.now, limit)
			check(t, err)
			same(t, e.listed(t), listed)
			if step.Grants-c.Grants > int64(limit) {
				t.Errorf("a batch of %d has marked %d", limit, step.Grants-c.Grants)
			}
			if c = step; c.Done {
				marked += c.Grants
				break
			}
			if rounds > 100 {
				t.Fatal("it never ends")
			}
		}
	}
	return marked
}

// bigCuts checks that many grants end as quickly as one, Operations H3.
func bigCuts(t *testing.T, e *env) {
	for _, c := range []struct {
		name                 string
		onePerson, oneClient bool
		by                   storage.RevokedBy
		cut                  func(c crowded) error
		back                 func(c crowded) error // lets the same be granted again; nil: not possible
	}{
		{"DeleteClient", false, true, storage.ByClientDeleted,
			func(c crowded) error { return e.s.DeleteClient(e.ctx, c.cl.ID, e.now) }, nil},
		{"RemoveResource, and added again", false, false, storage.ByResource, func(c crowded) error {
			check(t, e.s.AddResource(e.ctx, storage.Resource{URI: c.resource, CreatedAt: e.now}))
			return e.s.RemoveResource(e.ctx, c.resource, e.now)
		}, func(c crowded) error {
			return e.s.AddResource(e.ctx, storage.Resource{URI: c.resource, CreatedAt: e.now})
		}},
		{"SetUserDisabled, and enabled again", true, false, storage.ByDisabled,
			func(c crowded) error { return e.s.SetUserDisabled(e.ctx, c.p.ID, true, e.now) },
			func(c crowded) error { return e.s.SetUserDisabled(e.ctx, c.p.ID, false, e.now) }},
		{"DeleteUser", true, false, storage.ByUserDeleted,
			func(c crowded) error { return e.s.DeleteUser(e.ctx, c.p.ID, e.now) }, nil},
		{"SetPassword with grants", true, false, storage.ByPassword,
			func(c crowded) error { return e.s.SetPassword(e.ctx, c.p.ID, "", true, e.now) },
			func(crowded) error { return nil }},
		{"ForgetConsent", true, true, storage.ByConsent,
			func(c crowded) error { return e.s.ForgetConsent(e.ctx, c.p.ID, c.cl.ID, c.resource, e.now) },
			func(crowded) error { return nil }},
		{"CutGrants of a client for a resource", false, true, storage.ByOperator, func(c crowded) error {
			_, err := e.s.CutGrants(e.ctx, storage.Selection{ClientID: c.cl.ID, Resource: c.resource},
				storage.ByOperator, e.now)
			return err
		}, func(crowded) error { return nil }},
	} {
		t.Run("H3 "+c.name, func(t *testing.T) {
			crowd := e.crowd(t, c.onePerson, c.oneClient)
			check(t, c.cut(crowd))
			e.wantCut(t, crowd)
			e.wantForgotten(t, crowd.all[0])
			var fresh storage.Approval
			if c.back != nil {
				check(t, c.back(crowd))
				e.wantCut(t, crowd)
				fresh = e.grantedAgain(t, crowd.all[2])
				e.wantLive(t, fresh, true)
				_, err := e.s.RedeemCode(e.ctx, e.redemption(fresh))
				check(t, err)
			}
			if got := e.follow(t, 100); got != int64(len(crowd.all)) {
				t.Errorf("%d grants were marked, want %d", got, len(crowd.all))
			}
			if c.back != nil {
				e.wantLive(t, fresh, true)
				check(t, e.s.RevokeGrant(e.ctx, fresh.Grant.ID, storage.ByClient, e.now))
			}
			e.wantCut(t, crowd)
			e.wantRevoked(t, crowd.all[0], crowd.refresh, c.by)
			again, err := e.s.PendingCuts(e.ctx, e.now)
			check(t, err)
			if len(again) > 0 {
				t.Errorf("there is still something to do: %+v", again)
			}
			e.rotate(t, e.rotation(crowd.bystander, crowd.otherRefresh))
		})
	}
}

// allCuts checks the end of all grants, and of all grants that depend on a provider.
func allCuts(t *testing.T, e *env) {
	t.Run("what selects nothing, or contradicts itself, is refused", func(t *testing.T) {
		for _, sel := range []storage.Selection{
			{}, {UserID: "u", Connector: "c"}, {ClientID: "c", All: true}, {Connector: "c", All: true},
		} {
			_, err := e.s.CutGrants(e.ctx, sel, storage.ByOperator, e.now)
			wantErr(t, err, storage.ErrSelection)
		}
		check(t, e.s.ForgetConsent(e.ctx, "", "client", "https://mcp.example/mcp", e.now))
	})
	t.Run("H3 everything, whatever ends beside it", func(t *testing.T) {
		a, refresh := e.granted(t)
		before, _ := e.granted(t)
		check(t, e.s.RevokeGrant(e.ctx, before.Grant.ID, storage.ByOperator, e.now))
		k, err := e.s.CutGrants(e.ctx, storage.Selection{All: true}, storage.ByOperator, e.now)
		check(t, err)
		check(t, e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByClient, e.now.Add(time.Second))) // late
		e.wantLive(t, a, false)
		e.wantForgotten(t, a)
		fresh := e.grantedAgain(t, a)
		cuts, err := e.s.PendingCuts(e.ctx, e.now)
		check(t, err)
		same(t, cuts, []storage.Cut{k})
		if got := e.follow(t, 1); got != 1 {
			t.Errorf("%d grants were marked, want 1", got)
		}
		e.wantLive(t, fresh, true)
		e.wantRefreshRefused(t, a, refresh)
		e.wantRevoked(t, a, refresh, storage.ByOperator)
		check(t, e.s.RevokeGrant(e.ctx, fresh.Grant.ID, storage.ByOperator, e.now))
	})
	t.Run("H3 a cut that is never finished holds, and ends requests under way", func(t *testing.T) {
		a, refresh := e.granted(t)
		k, err := e.s.CutGrants(e.ctx, storage.Selection{UserID: a.Grant.UserID}, storage.ByOperator, e.now)
		check(t, err)
		e.wantRefreshRefused(t, a, refresh)
		e.follow(t, 10)
		later := e.now.Add(time.Hour)
		rest, err := e.s.PendingCuts(e.ctx, later)
		check(t, err)
		for _, c := range rest { // checks again, for approvals that ran beside the cut
			for range 3 {
				if _, err := e.s.FollowCut(e.ctx, c.ID, later, 10); err != nil {
					wantErr(t, err, storage.ErrNotFound)
				}
			}
		}
		_, err = e.s.FollowCut(e.ctx, k.ID, later, 10)
		wantErr(t, err, storage.ErrNotFound)
		e.wantRefreshRefused(t, a, refresh)
	})
}

// providerCuts checks the end of all grants that depend on a provider.
func providerCuts(t *testing.T, e *env) {
	a, u := e.tied(t)
	grant, refresh := e.grantedBy(t, u, a.Session.Hash)
	byPassword := person{User: u, session: randomHash()}
	e.signIn(t, byPassword)
	own, _ := e.grantedBy(t, u, byPassword.session)
	elsewhere := e.link("other", u.ID)
	e.arrive(t, elsewhere)
	_, err := e.s.CutGrants(e.ctx, storage.Selection{Connector: "acme"}, storage.ByOperator, e.now)
	check(t, err)
	gone := func() {
		t.Helper()
		e.wantLive(t, grant, false)
		e.wantRefreshRefused(t, grant, refresh)
		_, err := e.s.Visit(e.ctx, storage.VisitKey{Session: a.Session.Hash, Now: e.now})
		wantErr(t, err, storage.ErrNotFound)
		wantErr(t, e.s.Approve(e.ctx, e.approval(person{User: u, session: a.Session.Hash})), storage.ErrNotFound)
		e.wantLive(t, own, true)
		e.wantUpstream(t, elsewhere.Upstream.ID, "")
		_, err = e.s.Visit(e.ctx, storage.VisitKey{Session: byPassword.session, Now: e.now})
		check(t, err)
	}
	gone()
	b := e.again(a)
	b.Session.CreatedAt, b.Upstream.CreatedAt = e.now.Add(time.Second), e.now.Add(time.Second)
	e.arrive(t, b)
	fresh, _ := e.grantedBy(t, u, b.Session.Hash)
	e.follow(t, 1)
	gone()
	e.wantRevoked(t, grant, refresh, storage.ByOperator)
	e.wantFarewell(t, a.Session.Hash, "acme", "cut-off")
	e.wantUpstream(t, b.Upstream.ID, "")
	e.wantLive(t, fresh, true)
	tokens, err := e.s.TakeHandbacks(e.ctx, 10)
	check(t, err)
	ours := func(u storage.Upstream) bool { return u.ID == a.Upstream.ID }
	if len(tokens) != 2 || !slices.ContainsFunc(tokens, ours) { // including the linked account's
		t.Errorf("to be given back are %v", tokens)
	}
}

// raceCut lets several callers follow a cut while clients refresh and users approve. No grant
// stored before it is ever valid again, each grant stored after it is, and one caller gets Done.
func raceCut(t *testing.T, e *env) {
	c := e.crowd(t, false, true)
	k, err := e.s.CutGrants(e.ctx, storage.Selection{ClientID: c.cl.ID}, storage.ByOperator, e.now)
	check(t, err)
	fresh := make([]storage.Approval, racers)
	var done, odd tally
	compete(func(i int) {
		switch i % 4 {
		case 0:
			for {
				step, err := e.s.FollowCut(e.ctx, k.ID, e.now, 20)
				if step.Done {
					done.add(nil)
				}
				if step.Done || errors.Is(err, storage.ErrNotFound) {
					return
				}
				odd.add(err)
				if cuts, err := e.s.PendingCuts(e.ctx, e.now); err != nil || len(cuts) == 0 {
					odd.add(err)
					return
				}
			}
		case 1:
			_, err := e.s.RotateRefresh(e.ctx, e.rotation(c.all[0], c.refresh))
			if err == nil {
				err = errors.New("an earlier grant was refreshed")
			}
			odd.add(err, storage.ErrRevoked)
		default:
			a := c.all[i+2]
			a.Grant.ID, a.Code.Hash = secrets.ID("gr_"), randomHash()
			odd.add(e.s.Approve(e.ctx, a))
			fresh[i] = a
		}
	})
	for _, err := range odd.odd {
		t.Errorf("unexpected error: %v", err)
	}
	done.want(t, 1)
	e.wantCutCrowd(t, c)
	for _, a := range fresh {
		if a.Grant.ID != "" {
			e.wantLive(t, a, true)
		}
	}
}

func (e *env) wantCutCrowd(t *testing.T, c crowded) {
	t.Helper()
	for _, a := range c.all {
		e.wantLive(t, a, false)
	}
}
