package storage

import "time"

// Clock is the one clock by which all replicas of a store judge.
type Clock interface {
	// Correct returns what that clock says when this process's own one says t.
	Correct(t time.Time) time.Time
	// Skew is how far that clock is ahead of what this process's own one is set to.
	Skew() time.Duration
}
