package authserver

import (
	"context"
	"log/slog"
	"strings"
)

// attending is a store for one server at a time (internal/storage/sqlite) that reports other servers that
// use it.
type attending interface {
	Attend() (processes []string, err error)
}

// attend registers this server with the store, and warns the operator about other servers.
func (s *Server) attend(ctx context.Context) {
	store, ok := s.cfg.Store.(attending)
	if !ok {
		return
	}
	others, err := store.Attend()
	if err != nil {
		s.log.WarnContext(ctx, "could not find out whether another server uses this database", slog.Any("error", err))
	}
	if len(others) > 0 {
		s.log.WarnContext(ctx,
			"another server uses this database, and SQLite is for one replica: stop one of them, or use PostgreSQL",
			slog.String("process", strings.Join(others, ", ")))
	}
}
