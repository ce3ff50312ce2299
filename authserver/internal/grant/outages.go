package grant

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Outages records when the store accepted no writes, as observed by this server. While the store
// hangs, a client whose rotation was committed without a reply cannot retry. So the grace period
// does not run during an outage (OP-03), and the retry does not count as reuse. The grace period
// still ends after the outage, so later reuse is detected. The zero value is ready to use.
type Outages struct {
	mu        sync.Mutex
	good      time.Time // last successful write
	away      bool      // an outage is in progress
	since     time.Time // start of the current outage
	suspected time.Time // start of a request whose caller did not wait for the end; zero: none
	past      []outage  // in order
}

type outage struct{ from, to time.Time }

const (
	// maxExtension is the maximum extension of a grace period.
	maxExtension = 24 * time.Hour
	// keptOutages is the number of remembered outages. More outages within one grace period only
	// shorten it.
	keptOutages = 32
)

// Observe records the outcome of a write to the store from began to now. An error from a store that
// works says nothing: it may come from a read.
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

// Suspected reports whether the store may be unavailable, so that only a write can tell.
func (o *Outages) Suspected() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.away || !o.suspected.IsZero()
}

// Extension returns the extension of a grace period that ends now, for the outages during it. It is
// zero if there is no grace period.
func (o *Outages) Extension(grace time.Duration, now time.Time) time.Duration {
	if grace <= 0 {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	end, left := now, grace // before end, left of the grace period is still to be found
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
	return min(max(now.Sub(end)+left-grace, 0), maxExtension) // the clock may have been set back
}
