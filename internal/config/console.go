package config

import (
	"slices"
	"time"
)

// Console says where people with a role administer the server in a browser.
type Console struct {
	Enabled bool `yaml:"enabled"`
	// Listen is the listener that serves it: ConsolePublic or ConsoleManagement.
	Listen string `yaml:"listen"`
	// Fresh is how long ago a person may have proved who they are, at what cannot be undone, here and
	// over the API.
	Fresh Duration `yaml:"fresh"`
	// TwoAdministrators are the names of operations that a second administrator has to accept, at every face
	// but the command line on the database.
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
