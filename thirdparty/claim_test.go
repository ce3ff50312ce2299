package thirdparty

import (
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func extend(userID string) delegation.Request {
	return delegation.Request{
		Provider: "corp", Purpose: delegation.PurposeExtend, UserID: userID, Scopes: oauth.Scopes{"calendar"},
	}
}

// unconnected fails if any user is linked to the account, or its tokens are stored.
func (r *rig) unconnected(p fakeidp.Person, identities int) {
	r.t.Helper()
	if got := r.rows("identities"); got != identities {
		r.t.Errorf("%d identities, want %d", got, identities)
	}
	r.Close()
	if n := len(r.up.Sessions(p.Subject)); n != 0 {
		r.t.Errorf("%d sessions of %s live on at the provider", n, p.Login)
	}
}

func TestExtendMakesNoIdentity(t *testing.T) {
	t.Run("PH1 RS-203: another account than the user's is refused by both names, and its tokens are given back",
		func(t *testing.T) {
			r := newRig(t, nil)
			a, _ := r.signIn("alice")
			b := r.leaveAs(extend(a.User.ID), fakeidp.Bob)
			got, err := r.come(b, "corp")
			if code(err) != oauth.AccessDenied || !errors.Is(err, errOtherAccount) || got.Claim != nil {
				t.Fatalf("got %+v, %v", got, err)
			}
			if got.Came != "bob" || got.Expected != "alice" {
				t.Errorf("the page got %q instead of %q", got.Came, got.Expected)
			}
			r.unconnected(fakeidp.Bob, 1)
			if in, _ := r.signIn("bob"); in.User.ID == a.User.ID {
				t.Error("bob signs in as alice")
			}
		})
	t.Run("PH1: the provider is told whose account is expected", func(t *testing.T) {
		r := newRig(t, nil)
		a, _ := r.signIn("bob")
		b := r.leave(extend(a.User.ID))
		if q := query(t, b.URL); q.Get("login_hint") != "bob" || strings.Contains(q.Get("prompt"), "login") {
			t.Errorf("got %v", q)
		}
		if got, err := r.come(b, "corp"); err != nil || got.Claim != nil || got.User.ID != a.User.ID {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("PH1: who has no account there is asked, as when connecting one", func(t *testing.T) {
		r := newRig(t, nil)
		u := r.local("usr_ada")
		b := r.leave(extend(u.ID))
		if !strings.Contains(query(t, b.URL).Get("prompt"), "login") {
			t.Errorf("the person cannot choose the account: %s", b.URL)
		}
		a, err := r.come(b, "corp")
		if err != nil || a.Claim == nil {
			t.Fatalf("got %+v, %v", a, err)
		}
		if r.rows("identities") != 0 || r.rows("upstreams") != 0 {
			t.Error("something was stored before the person was asked")
		}
	})
	t.Run("PH1: an account that was disconnected while the browser was away is asked about", func(t *testing.T) {
		r := newRig(t, nil)
		u := r.local("usr_ada")
		if _, err := r.connect(r.leave(link(u.ID))); err != nil {
			t.Fatal(err)
		}
		b := r.leave(extend(u.ID))
		if err := r.Disconnect(t.Context(), u.ID, "corp", fakeidp.Alice.Subject, storage.Hash{}); err != nil {
			t.Fatal(err)
		}
		if a, err := r.come(b, "corp"); err != nil || a.Claim == nil || r.rows("identities") != 0 {
			t.Errorf("got %+v, %v", a, err)
		}
	})
}

func TestClaim(t *testing.T) {
	waiting := func(t *testing.T) (*rig, delegation.Result) {
		t.Helper()
		r := newRig(t, nil)
		u := r.local("usr_ada")
		b := r.leave(link(u.ID))
		if !strings.Contains(query(t, b.URL).Get("prompt"), "login") {
			t.Errorf("the person cannot choose the account: %s", b.URL)
		}
		a, err := r.come(b, "corp")
		if err != nil || a.Claim == nil {
			t.Fatalf("got %+v, %v", a, err)
		}
		return r, a
	}
	t.Run("PM1: the person is told which account came back, and nothing but the sealed question is stored",
		func(t *testing.T) {
			r, a := waiting(t)
			if a.Claim.Label != "alice" || a.Claim.Subject != fakeidp.Alice.Subject || a.User.ID != "" ||
				a.Upstream != "" {
				t.Errorf("got %+v %+v", a, a.Claim)
			}
			for table, want := range map[string]int{"identities": 0, "upstreams": 0, "sessions": 0, "departures": 1} {
				if n := r.rows(table); n != want {
					t.Errorf("%d rows in %s, want %d", n, table, want)
				}
			}
		})
	t.Run("PM1: no: nothing is connected, and the tokens are given back", func(t *testing.T) {
		r, a := waiting(t)
		if err := r.Disclaim(t.Context(), a.Claim.Ticket, "usr_ada"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Claim(t.Context(), a.Claim.Ticket, "usr_ada"); code(err) != oauth.InvalidRequest {
			t.Errorf("then yes: %v", err)
		}
		r.unconnected(fakeidp.Alice, 0)
	})
	t.Run("PM1: no answer: after ten minutes the tokens are given back", func(t *testing.T) {
		r, a := waiting(t)
		r.collectAbandoned(t.Context())
		if r.rows("departures") != 1 {
			t.Fatal("it did not wait")
		}
		r.Advance(claimWait)
		r.collectAbandoned(t.Context())
		if _, err := r.Claim(t.Context(), a.Claim.Ticket, "usr_ada"); code(err) != oauth.InvalidRequest ||
			r.rows("departures") != 0 {
			t.Errorf("got %v", err)
		}
		r.unconnected(fakeidp.Alice, 0)
	})
	t.Run("PM1: a late answer does not count, and the tokens are revoked", func(t *testing.T) {
		r, a := waiting(t)
		r.Advance(claimWait)
		if _, err := r.Claim(t.Context(), a.Claim.Ticket, "usr_ada"); code(err) != oauth.InvalidRequest {
			t.Errorf("got %v", err)
		}
		r.unconnected(fakeidp.Alice, 0)
	})
	t.Run("PM1: another user's answer does not count, and uses nothing up", func(t *testing.T) {
		r, a := waiting(t)
		r.local("usr_mallory")
		for _, user := range []string{"usr_mallory", ""} {
			if _, err := r.Claim(t.Context(), a.Claim.Ticket, user); code(err) != oauth.InvalidRequest {
				t.Errorf("%q: got %v", user, err)
			}
			if err := r.Disclaim(t.Context(), a.Claim.Ticket, user); code(err) != oauth.InvalidRequest {
				t.Errorf("%q: got %v", user, err)
			}
		}
		if _, err := r.Claim(t.Context(), "", "usr_ada"); code(err) != oauth.InvalidRequest {
			t.Errorf("no ticket: %v", err)
		}
		if got, err := r.Claim(t.Context(), a.Claim.Ticket, "usr_ada"); err != nil || got.User.ID != "usr_ada" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("PM1: another user has connected the account meanwhile: it stays theirs", func(t *testing.T) {
		r, a := waiting(t)
		other := r.local("usr_bea")
		if _, err := r.connect(r.leave(link(other.ID))); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Claim(t.Context(), a.Claim.Ticket, "usr_ada"); code(err) != oauth.AccessDenied {
			t.Errorf("got %v", err)
		}
		if in, _ := r.signIn("alice"); in.User.ID != other.ID {
			t.Errorf("signed in as %s", in.User.ID)
		}
	})
	t.Run("PM1: what the provider ended while it waited ends here at the first look", func(t *testing.T) {
		r, a := waiting(t)
		r.up.RevokeAll(fakeidp.Alice.Subject)
		if _, err := r.Claim(t.Context(), a.Claim.Ticket, "usr_ada"); err != nil {
			t.Fatal(err)
		}
		r.round(t.Context())
		if u, err := r.store.UpstreamFor(t.Context(), "usr_ada", "corp", ""); err == nil {
			t.Errorf("it stands: %+v", u)
		}
	})
	t.Run("PM1: of 16 answers over two replicas one connects", func(t *testing.T) {
		r, a := waiting(t)
		replicas := []*Delegation{r.Delegation, r.another(r.store, nil)}
		var won atomic.Int64
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				d := replicas[i%2]
				if i%4 == 3 {
					if d.Disclaim(t.Context(), a.Claim.Ticket, "usr_ada") == nil {
						won.Add(1)
					}
				} else if _, err := d.Claim(t.Context(), a.Claim.Ticket, "usr_ada"); err == nil {
					won.Add(1)
				} else if code(err) != oauth.InvalidRequest {
					t.Error(err)
				}
			})
		}
		group.Wait()
		replicas[1].Close()
		if won.Load() != 1 {
			t.Errorf("%d answers were taken", won.Load())
		}
	})
}

func TestAbandoned(t *testing.T) {
	t.Run("who leaves for a provider and does not come back leaves an event", func(t *testing.T) {
		r := newRig(t, nil)
		sentRequest := signIn
		sentRequest.ClientID = "notes-app"
		r.leave(sentRequest)
		r.Advance(requestTTL - time.Second)
		r.collectAbandoned(t.Context())
		if r.Log.Events(audit.ProviderAbandoned) != 0 {
			t.Error("too early")
		}
		r.Advance(time.Second)
		for range 2 {
			r.collectAbandoned(t.Context())
		}
		if r.Log.Events(audit.ProviderAbandoned) != 1 ||
			!strings.Contains(r.Log.String(), `"client_id":"notes-app"`) || r.rows("departures") != 0 {
			t.Errorf("got %s", r.Log.String())
		}
	})
	t.Run("who comes back too late leaves one, too", func(t *testing.T) {
		r := newRig(t, nil)
		b := r.leave(signIn)
		r.Advance(requestTTL)
		if _, err := r.come(b, "corp"); code(err) != oauth.InvalidRequest ||
			r.Log.Events(audit.ProviderAbandoned) != 1 {
			t.Errorf("got %v", err)
		}
	})
}

// leaveAs is leave for a browser that is signed in at the provider as p, whatever the hint.
func (r *rig) leaveAs(t delegation.Request, p fakeidp.Person) browser {
	r.t.Helper()
	left, err := r.Depart(r.t.Context(), t)
	if err != nil {
		r.t.Fatal(err)
	}
	at, err := url.Parse(left.URL)
	if err != nil {
		r.t.Fatal(err)
	}
	q := at.Query()
	q.Set("person", p.Subject)
	at.RawQuery = q.Encode()
	back, err := r.up.Visit(at.String())
	if err != nil {
		r.t.Fatal(err)
	}
	return browser{left, back.Query()}
}

func query(t *testing.T, raw string) url.Values {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

// FuzzWhoComesBack: whatever account a provider returns, it is linked to nobody without consent,
// and the session never belongs to another account.
func FuzzWhoComesBack(f *testing.F) {
	for _, sub := range []string{
		fakeidp.Alice.Subject, fakeidp.Bob.Subject, "", "SUB-ALICE", "sub-alice ", "sub-alice\x00", "süb",
		strings.Repeat("a", 300),
	} {
		f.Add(sub, sub, true)
		f.Add(sub, fakeidp.Alice.Subject, false)
	}
	f.Fuzz(func(t *testing.T, inToken, inUserInfo string, known bool) {
		r := newRig(t, nil)
		r.reproached = true
		u, sentRequest := r.local("usr_ada"), link("usr_ada")
		if known {
			if _, err := r.connect(r.leave(sentRequest)); err != nil {
				t.Fatal(err)
			}
			sentRequest = extend(u.ID)
		}
		before := r.rows("identities")
		r.up.Behave(func(b *fakeidp.Behaviour) {
			b.EditIDToken = func(_, claims map[string]any) { claims["sub"] = inToken }
			b.EditUserInfo = func(claims map[string]any) { claims["sub"] = inUserInfo }
		})
		a, err := r.come(r.leave(sentRequest), "corp")
		if r.rows("identities") != before {
			t.Errorf("an identity was made by the return: %q %q", inToken, inUserInfo)
		}
		if err == nil && a.Claim == nil && (inToken != fakeidp.Alice.Subject || inUserInfo != inToken || !known) {
			t.Errorf("%q, by user info %q, came in unasked", inToken, inUserInfo)
		}
		if a.Claim != nil && (a.Claim.Subject != inToken || inToken != inUserInfo || known) {
			t.Errorf("asked about %q: the token says %q, user info %q", a.Claim.Subject, inToken, inUserInfo)
		}
	})
}
