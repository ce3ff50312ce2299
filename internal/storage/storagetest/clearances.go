package storagetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// clearance returns a request for a tool call approval by the resource of a grant, not stored yet.
func (e *env) clearance(a storage.Approval) storage.Clearance {
	return storage.Clearance{
		ID: secrets.ID("clr_"),
		ClearanceTerms: storage.ClearanceTerms{
			UserID: a.Grant.UserID, ClientID: a.Grant.ClientID, GrantID: a.Grant.ID, Resource: a.Grant.Resource,
			Tool: "erase", Digest: storage.Hash{1},
			By: oauth.ClearanceByPerson, ACR: []string{"2fa"}, MaxAge: time.Minute,
		},
		Sealed: []byte{0, 1, 254, 255}, State: storage.ClearanceWaits,
		CreatedAt: e.now, ExpiresAt: e.now.Add(oauth.ClearanceLifetime),
	}
}

// again repeats the same request.
func again(c storage.Clearance, at time.Time) storage.Clearance {
	c.ID, c.CreatedAt, c.ExpiresAt = secrets.ID("clr_"), at, at.Add(oauth.ClearanceLifetime)
	return c
}

func (e *env) ask(t testing.TB, c storage.Clearance) storage.Clearance {
	t.Helper()
	got, err := e.s.AskClearance(e.ctx, c)
	check(t, err)
	return got
}

func (e *env) decide(c storage.Clearance, session storage.Hash, give bool, at time.Time) error {
	_, err := e.s.DecideClearance(e.ctx, storage.ClearanceDecision{ID: c.ID, Session: session, Give: give, Now: at})
	return err
}

// given returns a tool call approval that its user has given.
func (e *env) given(t testing.TB) (storage.Approval, storage.Clearance) {
	t.Helper()
	a, _ := e.granted(t)
	c := e.ask(t, e.clearance(a))
	check(t, e.decide(c, a.Session, true, e.now))
	return a, c
}

func (e *env) wantState(t testing.TB, c storage.Clearance, want storage.ClearanceState) {
	t.Helper()
	got, err := e.s.Clearance(e.ctx, c.ID, e.now)
	check(t, err)
	same(t, got.State, want)
}

// clearances checks RS-217: a user's approval of one call.
func clearances(t *testing.T, e *env) {
	t.Run("RS-217 a clearance waits, is given, and is spent once", func(t *testing.T) { spentClearance(t, e) })
	t.Run("RS-217 a refusal stands until it expires", func(t *testing.T) { refusedClearance(t, e) })
	t.Run("RS-217 a clearance is for the same call alone", func(t *testing.T) { boundClearances(t, e) })
	t.Run("RS-217 five minutes are the end of a clearance", func(t *testing.T) { expiredClearances(t, e) })
	t.Run("RS-217 what ends a grant ends its clearances", func(t *testing.T) { endedClearances(t, e) })
	t.Run("RS-217 the person decides, or another one where that is demanded", func(t *testing.T) { givers(t, e) })
	t.Run("RS-217 as many wait as may", func(t *testing.T) { manyClearances(t, e) })
	t.Run("RS-217 an approval takes a clearance to its grant", func(t *testing.T) { reboundClearances(t, e) })
	t.Run("RS-217 the clearance of a machine", func(t *testing.T) { machineClearances(t, e) })
}

func spentClearance(t *testing.T, e *env) {
	a, _ := e.granted(t)
	c := e.clearance(a)
	same(t, e.ask(t, c), c)
	same(t, e.ask(t, again(c, e.now.Add(time.Second))), c)
	got, err := e.s.Clearance(e.ctx, c.ID, e.now)
	check(t, err)
	same(t, got, c)
	check(t, e.decide(c, a.Session, true, e.now))
	c.State, c.GiverID = storage.ClearanceGiven, a.Grant.UserID
	e.wantState(t, c, storage.ClearanceGiven)
	wantErr(t, e.decide(c, a.Session, false, e.now), storage.ErrSpent)
	c.State = storage.ClearanceSpent
	same(t, e.ask(t, again(c, e.now.Add(time.Second))), c)
	fresh := again(c, e.now.Add(2*time.Second))
	fresh.State, fresh.GiverID = storage.ClearanceWaits, ""
	same(t, e.ask(t, fresh), fresh)
	wantErr(t, e.decide(c, a.Session, true, e.now), storage.ErrNotFound)
}

