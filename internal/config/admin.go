package config

// API says whether what an operator can do is served over HTTP.
type API struct {
	Enabled bool `yaml:"enabled"`
	// MCP says whether it is also served as an MCP server, where Enabled is set.
	MCP bool `yaml:"mcp"`
}
