package config

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/stopping"
)

// Limits configures the limits on requests.
type Limits struct {
	// CountedIn says where requests are counted: in memory by each replica alone, or in the
	// database by all replicas together.
	CountedIn string `yaml:"counted_in"`
	// Overtime is how long a call may continue after its token has expired.
	Overtime Duration `yaml:"overtime"`
	// Finish is how long open requests may continue during a shutdown.
	Finish Duration `yaml:"finish"`
	// Drain is how long the server then still accepts requests, while it reports that it is not
	// ready.
	Drain Duration `yaml:"drain"`
}

func defaultLimits() Limits {
	return Limits{CountedIn: "memory", Overtime: Duration(10 * time.Minute), Finish: Duration(stopping.Finish)}
}

// CallOvertime returns Overtime in the form that guards expect: negative for none.
func (l Limits) CallOvertime() time.Duration { return optional(l.Overtime) }

// Shared reports whether replicas count requests together.
func (l Limits) Shared() bool { return l.CountedIn == "database" }

func (l Limits) validate(oneOf func(key, value string, allowed ...string)) {
	oneOf("limits.counted_in", l.CountedIn, "memory", "database")
}
