package storagetest

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Bench measures the verbs that users and clients wait for, with 32 callers.
func Bench(b *testing.B, open func(b *testing.B) storage.Store) {
	s := open(b)
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	e := &env{s: s, ctx: context.Background(), now: today()}
	b.Run("Visit", func(b *testing.B) { benchVisit(b, e) })
	b.Run("Approve", func(b *testing.B) { benchApprove(b, e) })
	b.Run("RedeemCode", func(b *testing.B) { benchRedeem(b, e) })
	b.Run("RotateRefresh", func(b *testing.B) { benchRotate(b, e) })
}

// parallel calls f from 32 goroutines with the numbers 0 to b.N-1.
func parallel(b *testing.B, f func(i int) error) {
	b.Helper()
	b.SetParallelism(max(1, racers/runtime.GOMAXPROCS(0)))
	var next atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := f(int(next.Add(1) - 1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func benchVisit(b *testing.B, e *env) {
	a := e.approved(b)
	k := storage.VisitKey{Session: a.Session, ClientID: a.Grant.ClientID, Resource: a.Grant.Resource, Now: e.now}
	parallel(b, func(int) error {
		_, err := e.s.Visit(e.ctx, k)
		return err
	})
}

func benchApprove(b *testing.B, e *env) {
	all := e.approvals(b, b.N)
	parallel(b, func(i int) error { return e.s.Approve(e.ctx, all[i]) })
}

func benchRedeem(b *testing.B, e *env) {
	all := e.approvals(b, b.N)
	parallel(b, func(i int) error { return e.s.Approve(e.ctx, all[i]) })
	parallel(b, func(i int) error {
		_, err := e.s.RedeemCode(e.ctx, e.redemption(all[i]))
		return err
	})
}

func benchRotate(b *testing.B, e *env) {
	grants := make([]storage.RotateRefresh, racers)
	for i := range grants {
		a, refresh := e.granted(b)
		grants[i] = e.rotation(a, refresh)
	}
	free := make(chan storage.RotateRefresh, racers)
	for _, r := range grants {
		free <- r
	}
	parallel(b, func(int) error {
		r := <-free
		out, err := e.s.RotateRefresh(e.ctx, r)
		r.Token, r.Next = successor(r, out), e.refresh()
		free <- r
		return err
	})
}

// approvals returns n approvals by several users of one stored client.
func (e *env) approvals(b *testing.B, n int) []storage.Approval {
	b.Helper()
	people := make([]person, racers)
	for i := range people {
		people[i] = e.person(b)
	}
	cl := e.client()
	check(b, e.s.PutClient(e.ctx, cl))
	out := make([]storage.Approval, n)
	for i := range out {
		a := e.approval(people[i%racers])
		a.Client, a.Grant.ClientID = &cl, cl.ID
		out[i] = a
	}
	return out
}
