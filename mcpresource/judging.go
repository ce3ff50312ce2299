package mcpresource

import (
	"context"
	"sync"
	"time"
)

// judgings are the tokens of the requests under way, which are judged again and again. All of them
// share one timer: most requests are over before it fires, and a timer of each would cost more
// than to put it into a line and take it out. The zero value is ready.
type judgings struct {
	mu          sync.Mutex // guards what follows, and what they point to
	first, last *judging   // by when they are due
	armed       bool       // a timer is set
}

// judging is the token of a request under way, and the context of that request, which ends with it.
type judging struct {
	context.Context // that end ends
	principal       *Principal
	end             context.CancelCauseFunc
	expires         time.Time     // the token
	overtime        time.Duration // for which the request may go on after that
	cause           error         // of the end then

	expiry     *time.Timer // ends the request then; nil while it may be over long before
	due        time.Time
	prev, next *judging
	waits      bool // is in the line
	over       bool // the request is
}

// add has a token judged every five seconds until it is removed or no longer good, or expires after left. The request
// ends with it or after its overtime, during which the token is judged where the validator can. An outage ends no
// request: the next request reports it.
func (s *judgings) add(j *judging, left time.Duration) *judging {
	j.expires = time.Now().Add(left)
	s.enqueue(j)
	return j
}

// last is when the request ends.
func (j *judging) last() time.Time { return j.expires.Add(j.overtime) }

// Deadline implements [context.Context].
func (j *judging) Deadline() (time.Time, bool) {
	if d, ok := j.Context.Deadline(); ok && d.Before(j.last()) {
		return d, true
	}
	return j.last(), true
}

// Err implements [context.Context].
func (j *judging) Err() error {
	err := j.Context.Err()
	if err != nil && context.Cause(j.Context) == j.cause {
		return context.DeadlineExceeded
	}
	return err
}

// endInTime ends the request in time. Most requests are over before they are judged, and
// have no timer for it. The lock of the line is held.
func (j *judging) endInTime(now time.Time) {
	if j.expiry == nil {
		j.expiry = time.AfterFunc(j.last().Sub(now), func() { j.end(j.cause) })
	}
}

// judged is until when the token is worth judging.
func (j *judging) judged() time.Time {
	if j.principal.revoked == nil {
		return j.expires
	}
	return j.last()
}

// enqueue puts a token at the end of the line, unless its request is over, or the token is not judged any more when its
// turn comes.
func (s *judgings) enqueue(j *judging) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.over {
		return
	}
	now := time.Now()
	if j.due = now.Add(judgeAgain); !j.judged().After(j.due) {
		j.endInTime(now)
		return
	}
	j.waits, j.prev = true, s.last
	if s.last == nil {
		s.first = j
	} else {
		s.last.next = j
	}
	s.last = j
	if !s.armed {
		s.armed = true
		time.AfterFunc(judgeAgain, s.judge)
	}
}

// remove ends the judging of a token whose request is over.
func (s *judgings) remove(j *judging) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.over = true
	if j.expiry != nil {
		j.expiry.Stop()
	}
	s.dequeue(j)
}

// dequeue takes a token out of the line. mu is held.
func (s *judgings) dequeue(j *judging) {
	if !j.waits {
		return
	}
	if j.prev == nil {
		s.first = j.next
	} else {
		j.prev.next = j.next
	}
	if j.next == nil {
		s.last = j.prev
	} else {
		j.next.prev = j.prev
	}
	j.prev, j.next, j.waits = nil, nil, false
}

// judge judges the tokens that are due, each by itself, since a validator may have to ask for one.
func (s *judgings) judge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for s.first != nil && !s.first.due.After(now) {
		j := s.first
		s.dequeue(j)
		j.endInTime(now) // however long it takes to ask
		go s.judgeOne(j)
	}
	if s.armed = s.first != nil; s.armed {
		time.AfterFunc(s.first.due.Sub(now), s.judge)
	}
}

func (s *judgings) judgeOne(j *judging) {
	if err := j.verdict(); err != nil && !outage(err) {
		j.end(err)
		return
	}
	if j.Err() == nil {
		s.enqueue(j)
	}
}

// verdict returns why the request has to end, or nil. Just before its end a token may have expired by another clock:
// from then on, a request that may outlive it ends by a revocation alone.
func (j *judging) verdict() error {
	outlives := func() bool { return j.overtime > 0 && time.Until(j.expires) < judgeAgain }
	if !outlives() {
		if err := j.principal.still(j); err == nil || !outlives() {
			return err
		}
	}
	if j.principal.revoked == nil {
		return nil
	}
	return j.principal.revoked(j)
}
