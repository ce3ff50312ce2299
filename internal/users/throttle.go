package users

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// throttle slows down guessing without letting anybody lock anybody else out.
//
// Failures are counted in the store, so that all replicas count together, under the
// account with the network of the caller, under the account alone, and under the network
// alone. Past a few failures under any of them each further attempt first waits, one
// after the other; when too many wait, the rest is turned away. So guessing from one
// place is slow however parallel it is and however many accounts it tries, and someone
// who finally types the right password gets in after a short wait. People wait only in
// lines with others of their own network: strangers elsewhere can make an account slow,
// never full. A known browser has a key of its own, which no stranger can touch.
type throttle struct {
	store storage.Failures
	now   func() time.Time
	sleep func(context.Context, time.Duration) error

	mu      sync.Mutex // guards waiting and gates
	waiting map[storage.Hash]*line
	gates   map[storage.Hash]*gate
}

// gate bounds the attempts of one key that are under way at once, because a failure
// counts only when its password has been checked: without it, all of a burst would
// pass before the first of them counts.
type gate struct {
	slots chan struct{}
	users int // under way or waiting
}

// line is the queue of the attempts under one key; its turn is held by the one that
// waits or is checked.
type line struct {
	length int
	turn   chan struct{}
}

const (
	failureWindow = 15 * time.Minute
	nearFree      = 5   // failures under account and network before waiting begins
	farFree       = 50  // failures under the account alone, from anywhere
	networkFree   = 100 // failures under the network alone, whatever the account
	pause         = time.Second
	maxPause      = 2 * time.Second
	maxLine       = 4
	maxUnderWay   = 8  // attempts of one key being checked
	maxUsers      = 64 // and waiting for that
)

func newThrottle(c Config) *throttle {
	return &throttle{store: c.Store, now: c.Now, sleep: c.Sleep, waiting: map[storage.Hash]*line{}, gates: map[storage.Hash]*gate{}}
}

// limit is a key with the failures that are free under it, and the key of the line in
// which to wait beyond them.
type limit struct {
	key, line storage.Hash
	free      int
}

// limits are those of an attempt. The first is also the gate, with that of the network.
func limits(a Attempt) []limit {
	name := strings.ToLower(a.Name)
	if a.KnownDevice {
		known := key("known", name)
		return []limit{{known, known, nearFree}}
	}
	near, network := key("near", name, a.Network), key("network", a.Network)
	return []limit{{near, near, nearFree}, {key("far", name), near, farFree}, {network, network, networkFree}}
}

// key hides names and networks: the store need not know who fails to sign in.
func key(parts ...string) storage.Hash {
	return sha256.Sum256([]byte("login failures\x00" + strings.Join(parts, "\x00")))
}

// enter waits for the attempt's turn. The caller releases it when the password has
// been checked and the failure, if any, counted.
func (t *throttle) enter(ctx context.Context, a Attempt) (release func(), err error) {
	var held []func()
	release = func() {
		for _, leave := range slices.Backward(held) {
			leave()
		}
	}
	all := limits(a)
	take := func(leave func(), err error) bool {
		if err == nil {
			held = append(held, leave)
		}
		return err == nil
	}
	for _, l := range all {
		if l.key != l.line { // the gate of its line is passed already
			continue
		}
		leave, err := t.pass(ctx, l.key)
		if !take(leave, err) {
			release()
			return nil, err
		}
	}
	for _, l := range all {
		count, _, err := t.store.FailureCount(ctx, l.key, t.now(), failureWindow)
		if err == nil && count < l.free {
			continue
		}
		var leave func()
		if err == nil {
			leave, err = t.queue(ctx, l.line, min(pause*time.Duration(1+(count-l.free)/5), maxPause))
		}
		if take(leave, err) {
			break // one wait is enough
		}
		release()
		return nil, err
	}
	return release, nil
}

// pass takes a slot of the gate of key, and waits for one if need be.
func (t *throttle) pass(ctx context.Context, k storage.Hash) (leave func(), err error) {
	t.mu.Lock()
	g := t.gates[k]
	if g == nil {
		g = &gate{slots: make(chan struct{}, maxUnderWay)}
		t.gates[k] = g
	}
	if g.users >= maxUsers {
		t.mu.Unlock()
		return nil, &ThrottledError{RetryAfter: maxLine * maxPause}
	}
	g.users++
	t.mu.Unlock()

	out := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if g.users--; g.users == 0 {
			delete(t.gates, k)
		}
	}
	select {
	case g.slots <- struct{}{}:
		return func() { <-g.slots; out() }, nil
	case <-ctx.Done():
		out()
		return nil, ctx.Err()
	}
}

// queue takes a place in the line of key, waits for the turn and then for d.
func (t *throttle) queue(ctx context.Context, k storage.Hash, d time.Duration) (func(), error) {
	t.mu.Lock()
	l := t.waiting[k]
	if l == nil {
		l = &line{turn: make(chan struct{}, 1)}
		t.waiting[k] = l
	}
	if l.length >= maxLine {
		t.mu.Unlock()
		return nil, &ThrottledError{RetryAfter: maxLine * maxPause}
	}
	l.length++
	t.mu.Unlock()

	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if l.length--; l.length == 0 {
			delete(t.waiting, k)
		}
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	release := func() { <-l.turn; leave() }
	if err := t.sleep(ctx, d); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// failed counts a failure under every key of the attempt.
func (t *throttle) failed(ctx context.Context, a Attempt) error {
	for _, l := range limits(a) {
		if _, err := t.store.RecordFailure(ctx, l.key, t.now(), failureWindow); err != nil {
			return err
		}
	}
	return nil
}

// cleared forgets the failures from where the person has now signed in. Those under
// the account alone stay: they may be an attack that goes on elsewhere.
func (t *throttle) cleared(ctx context.Context, a Attempt) error {
	return t.store.ClearFailures(ctx, limits(a)[0].key)
}
