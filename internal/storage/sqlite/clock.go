package sqlite

import "time"

// Correct implements storage.Clock: the file is on this machine and uses its clock.
func (s *Store) Correct(t time.Time) time.Time { return t }

// Skew implements storage.Clock.
func (s *Store) Skew() time.Duration { return 0 }
