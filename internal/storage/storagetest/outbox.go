package storagetest

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// told lists all kinds.
var told = []string{
	storage.KindSessionRevoked, storage.KindCredentialChange, storage.KindAccountDisabled, storage.KindAccountEnabled,
	storage.KindAccountPurged, storage.KindGrantRevoked,
}

// deliveries takes and settles the deliveries of a receiver.
func (e *env) deliveries(t testing.TB, receiver string) (out []storage.Delivery) {
	t.Helper()
	for {
		d, err := e.s.TakeDelivery(e.ctx, receiver, e.now, e.now.Add(time.Minute))
		if err != nil {
			wantErr(t, err, storage.ErrNotFound)
			return out
		}
		check(t, e.s.SettleDelivery(e.ctx, d, time.Time{}, ""))
		out = append(out, d)
	}
}

func (e *env) wantTold(t testing.TB, receiver, subject string, kinds ...string) {
	t.Helper()
	var got []string
	for _, d := range e.deliveries(t, receiver) {
		if d.Subject != subject || d.ID == "" || d.At.IsZero() || !strings.HasPrefix(string(d.Detail), "{") {
			t.Errorf("got %+v, want one about %s", d, subject)
		}
		got = append(got, d.Kind)
	}
	if strings.Join(got, " ") != strings.Join(kinds, " ") {
		t.Errorf("%s got %q, want %q", receiver, got, kinds)
	}
}

