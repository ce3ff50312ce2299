package admin

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/storage"
)

// FreshFor is for how long a proof of who somebody is counts as fresh, where nothing else is configured.
const FreshFor = 10 * time.Minute

// Service carries operations out on an installation.
type Service struct {
	Store storage.Store
	Users *users.Users
	Audit *audit.Recorder
	// FreshFor is for how long a proof counts before what cannot be undone.
	FreshFor time.Duration
	// Cut marks the grants of what was cut as a whole. A server does that by itself: nil.
	Cut func(context.Context) error
	Now func() time.Time
}

// followed ends an operation that may have cut more grants than are marked at once.
func (s *Service) followed(ctx context.Context) error {
	if s.Cut == nil {
		return nil
	}
	return s.Cut(ctx)
}
