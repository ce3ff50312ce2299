package postgres_test

import (
	"context"
	"database/sql"
	"log"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/postgres"
)

// Replicas of an MCP server count calls together, reject proofs that another replica has seen, and
// share the owners of sessions.
func Example() {
	ctx := context.Background()
	const resource = "https://mcp.example.com/mcp"
	validator, err := mcpresource.Discover(ctx, "https://auth.example.com", nil)
	if err != nil {
		log.Fatal(err)
	}
	db, err := sql.Open("pgx", "postgres://files@db.internal/files") // import _ "github.com/jackc/pgx/v5/stdlib"
	if err != nil {
		log.Fatal(err)
	}
	shared, err := postgres.New(ctx, db, resource)
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := mcpresource.NewLimiter(mcpresource.Limits{
		Tools: map[string]mcpresource.Rate{"send_*": {PerSecond: 0.1, Burst: 5}},
	}, shared, slog.Default())
	if err != nil {
		log.Fatal(err)
	}
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: resource, AuthorizationServers: []string{"https://auth.example.com"}, Validator: validator,
		Limiter:  limiter,
		DPoP:     &mcpresource.DPoP{Replays: shared},
		Sessions: shared.Sessions(),
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = guard
}
