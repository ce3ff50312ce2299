package ways

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// page is the number of apps per read of the store.
const page = 100

// Reseal encrypts the secrets of apps under the primary master key if an older key sealed them, and
// returns their number. It may be repeated and interrupted while servers that have both keys run.
func Reseal(ctx context.Context, store storage.WayCustody, ring *secrets.Ring) (n int, err error) {
	for after := ""; ; {
		apps, err := store.SealedWays(ctx, after, page)
		if err != nil {
			return n, fmt.Errorf("ways: reseal: %w", err)
		}
		for _, app := range apps {
			changed, err := reseal(ctx, store, ring, app)
			if err != nil {
				return n, err
			}
			if changed {
				n++
			}
			after = app.ID
		}
		if len(apps) < page {
			return n, nil
		}
	}
}

func reseal(ctx context.Context, store storage.WayCustody, ring *secrets.Ring, app storage.Way) (bool, error) {
	sealed, changed, err := ring.Reseal(appPurpose, app.Data, []byte(app.ID))
	if err != nil {
		return false, fmt.Errorf(
			"ways: the authenticator app %s of %s cannot be opened: add the master key that sealed it to the old ones",
			app.ID, app.UserID)
	}
	if !changed {
		return false, nil
	}
	switch err := store.ResealWay(ctx, app.ID, app.Data, sealed); {
	case errors.Is(err, storage.ErrSpent):
		return false, nil // deleted, or resealed by another process
	case err != nil:
		return false, fmt.Errorf("ways: reseal: %w", err)
	}
	return true, nil
}
