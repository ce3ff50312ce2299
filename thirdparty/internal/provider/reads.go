package provider

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Reads is when this process has last read what a provider publishes. Zero times: not yet.
type Reads struct {
	Metadata time.Time
	// Renew is when the metadata are read again, as soon as they are needed then. Keys are read again when a
	// token is signed by none of those that are known, and when the metadata were.
	Renew  time.Time
	Keys   time.Time
	Failed time.Time // the last time that one of them could not be read
	Why    string    // which, and how, in words of ours
}

// reads keeps Reads.
type reads struct {
	mu   sync.Mutex // guards what follows
	last Reads
	away map[string]*outage // of what cannot be reached since it was read last
}

// outage is the time in which one of them cannot be reached.
type outage struct{ told atomic.Bool }

// Unread is an ErrUnreachable of what a provider publishes. The answer to a request may fail for that request; this
// one says that the provider is away, for no caller chooses what is asked.
type Unread struct {
	of    *outage
	cause error
}

// Error implements error.
func (u *Unread) Error() string { return u.cause.Error() }

// Unwrap returns the cause.
func (u *Unread) Unwrap() error { return u.cause }

// Tell reports whether this is to be told: once in an outage, by the one who asks first.
func (u *Unread) Tell() bool { return u.of.told.CompareAndSwap(false, true) }

// What of a provider was read.
const (
	readMetadata = "metadata"
	readKeys     = "keys"
)

// note keeps how a read has ended, and returns err, as an Unread if it is that. The text of an error quotes the
// provider, and is in the log alone.
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

// Reads of plain OAuth 2.0: all is configured.
func (u *plainOAuth) Reads() Reads { return Reads{} }

// Reads says when its metadata and keys were read.
func (p *openID) Reads() Reads { return p.directory.reads.get() }
