package storagetest

//go:generate sh -c "go run ./genverbs >failing_verbs.go && go run ./genverbs timed >../timed/verbs.go"

import (
	"errors"
	"sync"

	"github.com/mcp-authd/mcp-authd/storage"
)

// ErrInjected is what a Failing store fails with: no sentinel of the contract, so it says
// that the database failed.
var ErrInjected = errors.New("storagetest: injected failure")

// Failing is a store whose n-th call fails, whichever verb it is. With it, a test holds
// that no failure is answered as a success and that nothing fails open.
//
// The verbs are in failing_verbs.go, which is written by go generate.
type Failing struct {
	storage.Store

	mu     sync.Mutex // guards what follows
	around Around
	armed  bool
	lost   bool // the call is carried out and its answer lost
	left   int  // calls that succeed before the one that fails
	verbs  []string
	hit    string
}

// Arm makes the call after the next n succeeded ones fail, before anything is changed.
// Calls after that one succeed.
func (f *Failing) Arm(n int) { f.arm(n, false) }

// ArmLost is Arm for a call that is carried out and whose answer is lost on the way.
func (f *Failing) ArmLost(n int) { f.arm(n, true) }

func (f *Failing) arm(n int, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.lost, f.left, f.hit, f.verbs = true, lost, n, "", nil
}

// Disarm ends the injection. It returns the verb that failed, "" when there were fewer
// calls than that, and all verbs that were called since Arm, in order.
func (f *Failing) Disarm() (failed string, called []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = false
	return f.hit, f.verbs
}

// Pause carries out do with a store that works, and goes on as before.
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

// Around is called with the name of a verb, and with what carries the verb out, as often as it is
// called.
type Around func(verb string, do func() error) error

// Surround has around called in place of all that Arm does; nil ends that.
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

// call is what each verb is: do, or a failure in its place, or do with its answer lost.
func (f *Failing) call(verb string, do func() error) error {
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
