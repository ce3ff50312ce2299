package config

// Attempts says whether the requests and responses of sign-ins and token requests are recorded.
type Attempts struct {
	Enabled bool     `yaml:"enabled"`
	Keep    Duration `yaml:"keep"`
}
