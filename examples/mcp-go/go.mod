// The example is a module of its own, so that nobody who needs mcp-authd gets a second MCP
// SDK with it. The replace below is for this repository: yours has none, and requires a
// released version.
module github.com/mcp-authd/mcp-authd/examples/mcp-go

go 1.26.0

require (
	github.com/mark3labs/mcp-go v1.2.1
	github.com/mcp-authd/mcp-authd v0.0.0
)

require (
	github.com/go-jose/go-jose/v4 v4.1.8 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2 // indirect
	github.com/spf13/cast v1.7.1 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/mcp-authd/mcp-authd => ../..
