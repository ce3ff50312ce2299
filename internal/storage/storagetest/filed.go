package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// installations connects a user through two installations of one program, and another user through
// a program with the same name that redirects elsewhere. refresh is the token of b.
func (e *env) installations(t *testing.T) (a, b, namesake storage.Approval, refresh storage.PresentedRefresh) {
	t.Helper()
	cl := e.client()
	cl.Name, cl.RedirectURIs = secrets.ID("Program "), []string{"http://localhost:4711/callback"}
	connect := func(redirect string) storage.Approval {
		of := cl
		of.ID, of.RedirectURIs = secrets.ID("mcp_"), []string{redirect}
		a := e.approval(e.person(t))
		a.Client, a.Grant.ClientID = &of, of.ID
		check(t, e.s.Approve(e.ctx, a))
		refresh = e.redeem(t, e.redemption(a))
		return a
	}
	namesake, a = connect("https://other.example/cb"), connect(cl.RedirectURIs[0])
	b = connect("http://127.0.0.1:1234/callback")
	return a, b, namesake, refresh
}

// applications: RU-18, EN-02, OP-04: the administrator sees one application, however often it was
// registered.
func applications(t *testing.T, e *env) {
	a, b, namesake, refresh := e.installations(t)
	key, other := a.Client.Application(), namesake.Client.Application()
	live := func(why string, want bool, of ...storage.Approval) {
		t.Helper()
		for _, a := range of {
			if e.state(t, a).Active != want {
				t.Errorf("%s: %s of %s is live: %v", why, a.Grant.ID, a.Grant.ClientID, !want)
			}
		}
		e.wantLive(t, namesake, true)
	}
	of := func(key string) storage.FiledApplication {
		t.Helper()
		out, err := e.s.FiledApplication(e.ctx, key)
		check(t, err)
		return out
	}
	found, err := e.s.FiledApplications(e.ctx, storage.Search{Text: a.Client.Name, Limit: 10})
	check(t, err)
	if len(found) != 2 {
		t.Fatalf("RU-18: two programs of one name are %d applications", len(found))
	}
	if got := of(key); got.Registrations != 2 || got.Name != a.Client.Name || got.Hold != nil {
		t.Errorf("RU-18: two installations are %+v", got)
	}
	n, err := e.s.ApplicationGrants(e.ctx, key, e.now, 10)
	check(t, err)
	same(t, n, storage.ApplicationCount{Grants: 2, People: 2})
	clients, err := e.s.ApplicationClients(e.ctx, key, "", 10)
	check(t, err)
	same(t, len(clients), 2)
	_, err = e.s.FiledApplication(e.ctx, "app_none")
	wantErr(t, err, storage.ErrNotFound)

	hold := storage.Hold{Application: key, Name: a.Client.Name, By: "operator", At: e.now}
	check(t, e.s.HoldApplication(e.ctx, hold))
	live("EN-02: a paused application", false, a, b)
	listed, err := e.s.RevokedGrants(e.ctx, 0, 1<<40)
	check(t, err)
	if len(listed) < 2 {
		t.Errorf("EN-02: the status list has %v of a paused application", listed)
	}
	_, _, err = e.s.RefreshToken(e.ctx, refresh, e.now)
	wantErr(t, err, storage.ErrNotFound)
	check(t, e.s.ReleaseApplication(e.ctx, key))
	wantErr(t, e.s.ReleaseApplication(e.ctx, key), storage.ErrNotFound)
	live("EN-02: a resumed application", true, a, b)

	hold.Blocked = true
	check(t, e.s.HoldApplication(e.ctx, hold))
	hold.Blocked = false
	check(t, e.s.HoldApplication(e.ctx, hold))
	if h := of(key).Hold; h == nil || !h.Blocked {
		t.Errorf("EN-02: a pause has taken the place of a block: %+v", h)
	}
	live("EN-02: a blocked application", false, a, b)
	e.follow(t, 100)
	check(t, e.s.ReleaseApplication(e.ctx, key))
	live("EN-02: what a block has ended", false, a, b)

	check(t, e.s.DeleteApplication(e.ctx, key, e.now))
	_, err = e.s.Client(e.ctx, b.Client.ID)
	wantErr(t, err, storage.ErrRevoked)
	e.follow(t, 100)
	_, err = e.s.FiledApplication(e.ctx, key)
	wantErr(t, err, storage.ErrNotFound)
	if got := of(other); got.Registrations != 1 {
		t.Errorf("RU-18: the namesake is %+v", got)
	}
}