func refusedClearance(t *testing.T, e *env) {
	a, _ := e.granted(t)
	c := e.ask(t, e.clearance(a))
	check(t, e.decide(c, a.Session, false, e.now))
	c.State, c.GiverID = storage.ClearanceRefused, a.Grant.UserID
	asked := again(e.clearance(a), c.ExpiresAt.Add(-time.Millisecond))
	same(t, e.ask(t, asked), c)
	wantErr(t, e.decide(c, a.Session, true, e.now), storage.ErrSpent)
	asked = again(asked, c.ExpiresAt)
	same(t, e.ask(t, asked), asked)
}

// boundClearances changes each term of a tool call approval, one at a time.
func boundClearances(t *testing.T, e *env) {
	a, c := e.given(t)
	otherPerson, _ := e.granted(t)
	sibling := e.approval(person{User: storage.User{ID: a.Grant.UserID}, session: a.Session})
	check(t, e.s.Approve(e.ctx, sibling))
	helper := e.addNode(t, a, storage.Node{})
	for name, change := range map[string]func(*storage.ClearanceTerms){
		"person":    func(b *storage.ClearanceTerms) { b.UserID = otherPerson.Grant.UserID },
		"client":    func(b *storage.ClearanceTerms) { b.ClientID = otherPerson.Grant.ClientID },
		"grant":     func(b *storage.ClearanceTerms) { b.GrantID = sibling.Grant.ID },
		"helper":    func(b *storage.ClearanceTerms) { b.NodeID = helper.ID },
		"resource":  func(b *storage.ClearanceTerms) { b.Resource += "/other" },
		"tool":      func(b *storage.ClearanceTerms) { b.Tool = "erases" },
		"digest":    func(b *storage.ClearanceTerms) { b.Digest[31] = 1 },
		"giver":     func(b *storage.ClearanceTerms) { b.By = oauth.ClearanceByOther },
		"approvers": func(b *storage.ClearanceTerms) { b.Approvers = []string{"ann"} },
		"proof":     func(b *storage.ClearanceTerms) { b.ACR = nil },
		"age":       func(b *storage.ClearanceTerms) { b.MaxAge = time.Second },
	} {
		other := again(c, e.now)
		other.State, other.GiverID = storage.ClearanceWaits, ""
		change(&other.ClearanceTerms)
		if got := e.ask(t, other); got.State != storage.ClearanceWaits || got.ID != other.ID {
			t.Errorf("with another %s: got %s %s, want another one that waits", name, got.State, got.ID)
		}
	}
	same(t, e.ask(t, again(c, e.now)).State, storage.ClearanceSpent)
}

func expiredClearances(t *testing.T, e *env) {
	a, c := e.given(t)
	_, err := e.s.Clearance(e.ctx, c.ID, c.ExpiresAt)
	wantErr(t, err, storage.ErrNotFound)
	waits := e.clearance(a)
	waits.Tool = "other"
	waits = e.ask(t, waits)
	wantErr(t, e.decide(waits, a.Session, true, waits.ExpiresAt), storage.ErrNotFound)
	late := again(e.clearance(a), c.ExpiresAt)
	same(t, e.ask(t, late), late)
	for _, at := range []time.Time{waits.ExpiresAt.Add(-time.Millisecond), waits.ExpiresAt} {
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: at}, 100)
		check(t, err)
		if _, err = e.s.Clearance(e.ctx, waits.ID, e.now); at.Before(waits.ExpiresAt) {
			check(t, err)
		} else {
			wantErr(t, err, storage.ErrNotFound)
		}
	}
}

