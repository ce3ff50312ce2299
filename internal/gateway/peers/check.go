package peers

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	checkTime = 5 * time.Second
	maxChecks = 8 // at the same time
)

// Check asks every other replica whether it accepts requests, and logs changes. It reports whether
// the result of Unreached has changed.
func (p *Peers) Check(ctx context.Context) (changed bool) {
	all, err := p.directory.all(ctx)
	if err != nil {
		return false // another component reports that the store is unavailable
	}
	now := p.ask(ctx, all)
	if ctx.Err() != nil {
		return false
	}
	names := map[string]string{}
	for _, r := range all {
		names[r.ID] = r.Name + " (" + r.Address + ")"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, f := range now {
		if before, ok := p.unreached[id]; !ok || before.why != f.why {
			changed = true
			p.c.Logger.WarnContext(ctx, "another replica cannot be reached: sessions of programs that it holds do not work "+
				"here; see peers.listen and peers.address", "replica", names[id], "reason", f.why)
		}
	}
	for id := range p.unreached {
		if _, still := now[id]; still {
			continue
		}
		changed = true
		if _, listed := names[id]; listed {
			p.c.Logger.InfoContext(ctx, "another replica can be reached again, or has ended", "replica", names[id])
		}
	}
	p.unreached = now
	return changed
}

// ask returns the replicas that are running but do not answer.
func (p *Peers) ask(ctx context.Context, all []storage.Replica) map[string]fault {
	var mu sync.Mutex
	var wait sync.WaitGroup
	out := map[string]fault{}
	turns := make(chan struct{}, maxChecks)
	for _, r := range all {
		if r.ID == p.c.Self || r.PeerAddress == "" || p.directory.gone(r) {
			continue
		}
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			if f, ok := p.check(ctx, r.ID); !ok {
				mu.Lock()
				defer mu.Unlock()
				out[r.ID] = f
			}
		})
	}
	wait.Wait()
	return out
}

func (p *Peers) check(ctx context.Context, id string) (f fault, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	req, err := p.request(ctx, http.MethodGet, id, pathCheck)
	if err != nil {
		return fault{why: err.Error()}, false
	}
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return p.explain(ctx, id, err), false
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4096) // so that the connection can be reused
	if resp.StatusCode != http.StatusNoContent {
		return fault{why: fmt.Sprintf("it answers %s", resp.Status)}, false
	}
	return fault{}, true
}

// Unreached returns the replicas that the last Check did not reach, in the form of storage.Replica.
func (p *Peers) Unreached() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(p.unreached)) {
		why := strings.Join(strings.Fields(p.unreached[id].why), " ")
		line := id + " " + strings.ToValidUTF8(why[:min(len(why), 200)], "") + "\n"
		if b.Len()+len(line) > storage.MaxUnreached {
			break
		}
		b.WriteString(line)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
