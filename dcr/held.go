package dcr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Holds returns the applications that the administrator has paused or blocked, by application key.
type Holds interface {
	Holds(ctx context.Context) (map[string]storage.Hold, error)
}

// holdsTTL is the maximum age of the cached holds. It can double during a read, so a hold takes
// effect at all replicas within a second (OP-04).
const holdsTTL = 500 * time.Millisecond

// ErrHeld is wrapped by the error for a client whose application the administrator has paused or
// blocked. The client is returned together with the error.
var ErrHeld = errors.New("dcr: the operator holds the application")

var (
	errBlocked = oauth.NewError(oauth.UnauthorizedClient, "The operator of this server has blocked this application.").
			Because(attempt.CauseHeld.Because(ErrHeld))
	errHeldBack = heldBack()
)

// heldBack returns the error for a paused application. It is temporary, and the application keeps
// its tokens.
func heldBack() *oauth.Error {
	e := oauth.NewError(oauth.TemporarilyUnavailable,
		"The operator of this server has paused this application. Please try again later.").
		Because(attempt.CauseHeld.Because(errors.Join(ErrHeld, storage.ErrPaused)))
	e.RetryAfter = time.Minute
	return e
}

// newHolds returns a cache of the holds in source. A nil source means no holds.
func newHolds(source Holds, now func() time.Time) *recent.Value[map[string]storage.Hold] {
	read := func(context.Context) (map[string]storage.Hold, error) { return nil, nil }
	if source != nil {
		read = source.Holds
	}
	return &recent.Value[map[string]storage.Hold]{Read: read, Now: now, TTL: holdsTTL, Strict: true}
}

// checkHold returns an error for a client whose application is held.
func (r *Registry) checkHold(ctx context.Context, c storage.Client) error {
	all, err := r.holds.Load(ctx)
	if err != nil {
		return fmt.Errorf("look for held applications: %w", err)
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

// Sealed returns the client that this server has sealed in an id, also one that was never approved or was deleted.
func (r *Registry) Sealed(id string) (storage.Client, bool) {
	if len(id) > maxIDLength || !strings.HasPrefix(id, idPrefix) {
		return storage.Client{}, false
	}
	c, err := r.sealer.open(id)
	return c, err == nil
}

// ForgetHolds makes the next check read the holds again.
func (r *Registry) ForgetHolds() {
	r.holds.Forget()
}