func outbox(t *testing.T, e *env) {
	e.now = time.Now().UTC().Truncate(time.Millisecond) // the clock of the triggers
	name := func(id string, kinds ...string) {
		t.Helper()
		check(t, e.s.NameReceivers(e.ctx, []storage.EventReceiver{{ID: id, Kinds: kinds}}, e.now))
	}
	name("all", told...)
	name("few", storage.KindAccountDisabled)
	u := e.person(t).User
	t.Run("AS-245 what changes is told with the change, to those who want it", func(t *testing.T) {
		a, _ := e.granted(t)
		owner := a.Grant.UserID
		e.deliveries(t, "all")
		check(t, e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now))
		check(t, e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now))
		got := e.deliveries(t, "all")
		if len(got) != 1 || got[0].Kind != storage.KindGrantRevoked || got[0].Subject != owner ||
			!got[0].At.Equal(e.now) || !strings.Contains(string(got[0].Detail), a.Grant.ID) {
			t.Errorf("got %+v", got)
		}
		check(t, e.s.SetUserDisabled(e.ctx, u.ID, true, e.now))
		check(t, e.s.SetUserDisabled(e.ctx, u.ID, true, e.now))
		e.wantTold(t, "few", u.ID, storage.KindAccountDisabled)
		check(t, e.s.SetUserDisabled(e.ctx, u.ID, false, e.now))
		check(t, e.s.SetPassword(e.ctx, u.ID, "another", true, e.now))
		check(t, e.s.AddWay(e.ctx, storage.Way{
			ID: secrets.ID("way_"), UserID: u.ID, Kind: storage.App, Data: []byte("x"), CreatedAt: e.now,
		}, storage.Hash{}))
		check(t, e.s.StopEverything(e.ctx, u.ID, e.now.Add(time.Second)))
		check(t, e.s.DeleteUser(e.ctx, u.ID, e.now))
		// Disabling an account ends its sessions.
		e.wantTold(t, "all", u.ID, storage.KindAccountDisabled, storage.KindSessionRevoked,
			storage.KindAccountEnabled, storage.KindCredentialChange, storage.KindCredentialChange,
			storage.KindSessionRevoked, storage.KindAccountPurged)
		e.wantTold(t, "few", u.ID)
	})
	t.Run("AS-245 a sign-in at a provider that others end is told, and one that its person ends is not", func(t *testing.T) {
		a, owner := e.arrived(t)
		check(t, e.s.EndSession(e.ctx, a.Session.Hash, e.now))
		e.wantTold(t, "all", owner.ID)
		b := e.again(a)
		e.arrive(t, b)
		e.end(t, storage.UpstreamKey{ID: b.Upstream.ID}, "revoked")
		e.wantTold(t, "all", owner.ID, storage.KindSessionRevoked)
	})
	t.Run("AS-245 grants that are cut as a whole are told as they are marked", func(t *testing.T) {
		a, _ := e.granted(t)
		cut, err := e.s.CutGrants(e.ctx, storage.Selection{ClientID: a.Grant.ClientID}, storage.ByOperator, e.now)
		check(t, err)
		for done := false; !done; {
			cut, err = e.s.FollowCut(e.ctx, cut.ID, e.now, 100)
			check(t, err)
			done = cut.Done
		}
		e.wantTold(t, "all", a.Grant.UserID, storage.KindGrantRevoked)
	})
	t.Run("AS-245 deliveries keep their order and their id, until one is settled", func(t *testing.T) {
		put := func(id string) error {
			return e.s.PutDelivery(e.ctx, storage.Delivery{
				ID: id, Receiver: "few", Kind: storage.KindVerification, Detail: []byte("{}"), At: e.now,
			})
		}
		check(t, put("set_1"))
		check(t, put("set_2"))
		wantErr(t, e.s.PutDelivery(e.ctx, storage.Delivery{ID: "set_3", Receiver: "none", At: e.now}),
			storage.ErrNotFound)
		take := func(at time.Time) (storage.Delivery, error) {
			return e.s.TakeDelivery(e.ctx, "few", at, at.Add(time.Minute))
		}
		first, err := take(e.now)
		check(t, err)
		_, err = take(e.now.Add(time.Minute - time.Millisecond))
		wantErr(t, err, storage.ErrNotFound) // the second is not taken before the first is settled
		second, err := take(e.now.Add(time.Minute))
		check(t, err)
		if first.ID != "set_1" || second.ID != "set_1" || second.Tries != 2 {
			t.Errorf("got %+v and %+v", first, second)
		}
		wantErr(t, e.s.SettleDelivery(e.ctx, first, time.Time{}, ""), storage.ErrSpent)
		check(t, e.s.SettleDelivery(e.ctx, second, e.now.Add(time.Hour), "it was down"))
		_, err = take(e.now.Add(time.Hour - time.Millisecond))
		wantErr(t, err, storage.ErrNotFound)
		all, err := e.s.Backlogs(e.ctx, e.now)
		check(t, err)
		if len(all) != 2 || all[0].Receiver != "all" || all[0].Waiting != 0 || !all[0].Oldest.IsZero() ||
			all[1].Waiting != 2 || all[1].Failed != "it was down" || all[1].Tries != 2 || !all[1].Oldest.Equal(e.now) {
			t.Errorf("got %+v", all)
		}
		third, err := take(e.now.Add(time.Hour))
		check(t, err)
		check(t, e.s.SettleDelivery(e.ctx, third, time.Time{}, ""))
		e.wantTold(t, "few", "", storage.KindVerification)
	})
	t.Run("AS-245 a delivery waits seven days, and so long is told who is not named", func(t *testing.T) {
		v := e.person(t).User
		check(t, e.s.SetUserDisabled(e.ctx, v.ID, true, e.now))
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now.Add(storage.DeliveryFor - time.Hour)}, 100)
		check(t, err)
		e.wantTold(t, "few", v.ID, storage.KindAccountDisabled)
		check(t, e.s.SetUserDisabled(e.ctx, v.ID, false, e.now))
		_, err = e.s.Sweep(e.ctx, storage.Retention{Now: e.now.Add(storage.DeliveryFor + time.Hour)}, 100)
		check(t, err)
		e.wantTold(t, "all", "")
		later := e.now.Add(storage.DeliveryFor)
		late := storage.Delivery{ID: "set_4", Receiver: "few", Detail: []byte("{}"), At: later}
		wantErr(t, e.s.PutDelivery(e.ctx, late), storage.ErrNotFound)
		all, err := e.s.Backlogs(e.ctx, later)
		check(t, err)
		same(t, len(all), 0)
	})
}

// raceTakeDelivery has 32 replicas send to one receiver.
func raceTakeDelivery(t *testing.T, e *env) {
	check(t, e.s.NameReceivers(e.ctx, []storage.EventReceiver{{ID: "r", Kinds: told}}, e.now))
	for _, id := range []string{"set_1", "set_2", "set_3"} {
		check(t, e.s.PutDelivery(e.ctx, storage.Delivery{ID: id, Receiver: "r", Detail: []byte("{}"), At: e.now}))
	}
	var c tally
	compete(func(int) {
		d, err := e.s.TakeDelivery(e.ctx, "r", e.now, e.now.Add(time.Minute))
		if err == nil && d.ID != "set_1" {
			t.Errorf("%s was taken before the first", d.ID)
		}
		c.add(err, storage.ErrNotFound)
	})
	c.want(t, 1)
}
