package ways

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// earlierFor is how long the set of earlier hosts with passkeys is cached. They get no new
// passkeys.
const earlierFor = time.Minute

// earlier caches which earlier hosts have passkeys. Counting them for each sign-in page would cost
// too much.
type earlier struct {
	mu   sync.Mutex
	at   time.Time // time of the last read; zero: never
	here map[string]bool
}

// SignInAt returns the relying parties that a page offers to an unknown user: the one for new
// passkeys, and the earlier ones with passkeys. If the passkeys cannot be counted, it returns all.
func (w *Ways) SignInAt(ctx context.Context) []string {
	all := w.cfg.Site.RPIDs()
	if len(all) < 2 {
		return all
	}
	here, err := w.earlier.hosts(ctx, w.cfg.Now(), w.cfg.Store, w.Admission())
	if err != nil {
		return all
	}
	return append(all[:1:1], slices.DeleteFunc(all[1:], func(rpID string) bool { return !here[rpID] })...)
}

func (u *earlier) hosts(
	ctx context.Context, now time.Time, store storage.WayCustody, by storage.Admission,
) (map[string]bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if age := now.Sub(u.at); u.here != nil && age >= 0 && age < earlierFor {
		return u.here, nil
	}
	found, err := store.PasskeyHosts(ctx, by)
	if err != nil {
		return nil, err
	}
	u.at, u.here = now, map[string]bool{}
	for _, h := range found {
		u.here[h.RPID] = true
	}
	return u.here, nil
}
