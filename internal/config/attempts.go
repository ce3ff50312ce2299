package config

// Attempts says whether what was asked and answered on the way to a token is kept for the operator.
type Attempts struct {
	Enabled bool     `yaml:"enabled"`
	Keep    Duration `yaml:"keep"`
}