func endedClearances(t *testing.T, e *env) {
	for name, end := range map[string]func(a storage.Approval, n storage.Node) error{
		"revoked": func(a storage.Approval, _ storage.Node) error {
			return e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now)
		},
		"paused": func(a storage.Approval, _ storage.Node) error {
			return e.s.PauseGrant(e.ctx, a.Grant.UserID, a.Grant.ID, e.now)
		},
		"stopped": func(a storage.Approval, _ storage.Node) error {
			return e.s.StopEverything(e.ctx, a.Grant.UserID, e.now)
		},
		"no client": func(a storage.Approval, _ storage.Node) error {
			return e.s.DeleteClient(e.ctx, a.Grant.ClientID, e.now)
		},
		"no helper": func(a storage.Approval, n storage.Node) error {
			_, err := e.s.CutNode(e.ctx, n.ID, a.Grant.ID, e.now)
			return err
		},
	} {
		a, _ := e.granted(t)
		c := e.clearance(a)
		n := e.addNode(t, a, storage.Node{})
		c.NodeID = n.ID
		e.ask(t, c)
		check(t, e.decide(c, a.Session, true, e.now))
		check(t, end(a, n))
		if _, err := e.s.AskClearance(e.ctx, again(c, e.now)); !errors.Is(err, storage.ErrRevoked) {
			t.Errorf("%s: got %v, want ErrRevoked", name, err)
		}
		if _, err := e.s.Clearance(e.ctx, c.ID, e.now); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", name, err)
		}
		wantErr(t, e.decide(c, a.Session, true, e.now), storage.ErrNotFound)
	}
}

// givers lets several users try to decide.
func givers(t *testing.T, e *env) {
	a, _ := e.granted(t)
	named, stranger, admin := e.person(t), e.person(t), e.person(t)
	check(t, e.s.SetRole(e.ctx, admin.ID, storage.Administrator)) // which ends their sessions
	e.signIn(t, admin)
	own := e.ask(t, e.clearance(a))
	byNamed, byAdmin := e.clearance(a), e.clearance(a)
	byNamed.By, byNamed.Approvers = oauth.ClearanceByOther, []string{"zoe", strings.ToLower(named.Name)}
	byAdmin.By = oauth.ClearanceByOther
	e.ask(t, byNamed)
	e.ask(t, byAdmin)
	for _, refused := range []struct {
		c       storage.Clearance
		session storage.Hash
		want    error
	}{
		{own, named.session, storage.ErrMismatch},
		{own, admin.session, storage.ErrMismatch},
		{byNamed, a.Session, storage.ErrMismatch},
		{byNamed, stranger.session, storage.ErrMismatch},
		{byNamed, admin.session, storage.ErrMismatch},
		{byAdmin, a.Session, storage.ErrMismatch},
		{byAdmin, named.session, storage.ErrMismatch},
		{own, randomHash(), storage.ErrSignedOut},
	} {
		wantErr(t, e.decide(refused.c, refused.session, true, e.now), refused.want)
		wantErr(t, e.decide(refused.c, refused.session, false, e.now), refused.want)
	}
	for who, want := range map[string]string{
		a.Grant.UserID: own.ID, named.ID: byNamed.ID, admin.ID: byAdmin.ID, stranger.ID: "",
	} {
		list, err := e.s.WaitingClearances(e.ctx, who, e.now)
		check(t, err)
		if want == "" && len(list) != 0 || want != "" && (len(list) != 1 || list[0].ID != want) {
			t.Errorf("got %+v, want %q", list, want)
		}
	}
	check(t, e.s.SetRole(e.ctx, a.Grant.UserID, storage.Administrator))
	e.signIn(t, person{User: storage.User{ID: a.Grant.UserID}, session: a.Session})
	wantErr(t, e.decide(byAdmin, a.Session, true, e.now), storage.ErrMismatch)
	check(t, e.decide(byNamed, named.session, true, e.now))
	check(t, e.decide(byAdmin, admin.session, true, e.now))
	check(t, e.decide(own, a.Session, true, e.now))
	list, err := e.s.WaitingClearances(e.ctx, named.ID, e.now)
	check(t, err)
	same(t, len(list), 0)
	t.Run("the account of the giver is disabled", func(t *testing.T) {
		check(t, e.s.SetUserDisabled(e.ctx, named.ID, true, e.now))
		same(t, e.ask(t, again(byNamed, e.now)).State, storage.ClearanceWaits)
		same(t, e.ask(t, again(byAdmin, e.now)).State, storage.ClearanceSpent)
	})
	t.Run("the giver is no administrator any more", func(t *testing.T) {
		byAdmin = e.ask(t, again(byAdmin, e.now))
		check(t, e.decide(byAdmin, admin.session, true, e.now))
		check(t, e.s.SetRole(e.ctx, admin.ID, ""))
		fresh := again(byAdmin, e.now)
		same(t, e.ask(t, fresh).ID, fresh.ID)
		e.wantState(t, fresh, storage.ClearanceWaits)
	})
	t.Run("the giver is none of the approvers any more", func(t *testing.T) {
		check(t, e.s.SetUserDisabled(e.ctx, named.ID, false, e.now))
		e.signIn(t, named)
		list, err := e.s.WaitingClearances(e.ctx, named.ID, e.now)
		check(t, err)
		same(t, len(list), 1)
		check(t, e.decide(list[0], named.session, true, e.now))
		left := again(byNamed, e.now)
		left.Approvers = []string{"zoe"}
		same(t, e.ask(t, left).State, storage.ClearanceWaits)
	})
}

