package storagetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const acme = "https://acme.example"

// assertion returns an assertion about a new user of acme, who may be created. It is not granted
// yet.
func (e *env) assertion() storage.AssertionGrant {
	cl := e.client()
	id := secrets.ID("usr_")
	return storage.AssertionGrant{
		SpendID: secrets.ID("jti "), SpentUntil: e.now.Add(5 * time.Minute), IssuedAt: e.now,
		Person: &storage.AssertedPerson{
			Issuer: acme, Subject: "sub " + id, NewUser: &storage.User{ID: id, Name: "Name" + id, CreatedAt: e.now},
		},
		Client: &cl, From: "198.51.100.0/24", Configured: true,
		Grant: storage.Grant{
			ID: secrets.ID("gr_"), ClientID: cl.ID, Scopes: oauth.Scopes{"mcp"}, Resource: "https://mcp.example/mcp",
			AuthTime: e.now.Add(-time.Hour), CreatedAt: e.now, ExpiresAt: e.now.Add(15 * time.Minute), TrustID: "acme",
			Asserted: &storage.Asserted{ACR: "phr", AMR: []string{"hwk"}, Act: json.RawMessage(`{"sub":"agent"}`)},
		},
	}
}

// followed returns another assertion for the same grant, a minute later.
func followed(a storage.AssertionGrant) storage.AssertionGrant {
	a.SpendID, a.Grant.ID = secrets.ID("jti "), secrets.ID("gr_")
	a.Grant.CreatedAt, a.Grant.ExpiresAt = a.Grant.CreatedAt.Add(time.Minute), a.Grant.ExpiresAt.Add(time.Minute)
	a.IssuedAt = a.Grant.CreatedAt
	return a
}

func (e *env) grantAssertion(t testing.TB, a storage.AssertionGrant) storage.AssertionOutcome {
	t.Helper()
	out, err := e.s.GrantAssertion(e.ctx, a)
	check(t, err)
	return out
}

// wantRefused checks that an assertion gets no grant and is not used up.
func (e *env) wantRefused(t testing.TB, a storage.AssertionGrant, want error) {
	t.Helper()
	for range 2 {
		_, err := e.s.GrantAssertion(e.ctx, a)
		wantErr(t, err, want)
	}
	if a.Person != nil && a.Person.NewUser != nil {
		_, err := e.s.User(e.ctx, a.Person.NewUser.ID)
		wantErr(t, err, storage.ErrNotFound)
	}
}

func (e *env) grantActive(t testing.TB, g storage.Grant) bool {
	t.Helper()
	got, err := e.s.TokenActive(e.ctx,
		storage.TokenKey{TokenID: "t", GrantID: g.ID, ClientID: g.ClientID, Now: e.now})
	check(t, err)
	return got.Active
}

