package verdict

import "github.com/mcp-authd/mcp-authd/internal/storage"

// MayEnd returns nil for a session that e may end, and ErrProved for one that it spares.
func MayEnd(e storage.SessionEnding, s storage.Session) error {
	if !e.ProvedBefore.IsZero() && !s.Proved().Before(e.ProvedBefore) {
		return storage.ErrProved
	}
	return nil
}
