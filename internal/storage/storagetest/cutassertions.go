package storagetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// cutAssertions checks that an assertion issued before a cut, or in the same millisecond, gets no
// grant.
func cutAssertions(t *testing.T, e *env) {
	for name, end := range map[string]func(g storage.Grant) error{
		"the person": func(g storage.Grant) error { return cutGrants(e, storage.Selection{UserID: g.UserID}) },
		"the person and the client": func(g storage.Grant) error {
			return cutGrants(e, storage.Selection{UserID: g.UserID, ClientID: g.ClientID})
		},
		"the resource":    func(g storage.Grant) error { return cutGrants(e, storage.Selection{Resource: g.Resource}) },
		"the trust entry": func(g storage.Grant) error { return cutGrants(e, storage.Selection{Trust: g.TrustID}) },
		"a new password": func(g storage.Grant) error {
			return e.s.SetPassword(e.ctx, g.UserID, "$argon2id$new", true, e.now)
		},
		"disabled, and enabled again": func(g storage.Grant) error {
			return errors.Join(e.s.SetUserDisabled(e.ctx, g.UserID, true, e.now),
				e.s.SetUserDisabled(e.ctx, g.UserID, false, e.now))
		},
		"deleted": func(g storage.Grant) error { return e.s.DeleteUser(e.ctx, g.UserID, e.now) },
		"all":     func(g storage.Grant) error { return cutGrants(e, storage.Selection{All: true}) },
	} {
		t.Run("AS-232 of before a cut of "+name, func(t *testing.T) {
			want := storage.ErrRevoked
			if strings.HasPrefix(name, "a new password") || strings.HasPrefix(name, "disabled") {
				want = storage.ErrStopped
			}
			a := e.assertion()
			a.Grant.TrustID, a.Grant.Resource = secrets.ID("trust"), "https://mcp.example/"+secrets.ID("")
			a.IssuedAt = e.now.Add(time.Second) // later than a cut of another case
			e.now = a.IssuedAt
			g := e.grantAssertion(t, a).Grant
			e.now = e.now.Add(10 * time.Second)
			same(t, end(g), nil)
			for _, age := range []time.Duration{5 * time.Second, 0} {
				old := followed(a)
				old.IssuedAt = e.now.Add(-age)
				_, err := e.s.GrantAssertion(e.ctx, old)
				wantErr(t, err, want)
			}
			b := followed(a)
			b.IssuedAt = e.now.Add(time.Millisecond)
			same(t, e.grantActive(t, e.grantAssertion(t, b).Grant), true)
			old := followed(a)
			old.IssuedAt = e.now
			_, err := e.s.GrantAssertion(e.ctx, old) // although a later grant exists
			wantErr(t, err, want)
			_, err = e.s.Sweep(e.ctx, storage.Retention{Now: e.now.Add(storage.MaxTrustTTL)}, 1000)
			check(t, err)
			old = followed(a)
			old.IssuedAt = e.now
			_, err = e.s.GrantAssertion(e.ctx, old)
			wantErr(t, err, want) // it can be valid for a day
		})
	}
	t.Run("AS-232 of before a cut of a person with an odd id", func(t *testing.T) { cutOddPeople(t, e) })
}

// cutOddPeople checks the same for users whose ids need escapes within JSON, because JSON names the
// cuts.
func cutOddPeople(t *testing.T, e *env) {
	e.now = e.now.Add(time.Second) // later than all previous cuts
	for _, id := range []string{`usr_"`, `usr_\`, "usr_<", "usr_é", "usr_\u2028"} {
		a := e.assertion()
		a.Person.NewUser.ID = id
		g := e.grantAssertion(t, a).Grant
		same(t, cutGrants(e, storage.Selection{UserID: g.UserID}), nil)
		b := followed(a)
		e.grantAssertion(t, b) // which has a live grant when the late assertion comes
		late := followed(b)
		late.IssuedAt = a.IssuedAt
		_, err := e.s.GrantAssertion(e.ctx, late)
		wantErr(t, err, storage.ErrRevoked)
	}
}

func cutGrants(e *env, sel storage.Selection) error {
	_, err := e.s.CutGrants(e.ctx, sel, storage.ByOperator, e.now)
	return err
}
