package provider

import (
	"errors"
	"sync"
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
	mu   sync.Mutex // guards last
	last Reads
}

// What of a provider was read.
const (
	readMetadata = "metadata"
	readKeys     = "keys"
)

// note keeps how a read has ended. The text of an error quotes the provider, and is in the log alone.
func (r *reads) note(what string, at time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
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
