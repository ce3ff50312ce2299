package storagetest

import (
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const claudeAI = "https://claude.ai"

// placed returns an approval of a client in its current form, for a place.
func (e *env) placed(p person, cl storage.Client, place string, scopes ...string) storage.Approval {
	a := e.approval(p)
	a.Client, a.Grant.ClientID, a.Grant.Scopes = &cl, cl.ID, scopes
	a.Place, a.Material = place, cl.Material()
	return a
}

// consented returns the remembered consent of a user to a client in its current form, for a place.
func (e *env) consented(t *testing.T, p person, cl storage.Client, place string, unplaced bool) storage.Visit {
	t.Helper()
	v, err := e.s.Visit(e.ctx,
		storage.VisitKey{Session: p.session, ClientID: cl.ID, Resource: "https://mcp.example/mcp",
			Place: place, Material: cl.Material(), Unplaced: unplaced, Now: e.now})
	check(t, err)
	return v
}

func (e *env) wantConsent(t *testing.T, p person, cl storage.Client, place string, want ...string) {
	t.Helper()
	v := e.consented(t, p, cl, place, false)
	same(t, v.Consented, oauth.Scopes(want))
	if (v.Consented != nil) != (len(want) > 0) || v.Known != (len(want) > 0) {
		t.Errorf("for %s: got %#v, known %v; want %v", place, v.Consented, v.Known, want)
	}
}

// consents checks that a consent is valid for one place, and for the client as it was shown (AS-74,
// AS-77).
func consents(t *testing.T, e *env) {
	t.Run("an approval that comes twice is stored once", func(t *testing.T) { approvedTwice(t, e) })
	t.Run("a page is approved or denied", func(t *testing.T) { denied(t, e) })
	t.Run("AS-74 a consent is for one place", func(t *testing.T) {
		p, cl := e.person(t), e.client()
		check(t, e.s.Approve(e.ctx, e.placed(p, cl, claudeAI, "mcp")))
		check(t, e.s.Approve(e.ctx, e.placed(p, cl, "loopback", "mcp", "notes:write")))
		e.wantConsent(t, p, cl, claudeAI, "mcp")
		e.wantConsent(t, p, cl, "loopback", "mcp", "notes:write")
		e.wantConsent(t, p, cl, "https://evil.example")
		e.wantConsent(t, p, cl, "")
	})
	for name, change := range clientChanges {
		t.Run("AS-77 and for the client as it was: "+name, func(t *testing.T) {
			p, cl := e.person(t), e.client()
			cl.Source = storage.SourceCIMD
			check(t, e.s.Approve(e.ctx, e.placed(p, cl, claudeAI, "mcp", "notes:write")))
			now := cl
			change(&now)
			e.wantConsent(t, p, now, claudeAI)
			check(t, e.s.Approve(e.ctx, e.placed(p, now, claudeAI, "mcp")))
			e.wantConsent(t, p, now, claudeAI, "mcp")
			e.wantConsent(t, p, cl, claudeAI, "notes:write") // the scopes approved for it, not those approved since
		})
	}
	t.Run("a client in another order, or used since, is the same", func(t *testing.T) {
		a := e.client()
		a.RedirectURIs = []string{"https://a.example/cb", "https://b.example/cb"}
		b := a
		b.RedirectURIs = []string{"https://b.example/cb", "https://a.example/cb"}
		b.Source, b.LastUsedAt, b.CreatedAt = storage.SourceManaged, e.now, e.now.Add(time.Hour)
		same(t, b.Material(), a.Material())
	})
	t.Run("L8 an approval of a client that was replaced is ErrChanged and stores nothing", func(t *testing.T) {
		for name, change := range clientChanges {
			p, cl := e.person(t), e.client()
			now := cl
			change(&now)
			now.Source = storage.SourceManaged
			check(t, e.s.ReplaceClient(e.ctx, now, e.now))
			a := e.placed(p, cl, claudeAI, "mcp")
			wantErr(t, e.s.Approve(e.ctx, a), storage.ErrChanged)
			_, err := e.s.RedeemCode(e.ctx, e.redemption(a))
			wantErr(t, err, storage.ErrNotFound)
			e.wantConsent(t, p, cl, claudeAI)
			check(t, e.s.Approve(e.ctx, e.placed(p, now, claudeAI, "mcp")))
			if t.Failed() {
				t.Fatal(name)
			}
		}
	})
	t.Run("the store has no say on a client of a document or of the configuration", func(t *testing.T) {
		for _, source := range []storage.ClientSource{storage.SourceCIMD, storage.SourceConfig} {
			p, cl := e.person(t), e.client()
			cl.Source = source
			check(t, e.s.Approve(e.ctx, e.placed(p, cl, claudeAI, "mcp")))
			cl.Name = "Renamed"
			check(t, e.s.Approve(e.ctx, e.placed(p, cl, claudeAI, "mcp")))
		}
	})
	t.Run("AS-76 what a person declines is forgotten, at the place that they were asked about", func(t *testing.T) {
		p, cl := e.person(t), e.client()
		for _, place := range []string{"", claudeAI, "loopback"} {
			check(t, e.s.Approve(e.ctx, e.placed(p, cl, place, "mcp", "notes:write")))
		}
		less := e.placed(p, cl, claudeAI, "mcp")
		less.Declined = oauth.Scopes{"notes:write", "admin"}
		check(t, e.s.Approve(e.ctx, less))
		e.wantConsent(t, p, cl, claudeAI, "mcp")
		e.wantConsent(t, p, cl, "loopback", "mcp", "notes:write")
		same(t, e.consented(t, p, cl, claudeAI, true).Consented, oauth.Scopes{"mcp"})
		again := e.placed(p, cl, claudeAI, "mcp", "notes:write")
		again.Remembered = oauth.Scopes{"mcp", "notes:write"}
		wantErr(t, e.s.Approve(e.ctx, again), storage.ErrChanged)
		e.now = e.now.Add(time.Second)
		check(t, e.s.Approve(e.ctx, e.placed(p, cl, claudeAI, "notes:write")))
		e.wantConsent(t, p, cl, claudeAI, "mcp", "notes:write")
	})
	t.Run("an approval that rests on a consent needs it, and renews nothing", func(t *testing.T) {
		p, cl := e.person(t), e.client()
		check(t, e.s.Approve(e.ctx, e.placed(p, cl, claudeAI, "mcp")))
		silent := func(place string, remembered ...string) storage.Approval {
			a := e.placed(p, cl, place, "mcp")
			a.Remembered = append(oauth.Scopes{}, remembered...)
			return a
		}
		check(t, e.s.Approve(e.ctx, silent(claudeAI, "mcp")))
		check(t, e.s.Approve(e.ctx, silent(claudeAI)))
		for _, a := range []storage.Approval{
			silent("https://evil.example", "mcp"), silent("https://evil.example"), silent(claudeAI, "mcp", "admin"),
		} {
			wantErr(t, e.s.Approve(e.ctx, a), storage.ErrChanged)
		}
		check(t, e.s.ForgetConsent(e.ctx, p.ID, cl.ID, "https://mcp.example/mcp", e.now))
		wantErr(t, e.s.Approve(e.ctx, silent(claudeAI, "mcp")), storage.ErrChanged)
		wantErr(t, e.s.Approve(e.ctx, silent(claudeAI)), storage.ErrChanged)
		e.wantConsent(t, p, cl, claudeAI)
	})
}

// clientChanges lists changes to a client that require new consent.
var clientChanges = map[string]func(*storage.Client){
	"redirect URIs": func(c *storage.Client) { c.RedirectURIs = []string{"https://evil.example/cb"} },
	"a further one": func(c *storage.Client) {
		c.RedirectURIs = append([]string{"https://evil.example/cb"}, c.RedirectURIs...)
	},
	"name":           func(c *storage.Client) { c.Name = "Claude" },
	"logo":           func(c *storage.Client) { c.Metadata = []byte(`{"logo_uri":"https://claude.ai/logo.png"}`) },
	"method":         func(c *storage.Client) { c.AuthMethod = "private_key_jwt" },
	"keys":           func(c *storage.Client) { c.JWKS = []byte(`{"keys":[]}`) },
	"place of keys":  func(c *storage.Client) { c.JWKSURI = "https://evil.example/keys" },
	"refresh tokens": func(c *storage.Client) { c.GrantTypes = []string{"authorization_code"} },
}

// withdrawals checks that revoking access also forgets the consent, unless the client itself gives
// the access up.
func withdrawals(t *testing.T, e *env) {
	for _, c := range []struct {
		name   string
		cut    func(a storage.Approval) error
		forget bool
	}{
		{"M1 WithdrawGrant",
			func(a storage.Approval) error { return e.s.WithdrawGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now) },
			true},
		{"M1 WithdrawGrant of a grant that was revoked before", func(a storage.Approval) error {
			check(t, e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now))
			return e.s.WithdrawGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now)
		}, true},
		{"M1 SetPassword with grants", func(a storage.Approval) error {
			return e.s.SetPassword(e.ctx, a.Grant.UserID, "$new", true, e.now)
		}, true},
		{"SetPassword without grants", func(a storage.Approval) error {
			return e.s.SetPassword(e.ctx, a.Grant.UserID, "$new", false, e.now)
		}, false},
		{"M1 SetUserDisabled, and enabled again", func(a storage.Approval) error {
			check(t, e.s.SetUserDisabled(e.ctx, a.Grant.UserID, true, e.now))
			return e.s.SetUserDisabled(e.ctx, a.Grant.UserID, false, e.now)
		}, true},
		{"RFC 7009: RevokeGrant, by the client itself",
			func(a storage.Approval) error { return e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now) },
			false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, bystander, cl, other := e.person(t), e.person(t), e.client(), e.client()
			a := e.placed(p, cl, claudeAI, "mcp")
			check(t, e.s.Approve(e.ctx, a))
			check(t, e.s.Approve(e.ctx, e.placed(p, cl, "loopback", "mcp")))
			check(t, e.s.Approve(e.ctx, e.placed(p, other, claudeAI, "mcp")))
			check(t, e.s.Approve(e.ctx, e.placed(bystander, cl, claudeAI, "mcp")))
			check(t, c.cut(a))
			p.session = randomHash()
			u, err := e.s.User(e.ctx, p.ID)
			check(t, err)
			p.PasswordHash = u.PasswordHash
			e.signIn(t, p)
			want := []string{"mcp"}
			if c.forget {
				want = nil
			}
			e.wantConsent(t, p, cl, claudeAI, want...)
			e.wantConsent(t, p, cl, "loopback", want...)
			e.wantConsent(t, bystander, cl, claudeAI, "mcp")
			if c.name == "M1 WithdrawGrant" {
				e.wantConsent(t, p, other, claudeAI, "mcp")
			}
			if c.name != "SetPassword without grants" {
				e.wantLive(t, a, false)
			}
		})
	}
	t.Run("WithdrawGrant of an unknown grant is no error", func(t *testing.T) {
		check(t, e.s.WithdrawGrant(e.ctx, "grt_none", storage.ByOperator, e.now))
	})
}

