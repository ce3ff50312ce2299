package storagetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// racePause pauses a grant while it is refreshed. No refresh succeeds after the pause, and none
// ends the pause. Once resumed, the grant continues with the same token.
func racePause(t *testing.T, e *env) {
	for range 20 {
		p := e.person(t)
		a, token := e.connected(t, p)
		var mu sync.Mutex
		newest := token
		var refreshes tally
		compete(func(i int) {
			if i == 0 {
				check(t, e.s.PauseGrant(e.ctx, p.ID, a.Grant.ID, e.now))
				_, err := e.s.RotateRefresh(e.ctx, e.rotation(a, token))
				wantErr(t, err, storage.ErrPaused)
				return
			}
			r := e.rotation(a, token)
			out, err := e.s.RotateRefresh(e.ctx, r)
			if refreshes.add(err, storage.ErrPaused); err == nil && !out.Replayed {
				mu.Lock()
				defer mu.Unlock()
				newest = successor(r, out)
			}
		})
		for _, err := range refreshes.odd {
			t.Error(err)
		}
		e.wantLive(t, a, false)
		_, err := e.s.RotateRefresh(e.ctx, e.rotation(a, newest))
		wantErr(t, err, storage.ErrPaused)
		check(t, e.s.ResumeGrant(e.ctx, p.ID, a.Grant.ID, e.now))
		e.wantLive(t, a, true)
		e.rotate(t, e.rotation(a, newest))
	}
}

// raceStop stops everything of a user while the user approves applications and devices, and these
// redeem earlier codes and refresh. No result is usable afterwards.
func raceStop(t *testing.T, e *env) {
	for range 10 {
		p := e.person(t)
		a, token := e.connected(t, p)
		waiting, collected, asked := e.approval(p), e.deviceApprovalOf(p), e.deviceApprovalOf(p)
		check(t, e.s.Approve(e.ctx, waiting))
		e.device(t, collected)
		check(t, e.s.ApproveDevice(e.ctx, collected))
		e.device(t, asked)
		allowed := []error{
			storage.ErrRevoked, storage.ErrNotFound, storage.ErrSpent, storage.ErrExpired, storage.ErrMismatch,
		}
		var c tally
		compete(func(i int) {
			switch i % 8 {
			case 0:
				c.add(e.s.StopEverything(e.ctx, p.ID, e.now))
				_, err := e.s.RotateRefresh(e.ctx, e.rotation(a, token))
				wantErr(t, err, storage.ErrRevoked)
			case 1, 2:
				_, err := e.s.RotateRefresh(e.ctx, e.rotation(a, token))
				c.add(err, storage.ErrRevoked)
			case 3:
				_, err := e.s.RedeemCode(e.ctx, e.redemption(waiting))
				c.add(err, allowed...)
			case 4:
				_, err := e.s.RedeemCode(e.ctx, e.redemption(collected))
				c.add(err, allowed...)
			case 5:
				mine := asked
				mine.Grant.ID = secrets.ID("gr_")
				c.add(e.s.ApproveDevice(e.ctx, mine), allowed...)
			default:
				mine := e.approval(p)
				err := e.s.Approve(e.ctx, mine)
				if err == nil {
					_, err = e.s.RedeemCode(e.ctx, e.redemption(mine))
				}
				c.add(err, allowed...)
			}
		})
		for _, err := range c.odd {
			t.Error(err)
		}
		e.wantStopped(t, p, a, token)
		for _, b := range []storage.Approval{waiting, collected} {
			e.wantLive(t, b, false)
			if _, err := e.s.RedeemCode(e.ctx, e.redemption(b)); !errors.Is(err, storage.ErrRevoked) {
				t.Errorf("a code is redeemed afterwards: got %v, want %v", err, storage.ErrRevoked)
			}
		}
	}
}

