package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const maxRemembered = 10_000

// Remember returns a validator that caches valid bearer tokens for d. An MCP client sends many
// requests in a row, and each would be a query to the store. A revocation takes effect after at
// most d. Other credentials are validated each time, since their validity may depend on more than
// the token. It calls looked with whether the cache had the token.
func Remember(
	v mcpresource.Validator, d time.Duration, now func() time.Time, looked func(hit bool),
) mcpresource.Validator {
	return &memory{
		next: v, d: d, now: now, looked: looked,
		good: bounded.New[string, *mcpresource.Principal](maxRemembered, now),
	}
}

type memory struct {
	next mcpresource.Validator
	d    time.Duration
	now  func() time.Time
	// good maps tokens to principals. Whole tokens are compared, as in the guard's own validators.
	good *bounded.Map[string, *mcpresource.Principal]
	// looked is called with whether the cache had the token.
	looked func(hit bool)
}

// ResourceScopes implements mcpresource.Catalogue, if the validator does.
func (m *memory) ResourceScopes(ctx context.Context, resource string) ([]string, bool, error) {
	if c, ok := m.next.(mcpresource.Catalogue); ok {
		return c.ResourceScopes(ctx, resource)
	}
	return nil, false, errors.ErrUnsupported
}

// Refused implements mcpresource.Decisions, if the validator does.
func (m *memory) Refused(r *http.Request, d oauth.Decision) string {
	if to, ok := m.next.(mcpresource.Decisions); ok {
		return to.Refused(r, d)
	}
	return ""
}

// LetThrough implements mcpresource.Decisions, if the validator does.
func (m *memory) LetThrough(ctx context.Context, d oauth.Decision) {
	if to, ok := m.next.(mcpresource.Decisions); ok {
		to.LetThrough(ctx, d)
	}
}

// Validate implements mcpresource.Validator.
func (m *memory) Validate(ctx context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
	if !strings.EqualFold(c.Scheme, "Bearer") {
		return m.next.Validate(ctx, c)
	}
	p, ok := m.good.Get(c.Token)
	if m.looked(ok); ok {
		return p, nil
	}
	asked := m.now()
	p, err := m.next.Validate(ctx, c)
	if err != nil {
		m.good.Drop(c.Token)
		return nil, err
	}
	m.good.Put(c.Token, p, asked.Add(m.d))
	return p, nil
}