func manyClearances(t *testing.T, e *env) {
	a, _ := e.granted(t)
	var last storage.Clearance
	for i := range storage.MaxClearances {
		c := e.clearance(a)
		c.Digest[1] = byte(i)
		last = e.ask(t, c)
	}
	c := e.clearance(a)
	c.Tool = "one more"
	_, err := e.s.AskClearance(e.ctx, c)
	wantErr(t, err, storage.ErrFull)
	same(t, e.ask(t, again(last, e.now)).ID, last.ID)
	check(t, e.decide(last, a.Session, false, e.now))
	e.ask(t, c)
}

func reboundClearances(t *testing.T, e *env) {
	a, c := e.given(t)
	p := person{User: storage.User{ID: a.Grant.UserID}, session: a.Session}
	to := e.approval(p)
	to.Grant.ClientID, to.Client, to.Clearance = a.Grant.ClientID, a.Client, c.ID
	check(t, e.s.Approve(e.ctx, to))
	same(t, e.ask(t, again(c, e.now)).State, storage.ClearanceWaits) // for the grant that it was given for
	moved := again(c, e.now)
	moved.GrantID = to.Grant.ID
	if got := e.ask(t, moved); got.State != storage.ClearanceSpent || got.ID != c.ID {
		t.Errorf("under the other grant: got %s %s, want %s spent", got.State, got.ID, c.ID)
	}
	a, c = e.given(t)
	p = person{User: storage.User{ID: a.Grant.UserID}, session: a.Session}
	foreign := e.approval(p) // of another client
	foreign.Clearance = c.ID
	check(t, e.s.Approve(e.ctx, foreign))
	same(t, e.ask(t, again(c, e.now)).State, storage.ClearanceSpent)
	unknown := e.approval(p)
	unknown.Clearance = "clr_unknown"
	check(t, e.s.Approve(e.ctx, unknown))
}

func machineClearances(t *testing.T, e *env) {
	machine := e.client()
	check(t, e.s.PutClient(e.ctx, machine))
	c := storage.Clearance{
		ID: secrets.ID("clr_"),
		ClearanceTerms: storage.ClearanceTerms{
			ClientID: machine.ID, Resource: "https://mcp.example/mcp", Tool: "erase", By: oauth.ClearanceByOther,
		},
		Sealed: []byte{1}, State: storage.ClearanceWaits,
		CreatedAt: e.now, ExpiresAt: e.now.Add(oauth.ClearanceLifetime),
	}
	same(t, e.ask(t, c), c)
	check(t, e.s.DeleteClient(e.ctx, machine.ID, e.now))
	_, err := e.s.AskClearance(e.ctx, again(c, e.now))
	wantErr(t, err, storage.ErrRevoked)
}
