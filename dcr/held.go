package dcr

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/attempt"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Holds returns the applications that the operator has paused or blocked, by key.
type Holds interface {
	Holds(ctx context.Context) (map[string]storage.Hold, error)
}

// holdsTTL is how long one read of the holds is used: at all replicas a hold is effective within a second (OP-04).
const holdsTTL = 500 * time.Millisecond

// ErrHeld is in the error for a client whose application the operator has paused or blocked. The client comes
// with the error.
var ErrHeld = errors.New("dcr: the operator holds the application")

var (
	errBlocked = oauth.NewError(oauth.UnauthorizedClient, "The operator of this server has blocked this application.").
			Because(attempt.CauseHeld.Because(ErrHeld))
	errHeldBack = heldBack()
)

// heldBack is the answer to a paused application. Nothing has failed, and it keeps its tokens.
func heldBack() *oauth.Error {
	e := oauth.NewError(oauth.TemporarilyUnavailable,
		"The operator of this server has paused this application. Please try again later.").
		Because(attempt.CauseHeld.Because(errors.Join(ErrHeld, storage.ErrPaused)))
	e.RetryAfter = time.Minute
	return e
}

// heldApplications keeps one read of the holds for a moment.
type heldApplications struct {
	source Holds // nil: nothing is held
	now    func() time.Time

	mu    sync.Mutex
	all   map[string]storage.Hold
	until time.Time
}

// refuses returns an error for a client whose application is held.
func (h *heldApplications) refuses(ctx context.Context, c storage.Client) error {
	if h.source == nil {
		return nil
	}
	h.mu.Lock()
	all, until := h.all, h.until
	h.mu.Unlock()
	if now := h.now(); !now.Before(until) {
		var err error
		if all, err = h.source.Holds(ctx); err != nil {
			return fmt.Errorf("look for held applications: %w", err)
		}
		h.mu.Lock()
		h.all, h.until = all, now.Add(holdsTTL)
		h.mu.Unlock()
	}
	hold, held := all[c.Application()]
	switch {
	case !held:
		return nil
	case hold.Blocked:
		return errBlocked
	}
	return errHeldBack
}

// ForgetHolds has the next client be looked up among the holds that are stored then.
func (r *Registry) ForgetHolds() {
	r.holds.mu.Lock()
	r.holds.until = time.Time{}
	r.holds.mu.Unlock()
}