func assertionGrants(t *testing.T, e *env) {
	t.Run("AS-232 the grant has what was asserted, and is a connection of the person", func(t *testing.T) {
		a := e.assertion()
		out := e.grantAssertion(t, a)
		want := a.Grant
		want.UserID = a.Person.NewUser.ID
		same(t, out, storage.AssertionOutcome{Grant: want, User: *a.Person.NewUser, LinkedBy: storage.LinkedByCreation})
		same(t, e.grantActive(t, out.Grant), true)
		list, err := e.s.Connections(e.ctx, want.UserID, "", e.now, 10)
		check(t, err)
		same(t, list, []storage.Connection{
			{Grant: want, UsedFrom: a.From, FirstUsedAt: e.now, UsedAt: e.now},
		})
		all, err := e.s.ListGrants(e.ctx, want.UserID, want.ClientID, "", 10)
		check(t, err)
		same(t, all, []storage.Grant{want})
		cl, err := e.s.Client(e.ctx, a.Client.ID)
		check(t, err)
		same(t, cl.LastUsedAt, e.now)
	})
	t.Run("AS-188 an assertion is good once; one that was refused is not spent", func(t *testing.T) {
		a := e.assertion()
		e.grantAssertion(t, a)
		again := e.assertion()
		again.SpendID = a.SpendID
		e.wantRefused(t, again, storage.ErrSpent) // and creates no account
		again.SpendID = ""
		e.grantAssertion(t, again)
		e.grantAssertion(t, again) // resubmitted
	})
	t.Run("the next assertion for the same has the grant live longer", func(t *testing.T) {
		a := e.assertion()
		first := e.grantAssertion(t, a)
		b := followed(a)
		b.From, b.Grant.AuthTime = "", e.now
		second := e.grantAssertion(t, b)
		want := first.Grant
		want.ExpiresAt, want.AuthTime = b.Grant.ExpiresAt, e.now
		same(t, second.Grant, want)
		same(t, second.LinkedBy, storage.LinkBy(""))
		list, err := e.s.Connections(e.ctx, want.UserID, "", e.now, 10)
		check(t, err)
		same(t, list, []storage.Connection{
			{Grant: want, UsedFrom: a.From, FirstUsedAt: e.now, UsedAt: b.Grant.CreatedAt},
		})
		shorter := followed(b)
		shorter.Grant.ExpiresAt = shorter.Grant.CreatedAt.Add(time.Second)
		same(t, e.grantAssertion(t, shorter).Grant.ExpiresAt, b.Grant.ExpiresAt)
	})
	t.Run("and another grant for what differs, or when the first has ended", func(t *testing.T) {
		a := e.assertion()
		first := e.grantAssertion(t, a).Grant
		for name, change := range map[string]func(b *storage.AssertionGrant){
			"scopes":   func(b *storage.AssertionGrant) { b.Grant.Scopes = oauth.Scopes{"mcp", "notes:write"} },
			"resource": func(b *storage.AssertionGrant) { b.Grant.Resource = "https://other.example/mcp" },
			"entry":    func(b *storage.AssertionGrant) { b.Grant.TrustID = "other" },
			"asserted": func(b *storage.AssertionGrant) { b.Grant.Asserted = &storage.Asserted{ACR: "phr"} },
			"nothing":  func(b *storage.AssertionGrant) { b.Grant.Asserted = nil },
			"client":   func(b *storage.AssertionGrant) { b.Grant.ClientID, b.Client = "other", nil },
			"later": func(b *storage.AssertionGrant) {
				b.Grant.CreatedAt = first.ExpiresAt
				b.Grant.ExpiresAt = e.now.Add(time.Hour)
			},
		} {
			t.Run(name, func(t *testing.T) {
				b := followed(a)
				change(&b)
				out := e.grantAssertion(t, b).Grant
				want := b.Grant
				want.UserID = first.UserID
				same(t, out, want)
			})
		}
		check(t, e.s.RevokeGrant(e.ctx, first.ID, storage.ByPerson, e.now))
		if got := e.grantAssertion(t, followed(a)).Grant; got.ID == first.ID || !e.grantActive(t, got) {
			t.Errorf("after the person has disconnected it: got %+v", got)
		}
	})
	t.Run("a workload has no person, and may be deleted as a client", func(t *testing.T) {
		a := e.assertion()
		a.Person, a.Client, a.Grant.ClientID = nil, nil, "workload:"+secrets.ID("")
		out := e.grantAssertion(t, a)
		same(t, out, storage.AssertionOutcome{Grant: a.Grant})
		same(t, e.grantAssertion(t, followed(a)).Grant.ID, a.Grant.ID)
		check(t, e.s.DeleteClient(e.ctx, a.Grant.ClientID, e.now))
		same(t, e.grantActive(t, out.Grant), false)
		e.wantRefused(t, followed(a), storage.ErrRevoked)
	})
	t.Run("a deleted client gets nothing", func(t *testing.T) {
		a := e.assertion()
		check(t, e.s.DeleteClient(e.ctx, a.Client.ID, e.now))
		e.wantRefused(t, a, storage.ErrRevoked)
	})
	t.Run("it goes some time after its end, the client with it when it is forgotten", func(t *testing.T) {
		a := e.assertion()
		out := e.grantAssertion(t, a)
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: a.Grant.ExpiresAt.Add(2 * time.Hour)}, 1000)
		check(t, err)
		all, err := e.s.ListGrants(e.ctx, out.User.ID, "", "", 10)
		check(t, err)
		same(t, all, []storage.Grant(nil))
	})
	t.Run("what is no grant by an assertion is not stored", func(t *testing.T) {
		for _, change := range []func(a *storage.AssertionGrant){
			func(a *storage.AssertionGrant) { a.Grant.TrustID = "" },
			func(a *storage.AssertionGrant) { a.Grant.UserID = "usr_x" },
			func(a *storage.AssertionGrant) { a.Grant.ExpiresAt = a.Grant.CreatedAt },
			func(a *storage.AssertionGrant) { a.Client.ID = "other" },
			func(a *storage.AssertionGrant) { a.Person.Issuer = "" },
			func(a *storage.AssertionGrant) { a.Grant.Asserted.Act = json.RawMessage("{") },
		} {
			a := e.assertion()
			change(&a)
			if _, err := e.s.GrantAssertion(e.ctx, a); err == nil {
				t.Errorf("%+v was stored", a.Grant)
			}
		}
	})
}

