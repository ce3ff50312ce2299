package dcr

import (
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	clientTTL  = 5 * time.Second // how long a deletion elsewhere may go unnoticed
	maxClients = 10_000
)

// cache keeps resolved clients for clientTTL, so that the requests of one sign-in
// cost one look at the store. Only clients that exist are kept: an unknown id may
// be created at any moment, and a flood of them must not push out real ones.
type cache struct {
	now     func() time.Time
	entries *bounded[entry]
}

type entry struct {
	client  storage.Client
	expires time.Time
}

func newCache(now func() time.Time) *cache {
	return &cache{now: now, entries: newBounded[entry](maxClients)}
}

func (c *cache) get(id string) (storage.Client, bool) {
	e, ok := c.entries.get(id)
	if !ok || !c.now().Before(e.expires) {
		return storage.Client{}, false
	}
	return e.client, true
}

func (c *cache) put(id string, client storage.Client) {
	c.entries.put(id, entry{client: client, expires: c.now().Add(clientTTL)})
}

func (c *cache) drop(id string) { c.entries.drop(id) }
