package users

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// throttle slows down guessing, but does not let an attacker lock out a user (AS-05).
//
// The store counts failures for all replicas. It counts them under the account with each network of
// the caller, under each of these networks alone, and under the account alone. After a few failures
// under any of these keys, each further attempt first waits in a queue. If the queue is full, the
// attempt is refused. So guessing from one place is slow even with many connections or accounts. A
// user who finally types the right password gets in after a short wait. Users wait in a queue with
// others of the same network until an account has had a hundred failures (NIST SP 800-63B §5.2.2).
// From then on, all unknown browsers of the account share one queue. Each network has at most one
// place there. Each known browser has its own key, which strangers cannot affect.
type throttle struct {
	store storage.Failures
	now   func() time.Time
	sleep func(context.Context, time.Duration) error
	// Each attempt passes the gates of its keys. Without gates, a whole burst would pass before its
	// first failure is counted, which happens after the password check.
	gates *queues
	lines *queues // attempts wait here one at a time
}

const (
	failureWindow = 15 * time.Minute
	nearFree      = 5   // failures under account and network before attempts wait
	networkFree   = 100 // failures under the network alone, for any account
	farFree       = 50  // failures under the account alone, from anywhere
	allFree       = 100 // likewise, before all unknown browsers share one queue
	pause         = time.Second
	maxPause      = 2 * time.Second
	maxLine       = 4
	maxUnderWay   = 8  // attempts of one key that are being checked
	maxUsers      = 64 // including attempts that wait for a check
)

func newThrottle(c Config) *throttle {
	return &throttle{
		store: c.Store, now: c.Now, sleep: c.Sleep,
		gates: newQueues(maxUnderWay, maxUsers),
		lines: newQueues(1, maxLine),
	}
}

// limit is a key with its number of free failures, and the queue for attempts beyond them.
type limit struct {
	key, line storage.Hash
	free      int
	counted   Counted
}

// limits returns the limits of an attempt in the order of wait: for the account and network, for
// the network, and for the account.
func limits(a Attempt) [][]limit {
	name := string(a.of) + strings.ToLower(a.Name)
	if a.known() {
		known := key("known", name, a.KnownBrowser.ID)
		return [][]limit{{{known, known, nearFree, ByAccount}}}
	}
	var here, place []limit
	var near storage.Hash
	for i, n := range append([]string{a.Network}, a.Wider...) {
		near = key("near", name, n)
		here = append(here, limit{near, near, network.Allowance(i) * nearFree, ByAccount})
		k := key("network", n)
		place = append(place, limit{k, k, network.Allowance(i) * networkFree, ByNetwork})
	}
	far := key("far", name)
	return [][]limit{
		append(append(here, place...), limit{far, near, farFree, ByAccount}),
		{{far, far, allFree, ByAccount}},
	}
}

// key hashes names and networks, because the store need not know who fails to sign in.
func key(parts ...string) storage.Hash {
	return sha256.Sum256([]byte("login failures\x00" + strings.Join(parts, "\x00")))
}

// enter waits for the attempt's turn. The caller must call release after it has checked the
// password and counted the failure, if any.
func (t *throttle) enter(ctx context.Context, a Attempt) (release func(), err error) {
	h := &holdings{lines: map[storage.Hash]bool{}}
	for _, together := range limits(a) {
		if err := t.wait(ctx, h, together); err != nil {
			h.release()
			return nil, err
		}
	}
	return h.release, nil
}

// holdings are the gate slots and queue turns of an attempt.
type holdings struct {
	leave []func()
	lines map[storage.Hash]bool // queues where it is the attempt's turn
}

func (h *holdings) release() {
	for _, leave := range slices.Backward(h.leave) {
		leave()
	}
}

// wait passes the gates of limits and waits for a turn in the queues of exceeded limits. Then it
// sleeps once, for the longest delay of these limits. All attempts pass limits in the same order,
// so they cannot deadlock.
func (t *throttle) wait(ctx context.Context, h *holdings, together []limit) error {
	var longest time.Duration
	for _, l := range together {
		if l.key == l.line { // the gate of a shared queue has already been passed
			leave, err := t.gates.join(ctx, l.key)
			if err != nil {
				return l.because(err)
			}
			h.leave = append(h.leave, leave)
		}
		count, _, err := t.store.FailureCount(ctx, l.key, t.now(), failureWindow)
		if err != nil {
			return err
		}
		if count < l.free {
			continue
		}
		longest = max(longest, min(pause*time.Duration(1+(count-l.free)/5), maxPause))
		if h.lines[l.line] {
			continue
		}
		leave, err := t.lines.join(ctx, l.line)
		if err != nil {
			return l.because(err)
		}
		h.leave, h.lines[l.line] = append(h.leave, leave), true
	}
	if longest == 0 {
		return nil
	}
	return t.sleep(ctx, longest)
}

// because returns the error of an attempt that could not join the queue of a limit.
func (l limit) because(err error) error {
	if errors.Is(err, errFull) {
		return &ThrottledError{RetryAfter: maxLine * maxPause, Counted: l.counted}
	}
	return err
}

// failed counts a failure under every key of the attempt.
func (t *throttle) failed(ctx context.Context, a Attempt) error {
	counted := map[storage.Hash]bool{}
	for _, l := range slices.Concat(limits(a)...) {
		if counted[l.key] {
			continue
		}
		counted[l.key] = true
		if _, err := t.store.RecordFailure(ctx, l.key, t.now(), failureWindow); err != nil {
			return err
		}
	}
	return nil
}

// cleared clears the failures from the place of a successful sign-in. Failures under wider networks
// and under the account alone remain, because an attack may continue elsewhere.
func (t *throttle) cleared(ctx context.Context, a Attempt) error {
	return t.store.ClearFailures(ctx, limits(a)[0][0].key)
}
