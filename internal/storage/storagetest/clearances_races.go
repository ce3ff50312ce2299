package storagetest

import (
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// raceClearance: of 32 calls with one given approval, one passes. The others wait for one new
// approval.
func raceClearance(t *testing.T, e *env) {
	_, c := e.given(t)
	var mu sync.Mutex
	won, waits := 0, map[string]int{}
	compete(func(int) {
		got, err := e.s.AskClearance(e.ctx, again(c, e.now))
		check(t, err)
		mu.Lock()
		defer mu.Unlock()
		if got.State == storage.ClearanceSpent {
			won++
		} else {
			waits[got.ID]++
		}
	})
	if won != 1 || len(waits) != 1 {
		t.Errorf("got %d calls that pass and %d clearances that wait, want 1 and 1", won, len(waits))
	}
}

// raceDecideClearance: one of 32 concurrent decisions counts.
func raceDecideClearance(t *testing.T, e *env) {
	a, _ := e.granted(t)
	c := e.ask(t, e.clearance(a))
	var n tally
	compete(func(i int) { n.add(e.decide(c, a.Session, i%2 == 0, e.now), storage.ErrSpent) })
	n.want(t, 1)
}

// raceFullClearances: of 32 concurrent requests, as many wait as the limit allows.
func raceFullClearances(t *testing.T, e *env) {
	a, _ := e.granted(t)
	machine := storage.ClearanceTerms{ // in the configuration: the store knows no such client
		ClientID: secrets.ID("c_"), Resource: a.Grant.Resource, Tool: "erase", By: oauth.ClearanceByOther,
	}
	for name, terms := range map[string]storage.ClearanceTerms{
		"of a grant": e.clearance(a).ClearanceTerms, "of a machine": machine,
	} {
		t.Run(name, func(t *testing.T) {
			var n tally
			compete(func(i int) {
				c := storage.Clearance{ClearanceTerms: terms, State: storage.ClearanceWaits, Sealed: []byte{1}}
				c = again(c, e.now)
				c.Digest[1] = byte(i)
				_, err := e.s.AskClearance(e.ctx, c)
				n.add(err, storage.ErrFull)
			})
			n.want(t, storage.MaxClearances)
		})
	}
	t.Run("of a person", func(t *testing.T) { fullPerson(t, e, a) })
}

// fullPerson fills the last places of a user at the same time, through all of their grants.
func fullPerson(t *testing.T, e *env, a storage.Approval) {
	p := person{User: storage.User{ID: a.Grant.UserID}, session: a.Session}
	var grants []storage.Approval
	for range storage.MaxPersonClearances / storage.MaxClearances { // with the one above, one more than the limit
		grants = append(grants, e.approval(p))
		check(t, e.s.Approve(e.ctx, grants[len(grants)-1]))
	}
	waits := storage.MaxClearances
	for i := range storage.MaxPersonClearances - storage.MaxClearances - 4 {
		c := e.clearance(grants[i%len(grants)])
		c.Digest[1] = byte(i)
		e.ask(t, c)
		waits++
	}
	var n tally
	compete(func(i int) {
		c := e.clearance(grants[i%len(grants)])
		c.Digest[2] = byte(i + 1)
		_, err := e.s.AskClearance(e.ctx, c)
		n.add(err, storage.ErrFull)
	})
	n.want(t, storage.MaxPersonClearances-waits)
}
