package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// note stores one call of a grant.
func (e *env) note(t testing.TB, a storage.Approval, tool string, at time.Time) {
	t.Helper()
	check(t, e.s.NoteCalls(e.ctx, map[string]storage.ToolCall{a.Grant.ID: {Tool: tool, At: at}}))
}

// wantCall checks a grant's last call as its user sees it.
func (e *env) wantCall(t testing.TB, a storage.Approval, want storage.ToolCall) {
	t.Helper()
	got, err := e.s.Connection(e.ctx, a.Grant.UserID, a.Grant.ID, e.now)
	check(t, err)
	same(t, got.LastCall, want)
}

// lastCalls checks the stored calls of a grant (PE-09).
func lastCalls(t *testing.T, e *env) {
	later := func(d time.Duration) time.Time { return e.now.Add(d) }
	t.Run("PE-09 the last call of a grant and of a key is listed", func(t *testing.T) {
		p, k := e.madeKey(t)
		a, _ := e.connected(t, p)
		quiet, _ := e.connected(t, p)
		read, report := storage.ToolCall{Tool: "read", At: later(time.Second)}, storage.ToolCall{At: later(time.Hour)}
		check(t, e.s.NoteCalls(e.ctx, map[string]storage.ToolCall{a.Grant.ID: read, k.Grant.ID: report}))
		page, err := e.s.Connections(e.ctx, p.ID, "", e.now, 10)
		check(t, err)
		listed := map[string]storage.ToolCall{}
		for _, c := range page {
			listed[c.ID] = c.LastCall
		}
		same(t, listed, map[string]storage.ToolCall{a.Grant.ID: read, quiet.Grant.ID: {}})
		keys, err := e.s.ProgramKeys(e.ctx, p.ID, e.now)
		check(t, err)
		same(t, keys[0].LastCall, report)
	})
	t.Run("PE-09 a later call takes its place, however soon; an earlier one never", func(t *testing.T) {
		a, _ := e.granted(t)
		e.note(t, a, "first", e.now)
		e.note(t, a, "earlier", later(-time.Millisecond))
		e.wantCall(t, a, storage.ToolCall{Tool: "first", At: e.now})
		e.note(t, a, "later", later(time.Millisecond))
		e.wantCall(t, a, storage.ToolCall{Tool: "later", At: later(time.Millisecond)})
	})
	t.Run("PE-09 what is no live grant is left out, and the others are kept", func(t *testing.T) {
		a, _ := e.granted(t)
		revoked, _ := e.granted(t)
		check(t, e.s.RevokeGrant(e.ctx, revoked.Grant.ID, storage.ByOperator, e.now))
		disabled, _ := e.granted(t)
		check(t, e.s.SetUserDisabled(e.ctx, disabled.Grant.UserID, true, e.now))
		ended, _ := e.granted(t)
		call := storage.ToolCall{Tool: "read", At: e.now}
		check(t, e.s.NoteCalls(e.ctx, map[string]storage.ToolCall{
			a.Grant.ID: call, revoked.Grant.ID: call, disabled.Grant.ID: call, "grt_unknown": call, "": call,
			ended.Grant.ID: {Tool: "read", At: ended.Grant.ExpiresAt},
		}))
		e.wantCall(t, a, call)
		e.wantCall(t, ended, storage.ToolCall{})
		check(t, e.s.NoteCalls(e.ctx, nil))
	})
	t.Run("PE-09 a pause takes nothing away", func(t *testing.T) {
		a, _ := e.granted(t)
		check(t, e.s.PauseGrant(e.ctx, a.Grant.UserID, a.Grant.ID, e.now))
		e.note(t, a, "read", e.now)
		e.wantCall(t, a, storage.ToolCall{Tool: "read", At: e.now})
	})
	t.Run("it goes with its grant", func(t *testing.T) {
		revoked, _ := e.granted(t)
		ended := e.grantedFor(t, time.Hour)
		for _, a := range []storage.Approval{revoked, ended} {
			e.note(t, a, "read", e.now)
		}
		check(t, e.s.RevokeGrant(e.ctx, revoked.Grant.ID, storage.ByPerson, e.now))
		e.sweepAll(t, later(25*time.Hour))
		e.wantCallGone(t, revoked)
		e.wantCallGone(t, ended)
	})
}

// grantedFor returns a redeemed approval of a new user that expires after d.
func (e *env) grantedFor(t testing.TB, d time.Duration) storage.Approval {
	t.Helper()
	a := e.approval(e.person(t))
	a.Grant.ExpiresAt = e.now.Add(d)
	check(t, e.s.Approve(e.ctx, a))
	e.redeem(t, e.redemption(a))
	return a
}

// wantCallGone checks that no call of a removed grant is kept: a new grant with its id has no last
// call.
func (e *env) wantCallGone(t testing.TB, a storage.Approval) {
	t.Helper()
	again := e.approval(e.person(t))
	again.Grant.ID = a.Grant.ID
	check(t, e.s.Approve(e.ctx, again))
	e.redeem(t, e.redemption(again))
	e.wantCall(t, again, storage.ToolCall{})
}

// upgradedCalls removes a grant with the statement of a replica of the previous version. The
// grant's calls are removed at the time the grant would have ended.
func upgradedCalls(t *testing.T, e *env, exec func(query string, args ...any)) {
	a := e.grantedFor(t, time.Hour)
	e.note(t, a, "read", e.now)
	exec("DELETE FROM grants WHERE id = ?", a.Grant.ID)
	e.sweepAll(t, a.Grant.ExpiresAt)
	e.wantCallGone(t, a)
}

// raceNote stores calls of the same grants from several replicas: each grant keeps the latest.
func raceNote(t *testing.T, e *env) {
	var grants []storage.Approval
	for range 20 {
		a, _ := e.granted(t)
		grants = append(grants, a)
	}
	var c tally
	compete(func(i int) {
		calls := map[string]storage.ToolCall{}
		for _, a := range grants {
			calls[a.Grant.ID] = storage.ToolCall{
				Tool: string(rune('A' + i)), At: e.now.Add(time.Duration(i) * time.Second),
			}
		}
		c.add(e.s.NoteCalls(e.ctx, calls))
	})
	c.want(t, racers)
	const last = racers - 1
	for _, a := range grants {
		e.wantCall(t, a, storage.ToolCall{Tool: string(rune('A' + last)), At: e.now.Add(last * time.Second)})
	}
}
