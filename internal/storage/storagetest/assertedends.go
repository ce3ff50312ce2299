package storagetest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// issuerEnd returns an event of acme that ends, now, its assertions about the user of an assertion.
func (e *env) issuerEnd(a storage.AssertionGrant) storage.AssertedEnd {
	return storage.AssertedEnd{
		Issuer: a.Person.Issuer, Subjects: []string{a.Person.Subject}, TrustIDs: []string{"acme", "acme-2"},
		At: a.IssuedAt, Until: a.IssuedAt.Add(time.Minute), ForgetAt: a.IssuedAt.Add(25 * time.Hour),
	}
}

func (e *env) eventUse() storage.Use {
	return storage.Use{Purpose: "security event", ID: secrets.ID("set "), Expires: e.now.Add(time.Hour)}
}

func (e *env) endAsserted(t testing.TB, end storage.AssertedEnd) int {
	t.Helper()
	n, err := e.s.EndAsserted(e.ctx, end, e.eventUse(), e.now)
	check(t, err)
	return n
}

// assertedEnds checks that an issuer's event ends the grants that depend on it, of that user only
// (AS-245).
func assertedEnds(t *testing.T, e *env) {
	t.Run("AS-245 the grants of that person that rest on the entries of that issuer end", func(t *testing.T) {
		a := e.assertion()
		first := e.grantAssertion(t, a)
		b, c := followed(a), followed(a)
		b.Grant.TrustID, c.Grant.TrustID = "acme-2", "other"
		second, other := e.grantAssertion(t, b), e.grantAssertion(t, c)
		bystander := e.grantAssertion(t, e.assertion())
		same(t, e.endAsserted(t, e.issuerEnd(b)), 2)
		same(t, e.grantActive(t, first.Grant), false)
		same(t, e.grantActive(t, second.Grant), false)
		same(t, e.grantActive(t, other.Grant), true)
		same(t, e.grantActive(t, bystander.Grant), true)
		g, err := e.s.Grant(e.ctx, first.Grant.ID)
		check(t, err)
		same(t, g.RevokedBy, storage.ByIssuer)
		same(t, e.endAsserted(t, e.issuerEnd(b)), 0)
	})
	t.Run("AS-245 the same subject at another issuer is another person", func(t *testing.T) {
		a := e.assertion()
		out := e.grantAssertion(t, a)
		end := e.issuerEnd(a)
		end.Issuer = "https://other.example"
		same(t, e.endAsserted(t, end), 0)
		same(t, e.grantActive(t, out.Grant), true)
		e.grantAssertion(t, followed(a))
	})
	t.Run("AS-245 what was stored later stays", func(t *testing.T) {
		a := e.assertion()
		out := e.grantAssertion(t, a)
		end := e.issuerEnd(a)
		end.At, end.Until = end.At.Add(-time.Hour), a.Grant.CreatedAt.Add(-time.Millisecond)
		same(t, e.endAsserted(t, end), 0)
		same(t, e.grantActive(t, out.Grant), true)
	})
	t.Run("AS-245 an assertion of before brings nothing back, until it is forgotten", func(t *testing.T) {
		a := e.assertion()
		end := e.issuerEnd(a) // of a user who is not known yet
		same(t, e.endAsserted(t, end), 0)
		e.wantRefused(t, a, storage.ErrEnded)
		earlier := end
		earlier.At = earlier.At.Add(-time.Hour) // arrives late
		e.endAsserted(t, earlier)
		e.wantRefused(t, a, storage.ErrEnded)
		later := a
		later.IssuedAt = later.IssuedAt.Add(time.Millisecond)
		out := e.grantAssertion(t, later)
		same(t, out.LinkedBy, storage.LinkedByCreation)
		a.SpendID = secrets.ID("jti ")
		e.wantEnded(t, a) // although a later grant exists
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: end.ForgetAt.Add(-time.Second)}, 1000)
		check(t, err)
		e.wantEnded(t, a)
		_, err = e.s.Sweep(e.ctx, storage.Retention{Now: end.ForgetAt}, 1000)
		check(t, err)
		a.Grant.ID = secrets.ID("gr_")
		e.grantAssertion(t, a)
	})
	t.Run("AS-245 the token is spent with what it ends, or neither", func(t *testing.T) {
		a := e.assertion()
		out := e.grantAssertion(t, a)
		use := e.eventUse()
		_, err := e.s.EndAsserted(e.ctx, e.issuerEnd(e.assertion()), use, e.now)
		check(t, err)
		_, err = e.s.EndAsserted(e.ctx, e.issuerEnd(a), use, e.now)
		wantErr(t, err, storage.ErrSpent)
		same(t, e.grantActive(t, out.Grant), true)
		e.grantAssertion(t, followed(a))
	})
	t.Run("AS-245 one of many wins", func(t *testing.T) {
		a := e.assertion()
		e.grantAssertion(t, a)
		use, end := e.eventUse(), e.issuerEnd(a)
		var c tally
		var ended atomic.Int64
		compete(func(int) {
			n, err := e.s.EndAsserted(e.ctx, end, use, e.now)
			ended.Add(int64(n))
			c.add(err, storage.ErrSpent)
		})
		c.want(t, 1)
		same(t, ended.Load(), int64(1))
	})
	t.Run("AS-245 an assertion of before that comes at the same moment leaves no grant", func(t *testing.T) {
		for range 4 {
			a := e.assertion()
			e.grantAssertion(t, a)
			end := e.issuerEnd(followed(a))
			compete(func(i int) {
				if i == racers/2 {
					if _, err := e.s.EndAsserted(e.ctx, end, e.eventUse(), e.now); err != nil {
						t.Error(err)
					}
					return
				}
				b := followed(a)
				b.Grant.Scopes = append(b.Grant.Scopes, secrets.ID("s"))
				_, _ = e.s.GrantAssertion(e.ctx, b)
			})
			list, err := e.s.Connections(e.ctx, a.Person.NewUser.ID, "", e.now, 100)
			check(t, err)
			same(t, list, []storage.Connection(nil))
		}
	})
}

// wantEnded checks that an assertion about a known user is refused as ended.
func (e *env) wantEnded(t testing.TB, a storage.AssertionGrant) {
	t.Helper()
	_, err := e.s.GrantAssertion(e.ctx, a)
	wantErr(t, err, storage.ErrEnded)
}
