package installation

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// Servers returns the processes of the servers that have the SQLite file open.
func (in *Installation) Servers() ([]string, error) { return sqlite.Servers(in.Config.SQLitePath()) }

// Intact reads a whole SQLite file, because servers notice damage only in the parts that they read. It
// returns nil for PostgreSQL.
func (in *Installation) Intact(ctx context.Context) error {
	if in.Config.Postgres() {
		return nil
	}
	return sqlite.Check(ctx, in.Config.SQLitePath())
}

// NetworkFileSystem returns the kind of the network file system that the SQLite file is on, or "".
func (in *Installation) NetworkFileSystem() string {
	return sqlite.NetworkFileSystem(in.Config.SQLitePath())
}
