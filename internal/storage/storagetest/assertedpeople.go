package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// about returns an assertion about a user whom it does not create.
func (e *env) about(p storage.AssertedPerson) storage.AssertionGrant {
	a := e.assertion()
	p.Issuer, a.Person = acme, &p
	if p.Subject == "" {
		p.Subject = secrets.ID("sub ")
	}
	return a
}

func (e *env) mailbox(t testing.TB, mail string) person {
	t.Helper()
	p := e.person(t)
	check(t, e.s.SetMail(e.ctx, p.ID, mail))
	return p
}

func (e *env) tiedTo(t testing.TB, p person, n storage.TrustName) {
	t.Helper()
	check(t, e.s.LinkTrust(e.ctx,
		storage.TrustLink{TrustName: n, UserID: p.ID, By: storage.LinkedByOperator, CreatedAt: e.now}))
}

// wantPerson checks which user an assertion finds, and how they are linked. The next assertion then
// finds them by the subject.
func (e *env) wantPerson(t testing.TB, a storage.AssertionGrant, p person, by storage.LinkBy) {
	t.Helper()
	out := e.grantAssertion(t, a)
	if out.User.ID != p.ID || out.LinkedBy != by || out.Grant.UserID != p.ID {
		t.Errorf("got %s linked by %q, want %s by %q", out.User.ID, out.LinkedBy, p.ID, by)
	}
	b := e.about(storage.AssertedPerson{Tenant: a.Person.Tenant, Subject: a.Person.Subject, Mail: "new@acme.example"})
	if out := e.grantAssertion(t, b); out.User.ID != p.ID || out.LinkedBy != "" {
		t.Errorf("the next one: got %s linked by %q, want %s", out.User.ID, out.LinkedBy, p.ID)
	}
}

