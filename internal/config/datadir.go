package config

import "path/filepath"

// defaultDataDir returns the data directory of the service, or else of the user who starts the
// server.
func defaultDataDir(getenv func(string) string) string {
	if d := getenv("STATE_DIRECTORY"); d != "" {
		return d
	}
	if d := getenv("XDG_DATA_HOME"); d != "" {
		return filepath.Join(d, "mcp-authd")
	}
	return filepath.Join(getenv("HOME"), ".local", "share", "mcp-authd")
}