// cutApplications: OP-04: one row ends all grants and consents of an application, before any is
// marked.
func cutApplications(t *testing.T, e *env) {
	a, b, namesake, _ := e.installations(t)
	_, err := e.s.CutGrants(e.ctx, storage.Selection{Application: a.Client.Application()}, storage.ByOperator, e.now)
	check(t, err)
	renamed := *b.Client
	renamed.Name, renamed.Source = "Another name", storage.SourceManaged
	check(t, e.s.ReplaceClient(e.ctx, renamed, e.now))
	gone := func() {
		t.Helper()
		for _, a := range []storage.Approval{a, b} {
			if e.state(t, a).Active {
				t.Errorf("OP-04: the grant %s still works", a.Grant.ID)
			}
		}
		e.wantLive(t, namesake, true)
		e.wantForgotten(t, a)
	}
	gone()
	e.follow(t, 100)
	gone()
	again := a
	again.Grant.ID, again.Code.Hash = secrets.ID("gr_"), randomHash()
	check(t, e.s.Approve(e.ctx, again))
	e.redeem(t, e.redemption(again))
	if !e.state(t, again).Active {
		t.Error("OP-04: a grant that was given after the cut has ended")
	}
}

// mergedApplications: RU-18: an administrator merges two keys, and splits them again.
func mergedApplications(t *testing.T, e *env) {
	a, _, namesake, _ := e.installations(t)
	key, other := a.Client.Application(), namesake.Client.Application()
	registrations := func(key string) int {
		t.Helper()
		out, err := e.s.FiledApplication(e.ctx, key)
		check(t, err)
		return out.Registrations
	}
	check(t, e.s.HoldApplication(e.ctx, storage.Hold{Application: other, By: "operator", At: e.now}))
	wantErr(t, e.s.MergeApplications(e.ctx, other, key, e.now), storage.ErrMismatch)
	check(t, e.s.ReleaseApplication(e.ctx, other))
	check(t, e.s.MergeApplications(e.ctx, other, key, e.now))
	wantErr(t, e.s.MergeApplications(e.ctx, other, key, e.now), storage.ErrExists)
	wantErr(t, e.s.MergeApplications(e.ctx, key, other, e.now), storage.ErrExists)
	same(t, registrations(other), 3)
	check(t, e.s.HoldApplication(e.ctx, storage.Hold{Application: key, By: "operator", At: e.now}))
	e.wantLive(t, namesake, false)
	holds, err := e.s.Holds(e.ctx)
	check(t, err)
	if _, held := holds[other]; !held {
		t.Error("RU-18: a new registration of a merged application is not held")
	}
	check(t, e.s.SplitApplication(e.ctx, other, e.now.Add(time.Second)))
	wantErr(t, e.s.SplitApplication(e.ctx, other, e.now), storage.ErrNotFound)
	e.wantLive(t, namesake, false) // also until it is released
	check(t, e.s.ReleaseApplication(e.ctx, other))
	e.wantLive(t, namesake, true)
	same(t, registrations(other), 1)
	same(t, registrations(key), 2)
}