func assertedPeople(t *testing.T, e *env) {
	subject := func(sub string) storage.TrustName {
		return storage.TrustName{Issuer: acme, Kind: storage.TrustSubject, Subject: sub}
	}
	t.Run("AS-192 a subject is of one issuer and one tenant", func(t *testing.T) {
		p := e.person(t)
		n := subject("s1")
		n.Tenant = "t1"
		e.tiedTo(t, p, n)
		e.wantPerson(t, e.about(storage.AssertedPerson{Tenant: "t1", Subject: "s1"}), p, "")
		e.wantRefused(t, e.about(storage.AssertedPerson{Subject: "s1"}), storage.ErrNotFound)
		e.wantRefused(t, e.about(storage.AssertedPerson{Tenant: "t2", Subject: "s1"}), storage.ErrNotFound)
		other := e.about(storage.AssertedPerson{Tenant: "t1", Subject: "s1"})
		other.Person.Issuer = "https://other.example"
		e.wantRefused(t, other, storage.ErrNotFound)
	})
	t.Run("AS-192 aud_sub goes first, for people of the issuer and the tenant alone", func(t *testing.T) {
		p, q := e.person(t), e.person(t)
		e.tiedTo(t, p, subject("s2"))
		e.tiedTo(t, q, subject("s3"))
		out := e.grantAssertion(t, e.about(storage.AssertedPerson{AudienceSubject: p.ID, Subject: "s3"}))
		same(t, out.User.ID, p.ID)
		theirs := e.about(storage.AssertedPerson{Subject: "s3"})
		same(t, e.grantAssertion(t, theirs).User.ID, q.ID)
		for account, want := range map[string]person{p.ID: p, q.Name: q} { // q has a live grant
			other := followed(theirs)
			other.Person = &storage.AssertedPerson{Issuer: acme, Subject: "s3", AudienceSubject: account}
			out := e.grantAssertion(t, other)
			same(t, []string{out.User.ID, out.Grant.UserID, string(out.LinkedBy)}, []string{want.ID, want.ID, ""})
		}
		named := e.about(storage.AssertedPerson{AudienceSubject: p.Name, Subject: "s4"})
		e.wantPerson(t, named, p, storage.LinkedByAccount)
		e.wantRefused(t, e.about(storage.AssertedPerson{AudienceSubject: p.ID, Tenant: "t9"}), storage.ErrNotFound)
		gone := e.person(t)
		liar := storage.User{ID: secrets.ID("usr_"), Name: gone.ID, CreatedAt: e.now}
		check(t, e.s.CreateUser(e.ctx, liar)) // as an earlier version did, which accepted any name
		e.tiedTo(t, person{User: liar}, subject("liar"))
		check(t, e.s.DeleteUser(e.ctx, gone.ID, e.now))
		e.wantRefused(t, e.about(storage.AssertedPerson{AudienceSubject: gone.ID}), storage.ErrNotFound)
		stranger := e.person(t)
		e.wantRefused(t, e.about(storage.AssertedPerson{AudienceSubject: stranger.ID}), storage.ErrNotFound)
		n := subject(stranger.ID)
		n.Kind = storage.TrustAccount
		e.tiedTo(t, stranger, n)
		whose := storage.AssertedPerson{AudienceSubject: stranger.ID}
		e.wantPerson(t, e.about(whose), stranger, storage.LinkedByAccount)
	})
	t.Run("AS-192 an account at a provider that is the issuer", func(t *testing.T) {
		a, u := e.arrived(t)
		who := storage.AssertedPerson{Subject: a.Identity.Subject, Connectors: []string{"x", a.Identity.Connector}}
		inTenant, elsewhere := who, who
		inTenant.Tenant, elsewhere.Connectors = "t", []string{"other"}
		e.wantRefused(t, e.about(inTenant), storage.ErrNotFound)
		e.wantRefused(t, e.about(elsewhere), storage.ErrNotFound)
		e.wantPerson(t, e.about(who), person{User: u}, storage.LinkedByProvider)
	})
	t.Run("AS-192 AS-230 a SAML name is of the SAML issuer", func(t *testing.T) {
		p := e.person(t)
		e.tiedTo(t, p, storage.TrustName{Issuer: "urn:saml", Kind: storage.TrustSAML, Subject: "ada"})
		other := e.about(storage.AssertedPerson{SAMLIssuer: "urn:other", SAMLName: "ada"})
		e.wantRefused(t, other, storage.ErrNotFound)
		e.wantRefused(t, e.about(storage.AssertedPerson{Subject: "ada"}), storage.ErrNotFound)
		theirs := e.about(storage.AssertedPerson{SAMLIssuer: "urn:saml", SAMLName: "ada"})
		e.wantPerson(t, theirs, p, storage.LinkedBySAML)
	})
	t.Run("AS-192 mail links once, and the subject stays", func(t *testing.T) {
		p := e.mailbox(t, "Ada@acme.example")
		e.wantPerson(t, e.about(storage.AssertedPerson{Mail: "ada@acme.example"}), p, storage.LinkedByMail)
		e.wantRefused(t, e.about(storage.AssertedPerson{Mail: "ada@acme.example"}), storage.ErrNotFound) // another sub
		other := e.about(storage.AssertedPerson{Mail: "ada@acme.example"})
		other.Person.Issuer = "https://other.example"
		e.wantRefused(t, other, storage.ErrNotFound)
	})
	t.Run("AS-192 mail links nobody whom another issuer has, nobody with a role, and none of two", func(t *testing.T) {
		e.mailbox(t, "two@acme.example")
		e.mailbox(t, "two@acme.example")
		e.wantRefused(t, e.about(storage.AssertedPerson{Mail: "two@acme.example"}), storage.ErrNotFound)
		for _, role := range []storage.Role{storage.Administrator, storage.Auditor, storage.Support} {
			mail := string(role) + "@acme.example"
			check(t, e.s.CreateUser(e.ctx, storage.User{
				ID: "usr_" + string(role), Name: string(role), Role: role, Mail: mail, CreatedAt: e.now,
			}))
			e.wantRefused(t, e.about(storage.AssertedPerson{Mail: mail}), storage.ErrNotFound)
		}
		arrival, u := e.arrived(t)
		check(t, e.s.SetMail(e.ctx, u.ID, "far@acme.example"))
		far := storage.AssertedPerson{Mail: "far@acme.example"}
		e.wantRefused(t, e.about(far), storage.ErrNotFound)
		far.Connectors = []string{arrival.Identity.Connector}
		e.wantPerson(t, e.about(far), person{User: u}, storage.LinkedByMail)
	})
	t.Run("AS-192 letters that fold to others make no address of another person", func(t *testing.T) {
		e.mailbox(t, "mark@acme.example")
		e.wantRefused(t, e.about(storage.AssertedPerson{Mail: "mar\u212a@acme.example"}), storage.ErrNotFound)
		e.mailbox(t, "\u0130da\u212a@acme.example")
		e.wantRefused(t, e.about(storage.AssertedPerson{Mail: "idak@acme.example"}), storage.ErrNotFound)
	})
	t.Run("AS-192 a new person is created once, under another name when theirs is taken", func(t *testing.T) {
		first := e.assertion()
		out := e.grantAssertion(t, first)
		b := e.assertion()
		b.Person.NewUser.Name = out.User.Name
		same(t, e.grantAssertion(t, b).User.Name, out.User.Name+"-"+b.Person.NewUser.ID[len(b.Person.NewUser.ID)-6:])
		same(t, e.grantAssertion(t, followed(first)).User.ID, out.User.ID)
	})
	t.Run("who was unlinked is not created again; who was deleted is", func(t *testing.T) {
		a := e.assertion()
		e.grantAssertion(t, a)
		name := subject(a.Person.Subject)
		_, err := e.s.UnlinkTrust(e.ctx, name, e.now)
		check(t, err)
		_, err = e.s.GrantAssertion(e.ctx, followed(a))
		wantErr(t, err, storage.ErrExists)
		check(t, e.s.DeleteUser(e.ctx, a.Person.NewUser.ID, e.now))
		same(t, e.grantAssertion(t, followed(a)).LinkedBy, storage.LinkedByCreation)
	})
	t.Run("AS-232 a disabled person, and one who has stopped everything since", func(t *testing.T) {
		a := e.assertion()
		out := e.grantAssertion(t, a)
		check(t, e.s.SetUserDisabled(e.ctx, out.User.ID, true, e.now))
		same(t, e.grantActive(t, out.Grant), false)
		_, err := e.s.GrantAssertion(e.ctx, followed(a))
		wantErr(t, err, storage.ErrRevoked)
		check(t, e.s.SetUserDisabled(e.ctx, out.User.ID, false, e.now))
		b := followed(a)
		check(t, e.s.StopEverything(e.ctx, out.User.ID, b.IssuedAt))
		_, err = e.s.GrantAssertion(e.ctx, b)
		wantErr(t, err, storage.ErrStopped)
		late := followed(b)
		late.IssuedAt = b.IssuedAt
		b.IssuedAt = b.IssuedAt.Add(time.Second)
		e.grantAssertion(t, b)
		_, err = e.s.GrantAssertion(e.ctx, late) // although a later grant exists
		wantErr(t, err, storage.ErrStopped)
	})
}

