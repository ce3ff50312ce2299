package mcpresource

import (
	"sync"
	"time"
)

// tokenCache remembers validated tokens until they expire. The key is the token
// itself, compared in full: a hash would cost more than it hides, since the process
// holds the tokens of its requests anyway. It is bounded; when full, an arbitrary
// entry goes, which costs one more verification.
type tokenCache struct {
	size int
	now  func() time.Time

	mu      sync.RWMutex // guards entries
	entries map[string]cached
}

type cached struct {
	principal *Principal // nil: known to be invalid
	until     time.Time
	signed    signer // zero unless that was checked here
}

func newTokenCache(size int, now func() time.Time) *tokenCache {
	return &tokenCache{size: size, now: now, entries: map[string]cached{}}
}

func (c *tokenCache) lookup(token string) (cached, bool) {
	c.mu.RLock()
	e, ok := c.entries[token]
	c.mu.RUnlock()
	return e, ok && c.now().Before(e.until)
}

func (c *tokenCache) put(token string, e cached) {
	if c.size <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= c.size {
		c.evict()
	}
	c.entries[token] = e
}

// evict makes room: of a few entries it drops the expired ones, or else one.
func (c *tokenCache) evict() {
	now, looked, dropped := c.now(), 0, 0
	for k, e := range c.entries {
		if looked++; looked > 16 {
			break
		}
		if !now.Before(e.until) {
			delete(c.entries, k)
			dropped++
		}
	}
	for k := range c.entries {
		if dropped > 0 {
			return
		}
		delete(c.entries, k)
		dropped++
	}
}
