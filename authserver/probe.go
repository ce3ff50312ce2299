package authserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// probe finds out whether the store can be written: on a full disk, or at a standby of
// PostgreSQL, everything can be read and nobody can sign in.
type probe struct {
	store storage.Housekeeping
	now   func() time.Time

	mu     sync.Mutex // guards what follows; held while the store is asked, so that it is asked once
	asked  time.Time
	answer error
}

const (
	probeEvery   = time.Second // anybody may ask /readyz, and each probe is a write
	probeTimeout = 5 * time.Second
	probeSize    = 16 << 10 // as much as a sign-in writes: the rest of a page proves nothing
)

// writable writes something small, or repeats the answer of a moment ago.
func (p *probe) writable(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked.IsZero() && p.now().Sub(p.asked) < probeEvery {
		return p.answer
	}
	// The answer is for others too, so a caller that leaves does not decide it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	value := make([]byte, probeSize)
	rand.Read(value) // never fails; SQLite writes no page that stays as it is
	_, p.answer = p.store.Remember(ctx, "probe", value)
	if p.answer != nil {
		p.answer = fmt.Errorf("the store cannot be written: %w", p.answer)
	}
	p.asked = p.now()
	return p.answer
}

// compareIssuer warns once when the issuer is another one than at the last start: clients
// compare it byte for byte, and tokens and registrations name it.
func (s *Server) compareIssuer(ctx context.Context) error {
	before, err := s.cfg.Store.Remember(ctx, "issuer", []byte(s.cfg.Issuer))
	if err != nil {
		return err
	}
	if len(before) > 0 && string(before) != s.cfg.Issuer {
		s.log.WarnContext(ctx, "the issuer has changed: clients that know the earlier one register and sign in again, and resource servers must be told",
			slog.String("issuer", s.cfg.Issuer), slog.String("before", string(before)))
	}
	return nil
}
