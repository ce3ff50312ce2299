package installation

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// Rehearse assembles the server like serve, on a temporary database, so that both refuse the same
// configurations.
func (in *Installation) Rehearse(ctx context.Context) error {
	r := Quiet(in.Config, in.host)
	r.Audit = nil // its writer would keep a file in the data directory
	if err := r.loadKeys(r.keptKeyOrNone); err != nil {
		return err
	}
	if _, err := r.Parts().Certificate(ctx); err != nil {
		return err
	}
	store, err := sqlite.Open(ctx, sqlite.Memory, sqlite.Options{})
	if err != nil {
		return err
	}
	r.Store = store
	defer r.Close()
	server, err := r.Parts().Server(ctx)
	if err == nil {
		server.Close()
	}
	return err
}

// keptKeyOrNone reads the key in the data directory. If the first start would create it,
// keptKeyOrNone returns a dummy key.
func (in *Installation) keptKeyOrNone() ([]byte, error) {
	if !in.HasKey() && !in.HasDatabase() {
		return make([]byte, secrets.KeySize), nil
	}
	return in.keptKey()
}
