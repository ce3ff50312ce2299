package config

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/stopping"
)

// Limits configures the limits on requests.
type Limits struct {
	// CountedIn is where requests are counted: in memory, by each replica alone, or in the database,
	// by all replicas together.
	CountedIn string `yaml:"counted_in"`
	// Overtime is how long a call may go on after the token that let it in has expired.
	Overtime Duration `yaml:"overtime"`
	// Finish is how long open requests may go on when the server was told to stop.
	Finish Duration `yaml:"finish"`
	// Drain is how long the server accepts requests after that, while its readiness is red.
	Drain Duration `yaml:"drain"`
}

func defaultLimits() Limits {
	return Limits{CountedIn: "memory", Overtime: Duration(10 * time.Minute), Finish: Duration(stopping.Finish)}
}

// CallOvertime is Overtime as a guard takes it: negative for none.
func (l Limits) CallOvertime() time.Duration { return optional(l.Overtime) }

// Shared reports whether all replicas count together.
func (l Limits) Shared() bool { return l.CountedIn == "database" }

func (l Limits) validate(oneOf func(key, value string, allowed ...string)) {
	oneOf("limits.counted_in", l.CountedIn, "memory", "database")
}
