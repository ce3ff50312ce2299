package dcr

import (
	"sync"
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
	now func() time.Time

	mu      sync.Mutex // guards entries
	entries map[string]entry
}

type entry struct {
	client  storage.Client
	expires time.Time
}

func newCache(now func() time.Time) *cache {
	return &cache{now: now, entries: map[string]entry{}}
}

func (c *cache) get(id string) (storage.Client, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[id]
	if !ok || !c.now().Before(e.expires) {
		return storage.Client{}, false
	}
	return e.client, true
}

func (c *cache) put(id string, client storage.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxClients {
		c.shrink()
	}
	c.entries[id] = entry{client: client, expires: c.now().Add(clientTTL)}
}

func (c *cache) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, id)
}

// shrink removes what has expired and, when that is too little, arbitrary entries,
// down to three quarters: each is one look at the store to have again.
func (c *cache) shrink() {
	now := c.now()
	for id, e := range c.entries {
		if !now.Before(e.expires) {
			delete(c.entries, id)
		}
	}
	for id := range c.entries {
		if len(c.entries) <= maxClients*3/4 {
			return
		}
		delete(c.entries, id)
	}
}
