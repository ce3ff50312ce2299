package authserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// probe finds out whether the server can do its work, which takes a write: on a full disk, or at a
// standby of PostgreSQL, everything can be read, but sign-ins fail.
type probe struct {
	ready func(context.Context) error
	now   func() time.Time

	mu     sync.Mutex    // guards what follows
	asking chan struct{} // closed when the question under way is answered; nil while no question is asked
	asked  time.Time
	answer error
}

const (
	probeEvery   = time.Second // anyone may ask /readyz, and each probe is a write
	probeWait    = time.Second // a load balancer waits no longer either
	probeTimeout = 5 * time.Second
)

var errNoAnswer = errors.New("the store has not answered within a second")

// ask answers as the store did a moment ago, or asks it. A question that the store leaves
// open is put once, however many callers wait for it, and none of them waits long.
func (p *probe) ask(ctx context.Context) error {
	p.mu.Lock()
	if p.asking == nil && !p.asked.IsZero() && p.now().Sub(p.asked) < probeEvery {
		defer p.mu.Unlock()
		return p.answer
	}
	if p.asking == nil {
		p.asking = make(chan struct{})
		// The answer is for others too, so a caller that leaves does not decide it.
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

// Ready reports nil when the store is reachable and can be written, its schema is this
// version's, its clock is near ours and a signing key is loaded. It answers within a second,
// and what was true a second ago may be the answer.
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

// compareIssuer warns once when the issuer is another one than at the last start: clients
// compare it byte for byte, and tokens and registrations name it.
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
