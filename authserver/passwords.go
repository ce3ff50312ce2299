package authserver

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// passwordsTTL is the maximum delay until the first account with a password is noticed.
const passwordsTTL = 2 * time.Second

// passwords reports whether any account has a password. If not, and users can sign in at a
// provider, pages omit the password form. They show it if the store fails.
type passwords struct {
	store storage.Users
	now   func() time.Time
	off   bool // password sign-in is disabled
	only  bool // the only way to sign in

	mu      sync.Mutex // guards the following fields; held during the read
	some    bool
	askedAt time.Time
}

func newPasswords(c Config) *passwords {
	return &passwords{
		store: c.Store, now: c.Now, off: c.NoLocalLogin,
		only: c.Delegation == nil || len(c.Delegation.Providers()) == 0,
	}
}

// offered reports whether pages have a password form. The form's target accepts passwords in either
// case.
func (p *passwords) offered(ctx context.Context) bool {
	if p.off {
		return false
	}
	if p.only {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.now(); p.askedAt.IsZero() || now.Sub(p.askedAt) >= passwordsTTL {
		ctx, cancel := context.WithTimeout(ctx, passwordsTTL)
		defer cancel()
		some, err := p.store.HasPasswords(ctx)
		p.some, p.askedAt = some || err != nil, now
	}
	return p.some
}
