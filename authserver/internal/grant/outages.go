package grant

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// Outages records when the store took no writes, as far as this server has seen. While the store hangs, a client whose
// rotation was committed but not answered cannot retry. So the grace does not run during an outage (OP-03), and the
// retry is not taken for reuse. The grace still ends after the outage, so later reuse is detected.
//
// The zero value is ready to use.
type Outages struct {
	mu        sync.Mutex
	good      time.Time // of the last write
	away      bool      // and not back yet
	since     time.Time // of what is away
	suspected time.Time // when a request began whose caller did not wait for its end; zero: there was none
	past      []outage  // in order
}

type outage struct{ from, to time.Time }

const (
	// maxExtension is how much longer a grace may get.
	maxExtension = 24 * time.Hour
	// keptOutages is how many outages are remembered. More of them within one grace shorten it at most.
	keptOutages = 32
)

// Observe takes the outcome of a write to the store that began at a time and ended now. An error by which a store
// that works refuses says nothing: it may have come from a read.
func (o *Outages) Observe(began, now time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil:
		o.works(now)
	case errors.Is(err, context.Canceled):
		if o.suspected.IsZero() {
			o.suspected = began // the next write decides
		}
	case storage.Failed(err):
		o.fails(began)
	}
}

func (o *Outages) works(now time.Time) {
	if o.away {
		o.past = append(o.past, outage{o.since, now})
		o.past = slices.Delete(o.past, 0, max(0, len(o.past)-keptOutages))
	}
	o.good, o.away, o.suspected = now, false, time.Time{}
}

func (o *Outages) fails(began time.Time) {
	if o.away {
		return
	}
	if !o.suspected.IsZero() && o.suspected.Before(began) {
		began = o.suspected
	}
	if began.Before(o.good) { // others were answered meanwhile
		began = o.good
	}
	o.away, o.since = true, began
}

// Suspected reports whether the store may be away, so that a write is needed to tell.
func (o *Outages) Suspected() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.away || !o.suspected.IsZero()
}

// Extension returns how much longer a grace that ends now is for the outages in it. Without a grace there is none in
// an outage either.
func (o *Outages) Extension(grace time.Duration, now time.Time) time.Duration {
	if grace <= 0 {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	end, left := now, grace // before end, left of the grace has to be found
	if o.away {
		end = o.since
	}
	for _, past := range slices.Backward(o.past) {
		ran := end.Sub(past.to)
		if ran >= left {
			break
		}
		left -= max(ran, 0)
		end = past.from
	}
	return min(max(now.Sub(end)+left-grace, 0), maxExtension) // a clock may have gone back
}