func trustLinks(t *testing.T, e *env) {
	p, q := e.person(t), e.person(t)
	n := storage.TrustName{Issuer: acme, Tenant: "t", Kind: storage.TrustSubject, Subject: "s"}
	link := storage.TrustLink{TrustName: n, UserID: p.ID, By: storage.LinkedByOperator, CreatedAt: e.now}
	saml := link
	saml.TrustName = storage.TrustName{Issuer: "urn:saml", Kind: storage.TrustSAML, Subject: "p"}
	t.Run("AS-192 a name is linked to one user", func(t *testing.T) {
		check(t, e.s.LinkTrust(e.ctx, link))
		check(t, e.s.LinkTrust(e.ctx, link))
		check(t, e.s.LinkTrust(e.ctx, saml))
		other := link
		other.UserID = q.ID
		wantErr(t, e.s.LinkTrust(e.ctx, other), storage.ErrExists)
		other.UserID = "usr_gone"
		wantErr(t, e.s.LinkTrust(e.ctx, other), storage.ErrNotFound)
	})
	t.Run("they are listed by user, by issuer, page by page", func(t *testing.T) {
		list := func(user, issuer string, after storage.TrustName, limit int) []storage.TrustLink {
			out, err := e.s.ListTrustLinks(e.ctx, user, issuer, after, limit)
			check(t, err)
			return out
		}
		both := []storage.TrustLink{link, saml}
		same(t, list("", "", storage.TrustName{}, 10), both)
		same(t, list(p.ID, "", storage.TrustName{}, 10), both)
		same(t, list(q.ID, "", storage.TrustName{}, 10), []storage.TrustLink(nil))
		same(t, list("", acme, storage.TrustName{}, 10), both[:1])
		same(t, list("", "", storage.TrustName{}, 1), both[:1])
		same(t, list("", "", n, 10), both[1:])
	})
	t.Run("to untie it ends the grants of the person that rest on assertions, and no others", func(t *testing.T) {
		out := e.grantAssertion(t, e.about(storage.AssertedPerson{Tenant: "t", Subject: "s"}))
		own := e.approval(p)
		check(t, e.s.Approve(e.ctx, own))
		bystander := e.grantAssertion(t, e.assertion())
		got, err := e.s.UnlinkTrust(e.ctx, n, e.now)
		check(t, err)
		same(t, got, link)
		same(t, e.grantActive(t, out.Grant), false)
		same(t, e.grantActive(t, own.Grant), true)
		same(t, e.grantActive(t, bystander.Grant), true)
		_, err = e.s.UnlinkTrust(e.ctx, n, e.now)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("they go with the user, and the name can be linked again", func(t *testing.T) {
		check(t, e.s.DeleteUser(e.ctx, p.ID, e.now))
		out, err := e.s.ListTrustLinks(e.ctx, p.ID, "", storage.TrustName{}, 10)
		check(t, err)
		same(t, out, []storage.TrustLink(nil))
		saml.UserID = q.ID
		check(t, e.s.LinkTrust(e.ctx, saml))
	})
}
