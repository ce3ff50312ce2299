package config

// Limits configures the limits on requests.
type Limits struct {
	// CountedIn is where requests are counted: in memory, by each replica alone, or in the database,
	// by all replicas together.
	CountedIn string `yaml:"counted_in"`
}

// Shared reports whether all replicas count together.
func (l Limits) Shared() bool { return l.CountedIn == "database" }

func (l Limits) validate(oneOf func(key, value string, allowed ...string)) {
	oneOf("limits.counted_in", l.CountedIn, "memory", "database")
}
