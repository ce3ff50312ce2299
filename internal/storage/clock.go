package storage

import "time"

// Clock is the shared clock of all replicas of a store.
type Clock interface {
	// Correct returns the shared time for t, a time of this process's own clock.
	Correct(t time.Time) time.Time
	// Skew returns how far the shared clock is ahead of this process's own.
	Skew() time.Duration
}
