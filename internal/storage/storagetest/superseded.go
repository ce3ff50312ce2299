package storagetest

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// signInAgain returns another sign-in of the same user with the same client, redeemed at a time.
func (e *env) signInAgain(t testing.TB, a storage.Approval, at time.Time) (storage.Approval, storage.PresentedRefresh) {
	t.Helper()
	a.Now, a.Grant.ID, a.Code.Hash = at, secrets.ID("gr_"), randomHash()
	a.Grant.CreatedAt, a.Code.ExpiresAt = at, at.Add(time.Minute)
	check(t, e.s.Approve(e.ctx, a))
	r := e.redemption(a)
	r.Now = at
	r.Refresh.ExpiresAt = at.Add(90 * 24 * time.Hour)
	return a, e.redeem(t, r)
}

func (e *env) sweepAll(t testing.TB, now time.Time) {
	t.Helper()
	for {
		n, err := e.s.Sweep(e.ctx, storage.Retention{Now: now}, 7)
		check(t, err)
		if n == 0 {
			return
		}
	}
}

// live lists the grants of a user to a client.
func (e *env) live(t testing.TB, a storage.Approval) map[string]bool {
	t.Helper()
	got, err := e.s.ListGrants(e.ctx, a.Grant.UserID, a.Grant.ClientID, "", 1000)
	check(t, err)
	out := make(map[string]bool)
	for _, g := range got {
		out[g.ID] = true
	}
	return out
}

// superseded checks issue 12, 1.3: newer sign-ins end older ones. The limits do not affect a client
// that runs twice.
func superseded(t *testing.T, e *env) {
	const week, day = 7 * 24 * time.Hour, 24 * time.Hour
	t.Run("a grant whose code was not redeemed goes, and keeps none of them from going", func(t *testing.T) {
		a := e.approved(t)
		b, _ := e.granted(t)
		e.sweepAll(t, e.now.Add(time.Minute+time.Hour-time.Millisecond))
		same(t, len(e.live(t, a)), 1)
		e.sweepAll(t, e.now.Add(time.Minute+time.Hour))
		same(t, len(e.live(t, a)), 0)
		same(t, len(e.live(t, b)), 1)
	})
	t.Run("beyond 64 those go that were used longest ago, and no sooner", func(t *testing.T) {
		e.now = e.now.Add(2 * time.Hour) // sign-ins are stored in time order
		a := e.approval(e.person(t))
		var grants []storage.Approval
		for i := range 70 {
			g, _ := e.signInAgain(t, a, e.now.Add(time.Duration(i)*time.Second))
			grants = append(grants, g)
		}
		var sweeps sync.WaitGroup
		for range 4 {
			sweeps.Go(func() { e.sweepAll(t, e.now.Add(time.Hour)) })
		}
		sweeps.Wait()
		e.sweepAll(t, e.now.Add(time.Hour))
		live := e.live(t, a)
		for i, g := range grants {
			if want := i >= 6; live[g.Grant.ID] != want {
				t.Errorf("sign-in %d lives: got %v, want %v", i, live[g.Grant.ID], want)
			}
		}
		same(t, e.supersededEvents(t), map[string]float64{a.Grant.UserID + " " + a.Grant.ClientID: 6})
	})
	t.Run("beyond eight those go that were not used for seven days", func(t *testing.T) {
		e.now = e.now.Add(2 * time.Hour)
		a, b := e.approval(e.person(t)), e.approval(e.person(t))
		other := a
		other.Grant.Resource = "https://other.example/mcp"
		oldOther, _ := e.signInAgain(t, other, e.now)
		oldB, _ := e.signInAgain(t, b, e.now)
		var ids []string
		var first storage.Approval
		var token storage.PresentedRefresh
		for i := range 12 {
			g, refresh := e.signInAgain(t, a, e.now.Add(time.Duration(i)*time.Second))
			if ids = append(ids, g.Grant.ID); i == 0 {
				first, token = g, refresh
			}
		}
		rotation := e.rotation(first, token)
		rotation.Now = e.now.Add(time.Hour) // the first stored is the last used
		e.rotate(t, rotation)
		e.sweepAll(t, e.now.Add(time.Minute))
		same(t, len(e.live(t, a)), 13) // including the one for the other resource

		a.Session = randomHash()
		check(t, e.s.PutSession(e.ctx,
			storage.Session{
				Hash: a.Session, UserID: a.Grant.UserID, AuthTime: e.now, CreatedAt: e.now,
				ExpiresAt: e.now.Add(2 * week)}, storage.SignInStart{}))
		last, _ := e.signInAgain(t, a, e.now.Add(week+day/2))
		e.sweepAll(t, e.now.Add(week+day))
		live := e.live(t, a)
		for i, id := range append(ids, last.Grant.ID, oldOther.Grant.ID) {
			if want := i == 0 || i >= 6; live[id] != want {
				t.Errorf("sign-in %d lives: got %v, want %v", i, live[id], want)
			}
		}
		same(t, e.live(t, b), map[string]bool{oldB.Grant.ID: true})
		later := *e
		later.now = e.now.Add(week + day)
		later.wantLive(t, first, true)

		gone := first
		gone.Grant.ID = ids[1]
		later.wantLive(t, gone, false)
		revoked, err := e.s.RevokedGrants(e.ctx, 0, 1<<40)
		check(t, err)
		same(t, len(revoked), 5)
		counts := e.supersededEvents(t)
		same(t, counts, map[string]float64{a.Grant.UserID + " " + a.Grant.ClientID: 5})
	})
}

// supersededEvents adds up the events that the sweeps have stored.
func (e *env) supersededEvents(t testing.TB) map[string]float64 {
	t.Helper()
	events, err := e.s.TakeEvents(e.ctx, 1000, e.now)
	check(t, err)
	for _, ev := range events {
		check(t, e.s.LoggedEvents(e.ctx, []string{ev.ID}, e.now))
	}
	out := make(map[string]float64)
	for _, ev := range events {
		var f struct {
			User     string
			ClientID string `json:"client_id"`
			Grants   float64
		}
		check(t, json.Unmarshal(ev.Fields, &f))
		if ev.Name == storage.GrantSuperseded {
			out[f.User+" "+f.ClientID] += f.Grants
		}
	}
	return out
}
