package authserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// probe checks whether the server can work, which requires a write: on a full disk, or on a
// PostgreSQL standby, reads work but sign-ins fail.
type probe struct {
	ready func(context.Context) error
	now   func() time.Time

	mu     sync.Mutex    // guards the following fields
	asking chan struct{} // closed when the running check ends; nil while idle
	asked  time.Time
	answer error
}

const (
	probeEvery   = time.Second // anyone may request /readyz, and each check is a write
	probeWait    = time.Second // load balancers do not wait longer either
	probeTimeout = 5 * time.Second
)

var errNoAnswer = errors.New("the store has not answered within a second")

// ask returns a recent result, or checks the store. A check that hangs runs once for all callers,
// and none of them waits long.
func (p *probe) ask(ctx context.Context) error {
	p.mu.Lock()
	if p.asking == nil && !p.asked.IsZero() && p.now().Sub(p.asked) < probeEvery {
		defer p.mu.Unlock()
		return p.answer
	}
	if p.asking == nil {
		p.asking = make(chan struct{})
		// Other callers use the result, so a caller that leaves must not cancel the check.
		go p.put(context.WithoutCancel(ctx))
	}
	answered := p.asking
	p.mu.Unlock()
	select {
	case <-answered:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.answer
	case <-time.After(probeWait):
		return errNoAnswer
	}
}

func (p *probe) put(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := p.ready(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer, p.asked = err, p.now()
	close(p.asking)
	p.asking = nil
}

// Ready returns nil if the server can work: the store is reachable and writable, its schema is this
// version's, its clock is close to this server's, and a signing key is loaded. It returns within a
// second; the result may be one second old.
func (s *Server) Ready(ctx context.Context) error { return s.probe.ask(ctx) }

func (s *Server) ready(ctx context.Context) error {
	if err := s.cfg.Store.Ready(ctx); err != nil {
		return err
	}
	if err := s.compareClocks(ctx); err != nil {
		return err
	}
	if err := s.keys.Ready(ctx); err != nil {
		return err
	}
	if s.cfg.AuditRequired {
		if err := s.cfg.Audit.Ready(); err != nil {
			return errors.Join(errUnkept, err)
		}
	}
	return s.writable(ctx)
}

func (s *Server) writable(ctx context.Context) error {
	began := s.cfg.Now()
	err := s.cfg.Store.Writable(ctx)
	s.outages.Observe(began, s.cfg.Now(), err)
	if err != nil {
		return fmt.Errorf("the store cannot be written: %w", err)
	}
	return nil
}

// compareIssuer logs a warning once if the issuer has changed since the last start: clients compare
// it byte for byte, and tokens and registrations contain it.
func (s *Server) compareIssuer(ctx context.Context) error {
	before, err := s.cfg.Store.Remember(ctx, "issuer", []byte(s.cfg.Issuer))
	if err != nil {
		return err
	}
	if len(before) > 0 && string(before) != s.cfg.Issuer {
		s.log.WarnContext(ctx,
			"the issuer has changed: clients that know the earlier one register and sign in again, and resource servers must be told",
			slog.String("issuer", s.cfg.Issuer), slog.String("before", string(before)))
	}
	return nil
}
