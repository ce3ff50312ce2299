package authserver

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
)

// Limits of the difference between the clocks of a server and of its store.
const (
	// TellSkew exceeds the difference of machines with NTP, and is too short to affect any
	// decision.
	TellSkew = 5 * time.Second
	// MaxSkew is the largest difference that token verifiers allow: "usually no more than a few
	// minutes" (RFC 7519 §4.1.4). If two clocks differ by more, one of them creates tokens that
	// every server refuses, and only the operator knows which.
	MaxSkew = 5 * time.Minute
)

// storeTime returns the clock of the store, so that replicas with different clocks decide alike.
func storeTime(c Config) func() time.Time {
	own := c.Now
	return func() time.Time { return c.Store.Correct(own()) }
}

// compareClocks logs a warning once about a clock that differs from the store's, until it is right
// again. It returns an error if the difference exceeds MaxSkew.
func (s *Server) compareClocks(ctx context.Context) error {
	skew := s.cfg.Store.Skew()
	if skew.Abs() < TellSkew {
		s.skewed.Store(false)
		return nil
	}
	if skew.Abs() > MaxSkew {
		return fmt.Errorf(
			"the clock of this machine and that of the database differ by %s (the database's is %s): set the wrong one right",
			skew.Abs().Round(time.Second), aheadOrBehind(skew))
	}
	if !s.skewed.Swap(true) {
		s.log.WarnContext(ctx,
			"the clock of this machine and that of the database differ: the database's counts; have both kept by NTP",
			audit.Milliseconds("database_ahead", skew.Round(time.Millisecond)))
	}
	return nil
}

func aheadOrBehind(skew time.Duration) string {
	if skew > 0 {
		return "ahead"
	}
	return "behind"
}
