package ways

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// earlierFor is how long the earlier hosts that have passkeys are remembered. They get no new ones.
const earlierFor = time.Minute

// earlier remembers which earlier hosts have passkeys, since counting them for each sign-in page would cost too much.
type earlier struct {
	mu   sync.Mutex
	at   time.Time // when hosts was read; zero: never
	here map[string]bool
}

// SignInAt returns the relying parties that a page offers to a person it does not know: that of new passkeys,
// and the earlier ones of which somebody has a passkey. If that cannot be read, it returns all.
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
