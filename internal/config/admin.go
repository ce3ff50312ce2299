package config

// API says whether administration is served over HTTP.
type API struct {
	Enabled bool `yaml:"enabled"`
	// MCP also serves it as an MCP server, if Enabled is set.
	MCP bool `yaml:"mcp"`
}
