package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// proposed returns a proposal that is open for an hour.
func (e *env) proposed(id string) storage.Proposal {
	return storage.Proposal{
		ID: id, Operation: "user delete", Input: []byte{0, 1, 255}, Thing: "digest",
		By:        storage.Party{UserID: "usr_1", Name: "alice", ClientID: "cli"},
		CreatedAt: e.now, ExpiresAt: e.now.Add(time.Hour), State: storage.ProposalOpen,
	}
}

// proposals checks OB-10: operations that wait for a second administrator.
func proposals(t *testing.T, e *env) {
	bob := storage.Party{UserID: "usr_2", Name: "bob"}
	accept := storage.ProposalDecision{State: storage.ProposalAccepted, By: bob, At: e.now.Add(time.Minute)}
	a, b := e.proposed("prp_a"), e.proposed("prp_b")
	check(t, e.s.PutProposal(e.ctx, a, e.now))
	check(t, e.s.PutProposal(e.ctx, b, e.now))
	t.Run("OB-10 it is found as it was made, until it expires", func(t *testing.T) {
		got, err := e.s.Proposal(e.ctx, a.ID, e.now)
		check(t, err)
		same(t, got, a)
		_, err = e.s.Proposal(e.ctx, a.ID, a.ExpiresAt)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.Proposal(e.ctx, "prp_unknown", e.now)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("OB-10 they are listed by id", func(t *testing.T) {
		for after, want := range map[string][]storage.Proposal{"": {a, b}, a.ID: {b}, b.ID: nil} {
			got, err := e.s.ListProposals(e.ctx, after, 10, e.now)
			check(t, err)
			same(t, len(got), len(want))
			for i := range got {
				same(t, got[i], want[i])
			}
		}
		got, err := e.s.ListProposals(e.ctx, "", 10, a.ExpiresAt)
		check(t, err)
		same(t, len(got), 0)
	})
	t.Run("OB-10 it ends once, and says by whom", func(t *testing.T) {
		got, err := e.s.DecideProposal(e.ctx, a.ID, accept)
		check(t, err)
		a.State, a.Decided, a.DecidedAt = storage.ProposalAccepted, bob, accept.At
		same(t, got, a)
		_, err = e.s.DecideProposal(e.ctx, a.ID, storage.ProposalDecision{State: storage.ProposalDeclined, At: e.now})
		wantErr(t, err, storage.ErrSpent)
		got, err = e.s.Proposal(e.ctx, a.ID, e.now)
		check(t, err)
		same(t, got, a)
	})
	t.Run("OB-10 what has expired, or is unknown, cannot end", func(t *testing.T) {
		late := accept
		late.At = b.ExpiresAt
		_, err := e.s.DecideProposal(e.ctx, b.ID, late)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.DecideProposal(e.ctx, "prp_unknown", accept)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("OB-10 as many are open as may be", func(t *testing.T) {
		for i := range storage.MaxProposals - 1 {
			check(t, e.s.PutProposal(e.ctx, e.proposed(fmt.Sprintf("prp_many%03d", i)), e.now))
		}
		wantErr(t, e.s.PutProposal(e.ctx, e.proposed("prp_z"), e.now), storage.ErrFull)
		_, err := e.s.DecideProposal(e.ctx, b.ID, accept)
		check(t, err)
		check(t, e.s.PutProposal(e.ctx, e.proposed("prp_z"), e.now))
	})
	t.Run("OB-10 a sweep removes what has expired", func(t *testing.T) {
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: a.ExpiresAt}, 1000)
		check(t, err)
		check(t, e.s.PutProposal(e.ctx, e.proposed("prp_a"), e.now))
	})
}

// raceDecideProposal: of 32 concurrent decisions, one counts.
func raceDecideProposal(t *testing.T, e *env) {
	check(t, e.s.PutProposal(e.ctx, e.proposed("prp_race"), e.now))
	var c tally
	compete(func(i int) {
		_, err := e.s.DecideProposal(e.ctx, "prp_race", storage.ProposalDecision{
			State: storage.ProposalAccepted, By: storage.Party{UserID: fmt.Sprint("usr_", i)}, At: e.now,
		})
		c.add(err, storage.ErrSpent)
	})
	c.want(t, 1)
}
