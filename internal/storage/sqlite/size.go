package sqlite

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Size implements storage.Housekeeping. Pages that are free within the file do not count as used: SQLite uses
// them again before the file grows.
func (s *Store) Size(ctx context.Context) (out storage.Size, err error) {
	err = s.read(ctx, "Size", func(c *conn) error {
		return c.one([]any{&out.Used}, `SELECT (page_count - freelist_count) * page_size
			FROM pragma_page_count, pragma_freelist_count, pragma_page_size`)
	})
	out.Free = -1
	if s.path != Memory {
		out.Free = freeSpace(s.path)
	}
	return out, err
}
