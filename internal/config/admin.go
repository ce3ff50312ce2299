package config

// API says whether what an operator can do is served over HTTP.
type API struct {
	Enabled bool `yaml:"enabled"`
}

// Console configures what people with a role do in a browser and over the API.
type Console struct {
	// Fresh is how long ago a person may have proved who they are, at what cannot be undone.
	Fresh Duration `yaml:"fresh"`
}
