package token

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
)

// tokenCache caches validated tokens until they expire (RS-51). The key is the token itself,
// compared in full. A hash would not protect it, because the process holds the tokens of its
// requests anyway.
type tokenCache struct {
	entries *bounded.Map[string, cached]
}

type cached struct {
	principal *Principal // nil if known to be invalid
	until     time.Time
	signed    signer // zero unless the signature was checked here
}

func newTokenCache(size int, now func() time.Time) *tokenCache {
	return &tokenCache{bounded.New[string, cached](size, now)}
}

func (c *tokenCache) lookup(token string) (cached, bool) { return c.entries.Get(token) }

func (c *tokenCache) lookupAt(token string, now time.Time) (cached, bool) {
	return c.entries.GetAt(token, now)
}

func (c *tokenCache) put(token string, e cached) { c.entries.Put(token, e, e.until) }
