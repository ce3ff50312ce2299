package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// maxRemembered bounds the tokens that are remembered.
const maxRemembered = 10_000

// Remember returns a validator that asks v about a bearer token once in d, when it was
// good: an MCP client makes many requests in a row, and each would be a query to the
// store. A revocation is seen d later at most. Whatever else is presented is judged each
// time, since more than the token may count there.
func Remember(v mcpresource.Validator, d time.Duration) mcpresource.Validator {
	return &memory{next: v, d: d, now: time.Now, good: map[[sha256.Size]byte]remembered{}}
}

type memory struct {
	next mcpresource.Validator
	d    time.Duration
	now  func() time.Time

	mu   sync.Mutex // guards good
	good map[[sha256.Size]byte]remembered
}

type remembered struct {
	principal *mcpresource.Principal
	until     time.Time
}

// ResourceScopes implements mcpresource.Catalogue, if the validator does.
func (m *memory) ResourceScopes(ctx context.Context, resource string) ([]string, bool, error) {
	if c, ok := m.next.(mcpresource.Catalogue); ok {
		return c.ResourceScopes(ctx, resource)
	}
	return nil, false, errors.ErrUnsupported
}

// Validate implements mcpresource.Validator.
func (m *memory) Validate(ctx context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
	if !strings.EqualFold(c.Scheme, "Bearer") {
		return m.next.Validate(ctx, c)
	}
	key, now := sha256.Sum256([]byte(c.Token)), m.now()
	m.mu.Lock()
	old, ok := m.good[key]
	m.mu.Unlock()
	if ok && now.Before(old.until) {
		return old.principal, nil
	}
	p, err := m.next.Validate(ctx, c)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		delete(m.good, key)
		return nil, err
	}
	if len(m.good) >= maxRemembered {
		clear(m.good)
	}
	m.good[key] = remembered{p, now.Add(m.d)}
	return p, nil
}
