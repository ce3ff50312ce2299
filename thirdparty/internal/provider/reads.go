package provider

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Reads records when this process last read a provider's published data. Zero times: not yet.
type Reads struct {
	Metadata time.Time
	// From Renew on, the next use reads the metadata again. Keys are read again when no known key
	// verifies a token, and after the metadata were read.
	Renew  time.Time
	Keys   time.Time
	Failed time.Time // time of the last failed read
	Why    string    // which read failed and how, in this server's words
}

// reads keeps Reads.
type reads struct {
	mu   sync.Mutex // guards the fields below
	last Reads
	away map[string]*outage // data that is unreachable since its last read
}

// outage is a period in which one kind of data is unreachable.
type outage struct{ told atomic.Bool }

// Unread is an ErrUnreachable for a provider's published data. A failure of another request may be
// caused by that request. An Unread means that the provider is down, because no caller controls
// this request.
type Unread struct {
	of    *outage
	cause error
}

// Error implements error.
func (u *Unread) Error() string { return u.cause.Error() }

// Unwrap returns the cause.
func (u *Unread) Unwrap() error { return u.cause }

// Tell reports whether to report the outage: true once per outage, for the first caller.
func (u *Unread) Tell() bool { return u.of.told.CompareAndSwap(false, true) }

// The kinds of published data.
const (
	readMetadata = "metadata"
	readKeys     = "keys"
)

// note records the result of a read and returns err, as an Unread if it applies. An error text may
// quote the provider and goes only to the log.
func (r *reads) note(what string, at time.Time, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.away, what)
	}
	switch {
	case errors.Is(err, ErrUnreachable):
		r.last.Failed, r.last.Why = at, "its "+what+" could not be reached"
	case err != nil:
		r.last.Failed, r.last.Why = at, "its "+what+" cannot be used"
	case what == readMetadata:
		r.last.Metadata, r.last.Renew = at, at.Add(metadataFresh)
	default:
		r.last.Keys = at
	}
	if often := (*TooOften)(nil); !errors.Is(err, ErrUnreachable) || errors.As(err, &often) {
		return err
	}
	if r.away == nil {
		r.away = map[string]*outage{}
	}
	if r.away[what] == nil {
		r.away[what] = &outage{}
	}
	return &Unread{r.away[what], err}
}

func (r *reads) get() Reads {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Reads returns no times: plain OAuth 2.0 is fully configured.
func (u *plainOAuth) Reads() Reads { return Reads{} }

// Reads returns when the metadata and keys were read.
func (p *openID) Reads() Reads { return p.directory.reads.get() }
