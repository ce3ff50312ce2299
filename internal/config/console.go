package config

import (
	"slices"
	"time"
)

// Console configures the web console for administrators.
type Console struct {
	Enabled bool `yaml:"enabled"`
	// Listen is the listener of the console: ConsolePublic or ConsoleManagement.
	Listen string `yaml:"listen"`
	// Fresh is how recent an authentication must be for changes that cannot be undone, here and
	// over the API.
	Fresh Duration `yaml:"fresh"`
	// TwoAdministrators lists the operations that a second administrator must accept, in every
	// front end except commands with direct database access.
	TwoAdministrators []string `yaml:"two_administrators"`
}

// The listeners of the console.
const (
	ConsolePublic     = "public"
	ConsoleManagement = "management"
)

func defaultConsole() Console {
	return Console{Enabled: true, Listen: ConsolePublic, Fresh: Duration(10 * time.Minute)}
}

func (c *Config) validateConsole(add func(string, string, ...any)) {
	if listeners := []string{ConsolePublic, ConsoleManagement}; !slices.Contains(listeners, c.Console.Listen) {
		add("console.listen", "%q is not one of public, management", c.Console.Listen)
	}
	if c.Console.Enabled && c.Console.Listen == ConsoleManagement && c.Management.Listen == "" {
		add("console.listen", "there is no management listener: set management.listen")
	}
}