// wantStopped checks that a user has no session and no grant.
func (e *env) wantStopped(t testing.TB, p person, a storage.Approval, token storage.PresentedRefresh) {
	t.Helper()
	e.wantSession(t, p.session, false)
	e.wantLive(t, a, false)
	e.wantRefreshRefused(t, a, token)
	live, err := e.s.ListGrants(e.ctx, p.ID, "", "", 10)
	check(t, err)
	if len(live) > 0 {
		t.Errorf("PE-10: %d grants outlived the stop of everything", len(live))
	}
}

// changesOf returns functions that change a user's authentication methods in a session.
func (e *env) changesOf(p person) map[string]func(in storage.Hash) error {
	way, old, codes := e.passkey(p.ID), e.passkey(p.ID), []storage.Hash{{1}}
	return map[string]func(in storage.Hash) error{
		"a password":     func(in storage.Hash) error { return e.s.ChangePassword(e.ctx, p.ID, "$another", in, e.now) },
		"a way more":     func(in storage.Hash) error { return e.s.AddWay(e.ctx, way, in) },
		"recovery codes": func(in storage.Hash) error { return e.s.ReplaceRecoveryCodes(e.ctx, p.ID, codes, in) },
		"no password":    func(in storage.Hash) error { return e.s.RemovePassword(e.ctx, p.ID, served, in) },
		"no codes":       func(in storage.Hash) error { return e.s.RemoveRecoveryCodes(e.ctx, p.ID, served, in) },
		"a way less":     func(in storage.Hash) error { return e.s.RemoveWay(e.ctx, p.ID, old.ID, served, in) },
		"another way name": func(in storage.Hash) error {
			_, err := e.s.RenameWay(e.ctx, p.ID, old.ID, "New", in)
			return err
		},
		"an account less": func(in storage.Hash) error {
			u := e.untie(p.ID, storage.Identity{Connector: "acme", Subject: "none"})
			u.In = in
			_, err := e.s.Unlink(e.ctx, u)
			return err
		},
	}
}

// changesInASession checks that users can change their authentication methods only in a live
// session (PE-04, PE-10).
func changesInASession(t *testing.T, e *env) {
	for name := range e.changesOf(e.person(t)) {
		t.Run("PE-10 "+name+" only while the session lasts", func(t *testing.T) {
			p, q := e.person(t), e.person(t)
			wantErr(t, e.changesOf(p)[name](q.session), storage.ErrSignedOut)
			check(t, e.s.StopEverything(e.ctx, p.ID, e.now))
			wantErr(t, e.changesOf(p)[name](p.session), storage.ErrSignedOut)
			u, err := e.s.User(e.ctx, p.ID)
			check(t, err)
			same(t, u.PasswordHash, p.PasswordHash)
			e.wantWays(t, p.ID)
		})
	}
	p := e.person(t)
	check(t, e.changesOf(p)["a way more"](p.session))
	check(t, e.changesOf(p)["recovery codes"](p.session))
	check(t, e.changesOf(p)["a password"](p.session))
	wantErr(t, e.changesOf(p)["recovery codes"](p.session), storage.ErrSignedOut) // a new password ends it
}

// raceChangeStop stops everything of a user while their session adds authentication methods: none
// is added after it.
func raceChangeStop(t *testing.T, e *env) {
	p := e.person(t)
	var stopped atomic.Bool
	compete(func(i int) {
		if i == 0 {
			check(t, e.s.StopEverything(e.ctx, p.ID, e.now))
			stopped.Store(true)
			return
		}
		late := stopped.Load()
		w := e.passkey(p.ID)
		err := e.s.AddWay(e.ctx, w, p.session)
		switch {
		case err == nil && late:
			t.Error("PE-10: a way in was added after everything had been stopped")
		case err != nil && !errors.Is(err, storage.ErrSignedOut) && !errors.Is(err, storage.ErrFull):
			t.Error(err)
		}
	})
	wantErr(t, e.s.AddWay(e.ctx, e.passkey(p.ID), p.session), storage.ErrSignedOut)
}
