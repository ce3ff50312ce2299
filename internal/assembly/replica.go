package assembly

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
)

const (
	seeEvery  = 15 * time.Second // plus or minus a fifth, so that replicas do not all write at the same time
	seeSooner = 3 * time.Second  // after a failed write
	seeTime   = 5 * time.Second
)

// presence tells the store, and thereby administrators, that this server runs.
type presence struct {
	parts Parts
	audit *auditlog.Writer // nil without an audit log
	self  storage.Replica
}

// present lists this server in the store until the returned function is called. A server that stops
// is removed from the list. One that is killed is no longer seen. Other replicas send session
// requests to peerAddress. They find it when present returns, or within seconds if the store is
// unavailable.
func (s *Server) present(ctx context.Context, sites []authserver.Site, peerAddress string) (leave func()) {
	p := &presence{parts: s.parts, audit: s.audit, self: storage.Replica{
		ID:        s.parts.replica,
		Name:      s.parts.Config.ReplicaName(),
		Version:   s.parts.Version,
		Migration: lastStep(s.parts.Config.Postgres()),
		Issuer:    s.parts.Config.Issuer,
		Address:   s.parts.Config.Listen,
		StartedAt: s.parts.Now(),

		PeerAddress: peerAddress,
	}}
	if len(sites) > 0 && sites[0].Listener != nil {
		p.self.Address = sites[0].Listener.Addr().String()
	}
	seeing, stop := context.WithCancel(context.WithoutCancel(ctx))
	if peerAddress != "" {
		_ = p.see(seeing) // run repeats it, and logs the error
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.run(seeing)
	}()
	return func() {
		stop()
		<-done
		p.leave(context.WithoutCancel(ctx))
	}
}

// lastStep returns the last step of the schema that this program knows.
func lastStep(postgres bool) int {
	engine := migration.SQLite
	if postgres {
		engine = migration.Postgres
	}
	steps, err := migration.Steps(engine)
	if err != nil {
		return 0 // opening the store has failed then
	}
	return len(steps)
}

func (p *presence) run(ctx context.Context) {
	failed := false
	for {
		err := p.see(ctx)
		if err == nil && p.self.PeerAddress != "" && p.parts.peers.Check(ctx) {
			err = p.see(ctx) // with the result of the check
		}
		if ctx.Err() != nil {
			return
		}
		wait := seeEvery*4/5 + rand.N(seeEvery*2/5)
		if err != nil {
			wait = seeSooner
			if !failed {
				p.parts.Log.WarnContext(ctx, "this replica is not listed: the store did not take that it is there",
					"error", err)
			}
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// see writes the state of this server to the store.
func (p *presence) see(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, seeTime)
	defer cancel()
	now := p.self
	now.SeenAt, now.Skew = p.parts.Now(), p.parts.Store.Skew()
	if p.parts.peers != nil {
		now.Unreached = p.parts.peers.Unreached()
	}
	if p.audit != nil {
		now.AuditWaiting, now.AuditLost = p.audit.State()
	}
	return p.parts.Store.SeeReplica(ctx, now)
}

func (p *presence) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, seeTime)
	defer cancel()
	if err := p.parts.Store.ForgetReplica(ctx, p.self.ID); err != nil {
		p.parts.Log.WarnContext(ctx, "this replica stays listed for a day: the store did not take that it ends",
			"error", err)
	}
}
