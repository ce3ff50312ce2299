package config

// API says whether what an operator can do is served over HTTP.
type API struct {
	Enabled bool `yaml:"enabled"`
}
