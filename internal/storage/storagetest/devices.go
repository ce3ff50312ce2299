package storagetest

import (
	"errors"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// device stores the request of a device for the terms of an approval.
func (e *env) device(t testing.TB, a storage.Approval) storage.Device {
	t.Helper()
	d := storage.Device{
		Code: a.Code.Hash, UserCode: randomHash(), ClientID: a.Grant.ClientID, Resource: a.Grant.Resource,
		Scopes: a.Grant.Scopes, Agent: "a terminal", Address: "192.0.2.0/24", CreatedAt: e.now,
		ProvedAfter: e.now.Add(-time.Minute), ACR: "phr",
		ExpiresAt: e.now.Add(10 * time.Minute), Interval: 5 * time.Second,
	}
	check(t, e.s.PutDevice(e.ctx, d))
	return d
}

// deviceApproval returns an approval whose request is not stored yet.
func (e *env) deviceApproval(t testing.TB) storage.Approval {
	t.Helper()
	return e.deviceApprovalOf(e.person(t))
}

func (e *env) deviceApprovalOf(p person) storage.Approval {
	a := e.approval(p)
	a.Place, a.Code.RedirectURI, a.Code.Challenge = storage.DevicePlace, "", oauth.GrantDeviceCode
	a.Code.ExpiresAt = e.now.Add(10 * time.Minute)
	return a
}

func devices(t *testing.T, e *env) {
	t.Run("a request is found by its user code while it waits for a decision", func(t *testing.T) {
		d := e.device(t, e.deviceApproval(t))
		got, err := e.s.DeviceByUserCode(e.ctx, d.UserCode, e.now)
		check(t, err)
		same(t, got, d)
		_, err = e.s.DeviceByUserCode(e.ctx, randomHash(), e.now)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.DeviceByUserCode(e.ctx, d.UserCode, d.ExpiresAt)
		wantErr(t, err, storage.ErrNotFound)
		check(t, e.s.DenyDevice(e.ctx, d.Code, e.now))
		_, err = e.s.DeviceByUserCode(e.ctx, d.UserCode, e.now)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("a user code that is taken is ErrExists", func(t *testing.T) {
		d := e.device(t, e.deviceApproval(t))
		d.Code = randomHash()
		wantErr(t, e.s.PutDevice(e.ctx, d), storage.ErrExists)
	})
	t.Run("AS-240 an approval makes the grant, and the device code redeems it once", func(t *testing.T) {
		a := e.deviceApproval(t)
		d := e.device(t, a)
		check(t, e.s.ApproveDevice(e.ctx, a))
		p, err := e.s.PollDevice(e.ctx, d.Code, d.ClientID, e.now)
		check(t, err)
		if p.GrantID != a.Grant.ID || !p.DecidedAt.Equal(e.now) {
			t.Errorf("got %+v", p)
		}
		e.redeem(t, e.redemption(a))
		_, err = e.s.RedeemCode(e.ctx, e.redemption(a))
		wantErr(t, err, storage.ErrSpent)
		e.wantLive(t, a, false)
	})
	t.Run("a second decision is ErrSpent", func(t *testing.T) {
		a := e.deviceApproval(t)
		d := e.device(t, a)
		check(t, e.s.ApproveDevice(e.ctx, a))
		wantErr(t, e.s.DenyDevice(e.ctx, d.Code, e.now), storage.ErrSpent)
		again := a
		again.Grant.ID = secrets.ID("gr_")
		wantErr(t, e.s.ApproveDevice(e.ctx, again), storage.ErrSpent)
		e.wantLive(t, a, true)
	})
	t.Run("a request that was denied makes no grant", func(t *testing.T) {
		a := e.deviceApproval(t)
		d := e.device(t, a)
		check(t, e.s.DenyDevice(e.ctx, d.Code, e.now))
		wantErr(t, e.s.ApproveDevice(e.ctx, a), storage.ErrSpent)
		e.wantLive(t, a, false)
	})
	t.Run("at its expiry a request cannot be decided", func(t *testing.T) {
		a := e.deviceApproval(t)
		d := e.device(t, a)
		a.Now = d.ExpiresAt
		wantErr(t, e.s.ApproveDevice(e.ctx, a), storage.ErrExpired)
		wantErr(t, e.s.DenyDevice(e.ctx, d.Code, d.ExpiresAt), storage.ErrExpired)
		wantErr(t, e.s.DenyDevice(e.ctx, randomHash(), e.now), storage.ErrExpired)
	})
	deviceRefusals(t, e)
	devicePolls(t, e)
}

func deviceRefusals(t *testing.T, e *env) {
	for _, tt := range []struct {
		name string
		edit func(*storage.Approval)
		want error
	}{
		{"whose session has ended", func(a *storage.Approval) { a.Session = randomHash() }, storage.ErrNotFound},
		{"by another person", func(a *storage.Approval) { a.Grant.UserID = "usr_other" }, storage.ErrNotFound},
		{"for another resource", func(a *storage.Approval) { a.Grant.Resource = "https://other.example" },
			storage.ErrExpired},
	} {
		t.Run("an approval "+tt.name+" leaves the request undecided", func(t *testing.T) {
			a := e.deviceApproval(t)
			d := e.device(t, a)
			bad := a
			tt.edit(&bad)
			wantErr(t, e.s.ApproveDevice(e.ctx, bad), tt.want)
			_, err := e.s.DeviceByUserCode(e.ctx, d.UserCode, e.now)
			check(t, err)
			check(t, e.s.ApproveDevice(e.ctx, a))
		})
	}
}

func devicePolls(t *testing.T, e *env) {
	t.Run("RFC 8628 3.5: a device that polls too early has to wait longer from then on", func(t *testing.T) {
		d := e.device(t, e.deviceApproval(t))
		at := e.now
		for i, step := range []struct {
			after time.Duration
			early bool
			next  time.Duration
		}{
			{0, false, 5 * time.Second},
			{4 * time.Second, false, 5 * time.Second}, // within the slack
			{3999 * time.Millisecond, true, 10 * time.Second},
			{8 * time.Second, true, 15 * time.Second},
			{14 * time.Second, false, 15 * time.Second},
		} {
			at = at.Add(step.after)
			p, err := e.s.PollDevice(e.ctx, d.Code, d.ClientID, at)
			check(t, err)
			if p.Early != step.early || p.Interval != step.next {
				t.Errorf("poll %d: got early %v, interval %v, want %v, %v", i, p.Early, p.Interval, step.early, step.next)
			}
		}
	})
	t.Run("a poll of another client is ErrMismatch and changes nothing", func(t *testing.T) {
		d := e.device(t, e.deviceApproval(t))
		_, err := e.s.PollDevice(e.ctx, d.Code, "other", e.now)
		wantErr(t, err, storage.ErrMismatch)
		p, err := e.s.PollDevice(e.ctx, d.Code, d.ClientID, e.now)
		check(t, err)
		if p.Early {
			t.Error("the poll of another client counted")
		}
	})
	t.Run("an unknown device code is ErrNotFound", func(t *testing.T) {
		_, err := e.s.PollDevice(e.ctx, randomHash(), "x", e.now)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("an expired request is known for an hour", func(t *testing.T) {
		d := e.device(t, e.deviceApproval(t))
		for _, tt := range []struct {
			after time.Duration
			want  error
		}{{time.Hour - time.Millisecond, nil}, {time.Hour, storage.ErrNotFound}} {
			_, err := e.s.Sweep(e.ctx, storage.Retention{Now: d.ExpiresAt.Add(tt.after)}, 100)
			check(t, err)
			_, err = e.s.PollDevice(e.ctx, d.Code, d.ClientID, d.ExpiresAt)
			wantErr(t, err, tt.want)
		}
	})
}

// raceDecide approves and denies one request at the same time: one decision counts.
func raceDecide(t *testing.T, e *env) {
	a := e.deviceApproval(t)
	d := e.device(t, a)
	var c tally
	compete(func(i int) {
		if i%2 == 0 {
			c.add(e.s.DenyDevice(e.ctx, d.Code, e.now), storage.ErrSpent)
			return
		}
		mine := a
		mine.Grant.ID = secrets.ID("gr_")
		c.add(e.s.ApproveDevice(e.ctx, mine), storage.ErrSpent)
	})
	c.want(t, 1)
	p, err := e.s.PollDevice(e.ctx, d.Code, d.ClientID, e.now)
	check(t, err)
	live, err := e.s.ListGrants(e.ctx, a.Grant.UserID, "", "", 10)
	check(t, err)
	if want := p.GrantID != ""; want != (len(live) == 1) || len(live) > 1 {
		t.Errorf("got %d grants after a decision for %q", len(live), p.GrantID)
	}
}

// raceDevice polls and redeems one approved request from many goroutines at once.
func raceDevice(t *testing.T, e *env) {
	a := e.deviceApproval(t)
	d := e.device(t, a)
	check(t, e.s.ApproveDevice(e.ctx, a))
	var c tally
	compete(func(int) {
		p, err := e.s.PollDevice(e.ctx, d.Code, d.ClientID, e.now)
		if err == nil && p.GrantID == "" {
			err = errors.New("not approved")
		}
		if err == nil {
			_, err = e.s.RedeemCode(e.ctx, e.redemption(a))
		}
		c.add(err, storage.ErrSpent, storage.ErrRevoked)
	})
	c.want(t, 1)
}

// racePoll polls one device in parallel: all polls except one are early.
func racePoll(t *testing.T, e *env) {
	d := e.device(t, e.deviceApproval(t))
	var c tally
	compete(func(int) {
		p, err := e.s.PollDevice(e.ctx, d.Code, d.ClientID, e.now)
		if err == nil && p.Early {
			err = storage.ErrSpent
		}
		c.add(err, storage.ErrSpent)
	})
	c.want(t, 1)
}