// raceReplace replaces a client in turns while users approve one or the other of its forms. The
// consents to a form are valid for that form only, whichever is stored at the end. No approval of a
// form is answered with the other.
func raceReplace(t *testing.T, e *env) {
	good := e.client()
	evil := good
	evil.RedirectURIs, evil.Source = []string{"https://evil.example/cb"}, storage.SourceManaged
	check(t, e.s.PutClient(e.ctx, good))
	people := make([]person, racers)
	for i := range people {
		people[i] = e.person(t)
	}
	var c tally
	compete(func(i int) {
		if i%4 == 0 {
			form := []storage.Client{good, evil}[i/4%2]
			c.add(e.s.ReplaceClient(e.ctx, form, e.now))
			return
		}
		for range 3 {
			c.add(e.s.Approve(e.ctx, e.placed(people[i], good, "loopback", "mcp")), storage.ErrChanged)
		}
	})
	for _, err := range c.odd {
		t.Errorf("unexpected error: %v", err)
	}
	check(t, e.s.ReplaceClient(e.ctx, evil, e.now))
	for _, p := range people {
		e.wantConsent(t, p, evil, "https://evil.example")
		e.wantConsent(t, p, evil, "loopback")
		wantErr(t, e.s.Approve(e.ctx, e.placed(p, good, "loopback", "mcp")), storage.ErrChanged)
	}
}

// raceForget withdraws a grant while browsers get codes silently. None of them restores the
// consent.
func raceForget(t *testing.T, e *env) {
	p, cl := e.person(t), e.client()
	first := e.placed(p, cl, claudeAI, "mcp")
	check(t, e.s.Approve(e.ctx, first))
	var c tally
	var mu sync.Mutex
	var silent []storage.Approval
	compete(func(i int) {
		if i == racers/2 {
			c.add(e.s.WithdrawGrant(e.ctx, first.Grant.ID, storage.ByOperator, e.now))
			return
		}
		for range 3 {
			a := e.placed(p, cl, claudeAI, "mcp")
			a.Remembered = oauth.Scopes{"mcp"}
			c.add(e.s.Approve(e.ctx, a), storage.ErrChanged)
			mu.Lock()
			silent = append(silent, a)
			mu.Unlock()
		}
	})
	for _, a := range silent {
		if _, err := e.s.RedeemCode(e.ctx, e.redemption(a)); err == nil {
			t.Error("EN-01 an earlier code is redeemed after the end")
		}
	}
	for _, err := range c.odd {
		t.Errorf("unexpected error: %v", err)
	}
	e.wantConsent(t, p, cl, claudeAI)
}