// trustCuts checks that the end of a trusted issuer entry ends all its grants by one row (AS-232).
func trustCuts(t *testing.T, e *env) {
	var all []storage.Grant
	for range 5 {
		all = append(all, e.grantAssertion(t, e.assertion()).Grant)
	}
	work := e.assertion()
	work.Person, work.Client, work.Grant.ClientID = nil, nil, "workload:w"
	all = append(all, e.grantAssertion(t, work).Grant)
	other := e.assertion()
	other.Grant.TrustID = "other"
	bystander := e.grantAssertion(t, other).Grant
	person, _ := e.granted(t)
	k, err := e.s.CutGrants(e.ctx, storage.Selection{Trust: "acme"}, storage.ByTrust, e.now)
	check(t, err)
	same(t, k.All, false)
	gone := func() {
		t.Helper()
		for _, g := range all {
			same(t, e.grantActive(t, g), false)
		}
		same(t, e.grantActive(t, bystander), true)
		e.wantLive(t, person, true)
		list, err := e.s.Connections(e.ctx, all[0].UserID, "", e.now, 10)
		check(t, err)
		same(t, list, []storage.Connection(nil))
	}
	gone()
	fresh := e.grantAssertion(t, followed(work)).Grant
	if fresh.ID == work.Grant.ID {
		t.Error("a grant that was cut lives longer")
	}
	cuts, err := e.s.PendingCuts(e.ctx, e.now)
	check(t, err)
	same(t, cuts, []storage.Cut{k})
	same(t, e.follow(t, 2), int64(len(all)))
	gone()
	same(t, e.grantActive(t, fresh), true)
	same(t, len(e.listed(t)), len(all))
	for _, a := range e.consentsOf(t, person) {
		same(t, a, true)
	}
	t.Run("AS-232 an entry that is disabled or removed ends what rests on it, and gives no more",
		func(t *testing.T) { endedTrust(t, e) })
	wide := storage.Selection{Trust: "acme", UserID: "u"}
	_, err = e.s.CutGrants(e.ctx, wide, storage.ByTrust, e.now)
	wantErr(t, err, storage.ErrSelection)
}

func endedTrust(t *testing.T, e *env) {
	for name, entry := range map[string]struct {
		configured bool
		end, back  func(id string) error
	}{
		"disabled": {false, func(id string) error { return e.s.DisableTrust(e.ctx, id, e.now) },
			func(id string) error { return e.s.EnableTrust(e.ctx, id) }},
		"of the configuration, disabled": {true, func(id string) error { return e.s.DisableTrust(e.ctx, id, e.now) },
			func(id string) error { return e.s.EnableTrust(e.ctx, id) }},
		"removed": {false, func(id string) error { return e.s.RemoveTrust(e.ctx, id, e.now) },
			func(id string) error { return e.s.AddTrust(e.ctx, e.trusted(id)) }},
	} {
		t.Run(name, func(t *testing.T) {
			a := e.assertion()
			a.Configured, a.Grant.TrustID = entry.configured, secrets.ID("trust")
			if !entry.configured {
				e.wantRefused(t, a, storage.ErrRevoked) // the entry does not exist
				check(t, e.s.AddTrust(e.ctx, e.trusted(a.Grant.TrustID)))
			}
			g := e.grantAssertion(t, a).Grant
			check(t, entry.end(g.TrustID))
			same(t, e.grantActive(t, g), false)
			_, err := e.s.GrantAssertion(e.ctx, followed(a))
			wantErr(t, err, storage.ErrRevoked)
			check(t, entry.back(g.TrustID))
			same(t, e.grantActive(t, g), false)
			same(t, e.grantActive(t, e.grantAssertion(t, followed(a)).Grant), true)
			same(t, e.follow(t, 10), int64(1))
		})
	}
}