// mergedPauses: RU-18, EN-02: a person who has paused one of two applications has paused both once they are merged, and
// nobody else has. They are paused and resumed together, and a split changes nothing.
func mergedPauses(t *testing.T, e *env) {
	a, b, namesake, _ := e.installations(t)
	p := e.person(t)
	connect := func(p person, like storage.Client) storage.Approval {
		t.Helper()
		like.ID = secrets.ID("mcp_")
		a := e.approval(p)
		a.Client, a.Grant.ClientID = &like, like.ID
		check(t, e.s.Approve(e.ctx, a))
		e.redeem(t, e.redemption(a))
		return a
	}
	here, again, there := connect(p, *a.Client), connect(p, *a.Client), connect(p, *namesake.Client)
	key, other := a.Client.Application(), namesake.Client.Application()
	paused := func(want error, of ...storage.Approval) {
		t.Helper()
		for _, a := range of {
			e.wantLive(t, a, want == nil)
			_, err := e.s.PauseOf(e.ctx, a.Grant.UserID, a.Client, a.Grant.Resource)
			if want == nil {
				wantErr(t, err, storage.ErrNotFound)
			} else {
				check(t, err)
			}
			one := e.approval(p)
			cl := *a.Client
			cl.ID = secrets.ID("mcp_")
			one.Client, one.Grant.ClientID, one.PageUntil = &cl, cl.ID, e.now.Add(time.Hour)
			if a.Grant.UserID == p.ID {
				wantErr(t, e.s.Approve(e.ctx, one), want)
			}
		}
	}
	check(t, e.s.PauseGrant(e.ctx, p.ID, there.Grant.ID, e.now))
	paused(storage.ErrPaused, there)
	paused(nil, here, again)
	check(t, e.s.MergeApplications(e.ctx, other, key, e.now))
	paused(storage.ErrPaused, here, again, there)
	paused(nil, a, b, namesake) // of other people

	check(t, e.s.ResumeGrant(e.ctx, p.ID, here.Grant.ID, e.now))
	paused(nil, here, again, there)
	check(t, e.s.PauseGrant(e.ctx, p.ID, again.Grant.ID, e.now))
	paused(storage.ErrPaused, here, again, there)
	paused(nil, a, b, namesake)
	app, err := e.s.GrantApplication(e.ctx, there.Grant.ID, e.now)
	check(t, err)
	same(t, app, storage.Application{Key: other, Connections: 3})
	pauses, err := e.s.Pauses(e.ctx, p.ID)
	check(t, err)
	same(t, len(pauses), 2)
	check(t, e.s.EndPause(e.ctx, p.ID, storage.PauseID(p.ID, other, there.Grant.Resource), e.now))
	paused(nil, here, again, there)
	check(t, e.s.PauseGrant(e.ctx, p.ID, there.Grant.ID, e.now))
	check(t, e.s.SplitApplication(e.ctx, other, e.now))
	paused(storage.ErrPaused, here, again, there)
	check(t, e.s.ResumeGrant(e.ctx, p.ID, here.Grant.ID, e.now))
	paused(nil, here, again)
	paused(storage.ErrPaused, there)
}

// raceMergedPause: RU-18, EN-02: a person pauses one of two applications while an administrator merges them. Both are
// paused then. A resume while they are merged leaves neither or both.
func raceMergedPause(t *testing.T, e *env) {
	for range 10 {
		_, _, namesake, _ := e.installations(t)
		p := e.person(t)
		var own [2]storage.Approval
		for i, cl := range []storage.Client{e.client(), *namesake.Client} {
			if cl.ID = secrets.ID("mcp_"); i == 0 {
				cl.Name = secrets.ID("Program ")
			}
			own[i] = e.approval(p)
			own[i].Client, own[i].Grant.ClientID = &cl, cl.ID
			check(t, e.s.Approve(e.ctx, own[i]))
			e.redeem(t, e.redemption(own[i]))
		}
		key, other := own[0].Client.Application(), own[1].Client.Application()
		both := func(want bool) {
			t.Helper()
			e.wantLive(t, own[0], want)
			e.wantLive(t, own[1], want)
		}
		var c tally
		compete(func(i int) {
			switch i {
			case 0:
				c.add(e.s.MergeApplications(e.ctx, key, other, e.now))
			case 1:
				c.add(e.s.PauseGrant(e.ctx, p.ID, own[0].Grant.ID, e.now))
			}
		})
		both(false)
		check(t, e.s.SplitApplication(e.ctx, key, e.now))
		compete(func(i int) {
			switch i {
			case 0:
				c.add(e.s.MergeApplications(e.ctx, other, key, e.now))
			case 1:
				c.add(e.s.ResumeGrant(e.ctx, p.ID, own[1].Grant.ID, e.now))
			}
		})
		both(e.state(t, own[0]).Active)
		check(t, e.s.ResumeGrant(e.ctx, p.ID, own[0].Grant.ID, e.now))
		both(true)
		for _, err := range c.odd {
			t.Error(err)
		}
	}
}
