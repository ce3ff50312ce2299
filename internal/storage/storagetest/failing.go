package storagetest

import (
	"context"
	"errors"
	"sync"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// ErrInjected is the error of a Failing store. It is not a sentinel of the contract, so it means
// that the database failed.
var ErrInjected = errors.New("storagetest: injected failure")

// Failing is a store whose n-th call fails, whichever verb it is. Tests use it to check that no
// failure is answered as a success and that no check fails open.
type Failing struct {
	storage.Store

	mu     sync.Mutex // guards the fields below
	around Around
	armed  bool
	lost   bool // the call is carried out and its reply lost
	left   int  // calls that succeed before the failing one
	verbs  []string
	hit    string
}

// NewFailing lets calls of store fail, until the end of the store.
func NewFailing(store storage.Store) *Failing {
	f := &Failing{Store: store}
	store.Hook(f.call)
	return f
}

// Arm makes the call after the next n calls fail before it changes anything. Later calls succeed.
func (f *Failing) Arm(n int) { f.arm(n, false) }

// ArmLost is Arm for a call that is carried out and whose reply is lost.
func (f *Failing) ArmLost(n int) { f.arm(n, true) }

func (f *Failing) arm(n int, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.lost, f.left, f.hit, f.verbs = true, lost, n, "", nil
}

// Disarm ends the injection. It returns the verb that failed, "" if there were fewer calls, and all
// verbs that were called since Arm, in order.
func (f *Failing) Disarm() (failed string, called []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = false
	return f.hit, f.verbs
}

// Pause runs do with a working store, and then restores the injection.
func (f *Failing) Pause(do func()) {
	f.mu.Lock()
	before := f.armed
	f.armed = false
	f.mu.Unlock()
	do()
	f.mu.Lock()
	f.armed = before
	f.mu.Unlock()
}

// Around is called with the name of a verb and a function that carries it out. It may call do any
// number of times.
type Around func(verb string, do func() error) error

// Surround calls around for each verb, and disables Arm; nil ends this.
func (f *Failing) Surround(around Around) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.around = around
}

func (f *Failing) surrounding() Around {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.around
}

// call carries out a verb: it calls do, or fails in its place, or calls do and loses its reply.
func (f *Failing) call(_ context.Context, verb string, do func() error) error {
	if around := f.surrounding(); around != nil {
		return around(verb, do)
	}
	switch lost, hit := f.enter(verb); {
	case !hit:
		return do()
	case lost:
		_ = do()
	}
	return ErrInjected
}

func (f *Failing) enter(verb string) (lost, hit bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.armed {
		return false, false
	}
	f.verbs = append(f.verbs, verb)
	f.left--
	if f.left != -1 {
		return false, false
	}
	f.hit = verb
	return f.lost, true
}
