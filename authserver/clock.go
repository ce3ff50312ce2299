package authserver

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
)

// How far the clocks of a server and of its store may differ.
const (
	// TellSkew is more than machines with NTP differ by, and less than anything decides on.
	TellSkew = 5 * time.Second
	// MaxSkew is the largest difference that checkers of tokens allow for: "usually no more than a
	// few minutes" (RFC 7519 §4.1.4). If two clocks differ by more, one of them makes tokens that
	// every server refuses, and only the operator knows which.
	MaxSkew = 5 * time.Minute
)

// storeTime is the clock of the store: replicas whose own clocks differ judge alike.
func storeTime(c Config) func() time.Time {
	own := c.Now
	return func() time.Time { return c.Store.Correct(own()) }
}

// compareClocks warns of a clock that differs from the store's, once until it is right again, and
// fails when it differs by more than MaxSkew.
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
