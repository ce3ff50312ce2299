package authserver

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// passwordsTTL bounds how long the first account with a password stays unseen.
const passwordsTTL = 2 * time.Second

// passwords knows whether any account has a password. If none has and people can sign in at a
// provider, pages leave the password form out; they show it when the store cannot tell.
type passwords struct {
	store storage.Users
	now   func() time.Time
	off   bool // accounts with a password do not sign in
	only  bool // there is no other way to sign in

	mu      sync.Mutex // guards what follows; held while it is read
	some    bool
	askedAt time.Time
}

func newPasswords(c Config) *passwords {
	return &passwords{
		store: c.Store, now: c.Now, off: c.NoLocalLogin,
		only: c.Delegation == nil || len(c.Delegation.Providers()) == 0,
	}
}

// offered reports whether pages have a form for a password. The answer to the form does not
// depend on it.
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
