package users

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/storage"
)

// throttle slows down guessing without letting an attacker lock a person out (AS-05).
//
// Failures are counted in the store, so that all replicas count together, under the account
// with each network of the caller, under each of these networks alone, and under the account
// alone. Past a few failures under any of them each further attempt first waits, one after
// the other; when too many wait, the rest is turned away. So guessing from one place is slow
// however parallel it is and however many accounts it tries, and someone who finally types
// the right password gets in after a short wait. People wait in lines with others of their
// own network, until an account has had a hundred failures (NIST SP 800-63B §5.2.2): from
// then on all browsers that it is not known in stand in one line, of which no network has
// more than one place. Each known browser has a key of its own, which no stranger can touch.
type throttle struct {
	store storage.Failures
	now   func() time.Time
	sleep func(context.Context, time.Duration) error
	// Each attempt passes the gates of its keys. Without them, all of a burst would pass before the
	// first of its failures counts, which is when the password has been checked.
	gates *queues
	lines *queues // in which attempts wait one after the other
}

const (
	failureWindow = 15 * time.Minute
	nearFree      = 5   // failures under account and network before waiting begins
	networkFree   = 100 // failures under the network alone, whatever the account
	farFree       = 50  // failures under the account alone, from anywhere
	allFree       = 100 // and before all unknown browsers wait in one line
	pause         = time.Second
	maxPause      = 2 * time.Second
	maxLine       = 4
	maxUnderWay   = 8  // attempts of one key being checked
	maxUsers      = 64 // together with those that wait for that
)

func newThrottle(c Config) *throttle {
	return &throttle{
		store: c.Store, now: c.Now, sleep: c.Sleep,
		gates: newQueues(maxUnderWay, maxUsers),
		lines: newQueues(1, maxLine),
	}
}

// limit is a key with the failures that are free under it, and the line in which to wait
// beyond them.
type limit struct {
	key, line storage.Hash
	free      int
	counted   Counted
}

// limits are those of an attempt, in the order in which it meets them: of the account at one
// place, of that place, and of the account anywhere.
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

// key hides names and networks: the store need not know who fails to sign in.
func key(parts ...string) storage.Hash {
	return sha256.Sum256([]byte("login failures\x00" + strings.Join(parts, "\x00")))
}

// enter waits for the attempt's turn. The caller releases it when the password has
// been checked and the failure, if any, counted.
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

// holdings is what an attempt holds: slots of gates, and its turn in lines.
type holdings struct {
	leave []func()
	lines map[storage.Hash]bool // in which it is its turn
}

func (h *holdings) release() {
	for _, leave := range slices.Backward(h.leave) {
		leave()
	}
}

// wait passes the gates of limits, waits for the turn in the lines of those that are
// exceeded, and then once, as long as the worst of them asks. All attempts meet limits in
// the same order, so none waits for another that waits for it.
func (t *throttle) wait(ctx context.Context, h *holdings, together []limit) error {
	var longest time.Duration
	for _, l := range together {
		if l.key == l.line { // the gate of another's line is passed already
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

// because is the error of an attempt that could not join a queue under a limit.
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

// cleared forgets the failures from where the person has now signed in. Those of wider
// networks and under the account alone stay: they may be an attack that goes on elsewhere.
func (t *throttle) cleared(ctx context.Context, a Attempt) error {
	return t.store.ClearFailures(ctx, limits(a)[0][0].key)
}
