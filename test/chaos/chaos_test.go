// Package chaos tests three replicas of the built server on a PostgreSQL with a synchronous
// standby. Many clients use them during failures: replicas are killed, PostgreSQL is stopped, its
// primary is lost and the standby promoted, keys are rotated, and access is revoked. Every response
// to a client must remain true.
//
// MCP_AUTHD_CHAOS=long runs for minutes instead of seconds. MCP_AUTHD_CHAOS_SEED repeats the order
// of events of an earlier run.
package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// plan is the amount of work.
type plan struct {
	clients, people, kills int
	losses                 int // of the PostgreSQL primary
	lasts                  time.Duration
	pause                  time.Duration // maximum pause of a client between two steps
	hung                   time.Duration // duration of a PostgreSQL hang
}

func newPlan() plan {
	if os.Getenv("MCP_AUTHD_CHAOS") == "long" {
		return plan{
			clients: 300, people: 8, kills: 40, losses: 3, lasts: 150 * time.Second, pause: 3 * time.Second,
			hung: 13 * time.Second,
		}
	}
	return plan{
		clients: 100, people: 5, kills: 6, losses: 1, lasts: 20 * time.Second, pause: 1500 * time.Millisecond,
		hung: 5 * time.Second,
	}
}

func newSeed(t *testing.T) uint64 {
	seed := rand.Uint64()
	if given := os.Getenv("MCP_AUTHD_CHAOS_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("MCP_AUTHD_CHAOS_SEED=%d", seed)
	return seed
}

type run struct {
	*cluster
	plan
	seed   uint64
	people []*person
	wg     sync.WaitGroup // goroutines in addition to the events
	doomed *person        // their account will be disabled
	over   chan struct{}

	mu   sync.Mutex // guards the fields below
	live []*client  // clients with valid grants
	dead []*client  // clients whose grants were ended
}

func TestChaos(t *testing.T) {
	lane.Long(t, "test/e2e kills one replica at a time")
	x := newRun(newCluster(t, grace, (*cluster).startNodes), newPlan())
	x.during(x.events)
	if x.rotations.Load() != 2 {
		t.Errorf("keys were rotated %d times", x.rotations.Load())
	}
}

// newRun adds users to a cluster and starts it.
func newRun(c *cluster, p plan) *run {
	x := &run{cluster: c, plan: p, seed: newSeed(c.t), over: make(chan struct{})}
	for i := range x.plan.people + 1 {
		name := fmt.Sprintf("person%d", i)
		if err := x.command(password, "user", "add", name, "--password-stdin"); err != nil {
			x.t.Fatal(err)
		}
		x.people = append(x.people, &person{Person: demotest.NewPerson(name, password)})
	}
	x.people, x.doomed = x.people[1:], x.people[0]
	x.start()
	return x
}

// during runs clients while events happen, and checks the results.
func (x *run) during(events func()) {
	x.ledger.started = time.Now()
	for i := range x.clients {
		x.wg.Go(func() { x.life(i) })
	}
	x.wg.Go(x.cohort)
	events()
	close(x.over)
	x.wg.Wait()
	x.settle()
	x.t.Log(x.ledger)
	x.t.Logf("PostgreSQL was away from %s", x.absences())
	if !x.muchHappened() || len(x.live) == 0 || len(x.dead) == 0 || x.reused.Load() == 0 {
		x.t.Errorf("too little happened to show anything: %d clients were left", len(x.live))
	}
	for _, name := range invariants {
		x.t.Run(name, func(t *testing.T) {
			for i, what := range x.broken[name] {
				if i == reported {
					t.Errorf("and %d more", len(x.broken[name])-i)
					break
				}
				t.Error(what)
			}
		})
	}
}

func (x *run) rand(stream int) *rand.Rand { return rand.New(rand.NewPCG(x.seed, uint64(stream))) }

func (x *run) isOver() bool {
	select {
	case <-x.over:
		return true
	default:
		return false
	}
}

// begin signs in a new client. It returns nil after a failure, which it records.
func (x *run) begin(p *person, r *rand.Rand) *client {
	c := &client{cluster: x.cluster, person: p, rand: r}
	err := c.register()
	if err == nil {
		err = c.signIn()
	}
	if err != nil {
		x.breach(signedIn, "a client could not sign in: %v", err)
		return nil
	}
	return c
}

// life runs one client until the end of the run. When its grant is revoked, it signs in as a new
// client.
func (x *run) life(i int) {
	r := x.rand(i)
	var c *client
	for !x.isOver() {
		pause(time.Duration(r.Int64N(int64(x.pause))))
		if c == nil {
			if c = x.begin(x.people[i%len(x.people)], r); c == nil {
				return
			}
			continue
		}
		switch n := r.IntN(1000); {
		case n < 15:
			if err := c.revoke(r.IntN(8)); err != nil {
				x.breach(cutOff, "not revoked: %v", err)
				return
			}
			x.keep(&x.dead, c)
			c = nil
		case n < 25:
			if err := c.race(); err != nil {
				x.breach(weather, "a race: %v", err)
			}
		default:
			if err := c.step(); err != nil {
				return // it was recorded
			}
		}
	}
	if c != nil {
		x.keep(&x.live, c)
	}
}

func (x *run) keep(list *[]*client, c *client) {
	x.mu.Lock()
	defer x.mu.Unlock()
	*list = append(*list, c)
}

// cohort runs the clients of a user whose account is disabled half-way.
func (x *run) cohort() {
	r := x.rand(-1)
	var all []*client
	for range 4 {
		if c := x.begin(x.doomed, r); c != nil {
			all = append(all, c)
		}
	}
	for time.Since(x.started) < x.lasts/2 {
		for _, c := range all {
			if c.step() != nil {
				return
			}
		}
		pause(x.pause / 4)
	}
	if err := x.command("", "user", "disable", x.doomed.Username); err != nil {
		x.breach(cutOff, "not disabled: %v", err)
		return
	}
	x.revoked.Add(int64(len(all)))
	for _, c := range all {
		c.mustBeDead(cutOff)
		x.keep(&x.dead, c)
	}
}

// events causes failures in an order that depends on the seed.
func (x *run) events() {
	r := x.rand(-2)
	what := []func(*rand.Rand){
		func(r *rand.Rand) { x.restart(pgtest.Fast, r) }, func(r *rand.Rand) { x.restart(pgtest.Immediate, r) },
		x.rotate, x.rotate, x.hang,
	}
	for range x.losses {
		what = append(what, x.lose)
	}
	for range x.kills {
		what = append(what, x.crash)
	}
	r.Shuffle(len(what), func(i, j int) { what[i], what[j] = what[j], what[i] })
	for i, event := range what {
		due := x.started.Add(x.lasts * time.Duration(i+1) / time.Duration(len(what)+1))
		pause(time.Until(due.Add(-time.Duration(r.Int64N(int64(x.lasts) / int64(len(what)+1))))))
		event(r)
	}
	pause(time.Until(x.started.Add(x.lasts)))
	within(2*time.Minute, x.muchHappened) // on a slow machine it takes longer
}

// muchHappened reports whether the clients have done enough for a meaningful result.
func (x *run) muchHappened() bool { return x.refreshes.Load() >= int64(3*x.clients) }

// crash kills a replica. At least one of the three keeps running.
func (x *run) crash(r *rand.Rand) {
	up := x.up()
	if len(up) < 2 {
		return
	}
	x.kill(up[r.IntN(len(up))], r)
}

func (x *run) kill(one *replica, r *rand.Rand) {
	x.ledger.kills.Add(1)
	one.kill(time.Duration(r.IntN(1500)) * time.Millisecond)
}

func (x *run) up() (out []*replica) {
	for _, r := range x.replicas {
		if r.ready() == http.StatusOK {
			out = append(out, r)
		}
	}
	return out
}

// restart stops PostgreSQL until every replica has noticed, and starts it again.
func (x *run) restart(mode pgtest.Mode, r *rand.Rand) {
	up := x.up()
	pids := map[*replica]int{}
	x.leave()
	x.restarts.Add(1)
	if err := x.primary().Stop(mode); err != nil {
		x.t.Error(err)
	}
	if len(up) > 1 && r.IntN(2) == 0 {
		x.kill(up[0], r) // it cannot start until PostgreSQL is back
		up = up[1:]
	}
	for _, one := range up {
		pids[one] = one.pid()
		if !within(patience, func() bool { return one.ready() == http.StatusServiceUnavailable }) {
			x.breach(weather, "%s does not say that it is not ready: %d", one.address, one.ready())
		}
	}
	for _, one := range up {
		one.cached()
	}
	pause(time.Duration(r.IntN(1000)) * time.Millisecond)
	if err := errors.Join(x.primary().Start(), x.inSync()); err != nil {
		x.t.Error(err)
	}
	x.arrive()
	x.recovered(pids)
}

// lose kills the PostgreSQL primary permanently and promotes its standby. Acknowledged data must
// exist, and no replica may restart.
func (x *run) lose(*rand.Rand) {
	pids := map[*replica]int{}
	for _, one := range x.up() {
		pids[one] = one.pid()
	}
	x.leave()
	x.failovers.Add(1)
	if err := x.failOver(); err != nil {
		x.t.Error(err)
	}
	x.arrive()
	x.recovered(pids)
}

func (x *run) recovered(pids map[*replica]int) {
	for one, pid := range pids {
		if !within(patience, func() bool { return one.ready() == http.StatusOK }) || one.pid() != pid {
			x.breach(weather, "%s did not get ready again by itself", one.address)
		}
	}
}

// hang makes PostgreSQL hang for a while: it neither refuses nor answers.
func (x *run) hang(*rand.Rand) {
	pids := map[*replica]int{}
	for _, one := range x.up() {
		pids[one] = one.pid()
	}
	x.leave()
	x.hangs.Add(1)
	x.primary().valve.shut()
	over := time.Now().Add(x.hung)
	pause(x.hung / 5) // requests queue up
	var wg sync.WaitGroup
	for one := range pids {
		wg.Go(one.cached)
	}
	wg.Wait()
	pause(time.Until(over))
	x.primary().valve.open()
	x.arrive()
	x.recovered(pids)
}

// rotate creates a new signing key. It checks that a token of any replica is valid, verifiable and
// revocable at all replicas during the time when they may use different keys.
func (x *run) rotate(r *rand.Rand) {
	if err := x.command("", "keys", "rotate", "--now"); err != nil {
		x.breach(verified, "%v", err)
		return
	}
	x.rotations.Add(1)
	p, seed := x.people[r.IntN(len(x.people))], r.Int()
	for i := range 17 {
		x.wg.Go(func() {
			pause(time.Duration(i+1) * time.Second)
			c := x.begin(p, x.rand(seed+i))
			if c == nil {
				return
			}
			for range x.replicas {
				if c.verify(c.access) != nil || c.introspect(c.access) != nil {
					return
				}
			}
			if err := c.revoke(2); err != nil { // with its access token
				x.breach(cutOff, "not revoked: %v", err)
				return
			}
			x.keep(&x.dead, c)
		})
	}
}

// settle checks everything again without failures.
func (x *run) settle() {
	for _, r := range x.replicas {
		if !within(patience, func() bool { return r.ready() == http.StatusOK }) {
			x.breach(weather, "%s is not ready at the end: %d", r.address, r.ready())
		}
	}
	var wg sync.WaitGroup
	// Clients that refreshed first need the shortest wait until the grace ends.
	early := slices.DeleteFunc(slices.Clone(x.live), func(c *client) bool { return c.spent == "" })
	slices.SortFunc(early, func(a, b *client) int { return a.spentAt.Compare(b.spentAt) })
	early = early[:min(len(early), x.clients/5)]
	for _, c := range x.live {
		wg.Go(func() {
			for _, r := range x.replicas { // each replica accepts the refresh token of another
				a, err := x.ask(c.rotation(c.refresh), r)
				if err != nil {
					x.breach(kept, "%v", err)
					return
				}
				out, err := c.told(c.refresh, a)
				if err != nil {
					x.breach(kept, "the last refresh token that a client was told: %v", err)
					return
				}
				x.refreshes.Add(1)
				c.keep(out)
			}
			_ = c.introspect(c.access) // records any fault
			_ = c.verify(c.access)
			if slices.Contains(early, c) {
				c.reuseLate()
			}
		})
	}
	wg.Wait()
	for _, c := range x.dead {
		c.mustBeDead(kept)
	}
}