// consentsOf reports for each scope of an approval whether it is remembered.
func (e *env) consentsOf(t testing.TB, a storage.Approval) (out []bool) {
	t.Helper()
	v, err := e.s.Visit(e.ctx, storage.VisitKey{
		Session: a.Session, ClientID: a.Grant.ClientID, Resource: a.Grant.Resource, Place: a.Place,
		Material: a.Material, Now: e.now,
	})
	check(t, err)
	for _, s := range a.Grant.Scopes {
		out = append(out, v.Consented.Has(s))
	}
	return out
}

func raceAssertion(t *testing.T, e *env) {
	a := e.assertion()
	var c tally
	compete(func(i int) {
		b := a
		b.Grant.ID = secrets.ID("gr_")
		_, err := e.s.GrantAssertion(e.ctx, b)
		c.add(err, storage.ErrSpent)
	})
	c.want(t, 1)
	list, err := e.s.Connections(e.ctx, a.Person.NewUser.ID, "", e.now, 100)
	check(t, err)
	same(t, len(list), 1)
	work := e.assertion()
	work.Person, work.Client, work.Grant.ClientID = nil, nil, "workload:w"
	e.grantAssertion(t, work)
	for _, next := range []storage.AssertionGrant{followed(a), followed(work)} { // whose grant is live
		var c tally
		compete(func(i int) {
			b := next
			b.Grant.ID = secrets.ID("gr_")
			_, err := e.s.GrantAssertion(e.ctx, b)
			c.add(err, storage.ErrSpent)
		})
		c.want(t, 1)
	}
}

func raceAssertedPerson(t *testing.T, e *env) {
	a := e.assertion()
	var c, created tally
	compete(func(i int) {
		b := a
		b.SpendID, b.Grant.ID = secrets.ID("jti "), secrets.ID("gr_")
		out, err := e.s.GrantAssertion(e.ctx, b)
		c.add(err)
		if out.LinkedBy == storage.LinkedByCreation {
			created.add(nil)
		}
	})
	c.want(t, racers)
	created.want(t, 1)
}

// raceTrustEnd checks that no grant outlives a trusted issuer entry that is disabled at the same
// time.
func raceTrustEnd(t *testing.T, e *env) {
	check(t, e.s.AddTrust(e.ctx, e.trusted("acme")))
	grants := make([]storage.Grant, racers)
	var c tally
	compete(func(i int) {
		if i == racers/2 {
			c.add(e.s.DisableTrust(e.ctx, "acme", e.now))
			return
		}
		a := e.assertion()
		a.Configured = false
		out, err := e.s.GrantAssertion(e.ctx, a)
		grants[i] = out.Grant
		c.add(err, storage.ErrRevoked)
	})
	for _, err := range c.odd {
		t.Error(err)
	}
	check(t, e.s.EnableTrust(e.ctx, "acme"))
	for _, g := range grants {
		if g.ID != "" && e.grantActive(t, g) {
			t.Errorf("%s outlives the trust entry", g.ID)
		}
	}
}

// raceAssertedEnd checks that no grant outlives an account that is disabled at the same time.
func raceAssertedEnd(t *testing.T, e *env) {
	a := e.assertion()
	user := e.grantAssertion(t, a).User
	grants := make([]storage.Grant, racers)
	var c tally
	compete(func(i int) {
		if i == racers/2 {
			c.add(e.s.SetUserDisabled(e.ctx, user.ID, true, e.now))
			return
		}
		b := followed(a)
		if i%4 > 0 { // otherwise the live grant
			b.Grant.Scopes = oauth.Scopes{secrets.ID("s")}
		}
		out, err := e.s.GrantAssertion(e.ctx, b)
		grants[i] = out.Grant
		c.add(err, storage.ErrRevoked)
	})
	for _, err := range c.odd {
		t.Error(err)
	}
	check(t, e.s.SetUserDisabled(e.ctx, user.ID, false, e.now))
	for _, g := range grants {
		if g.ID != "" && e.grantActive(t, g) {
			t.Errorf("%s outlives the account", g.ID)
		}
	}
}
