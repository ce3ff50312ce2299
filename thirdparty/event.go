package thirdparty

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/secevent"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

const eventPurpose = "security event"

// Sources implements secevent.Sources. It returns the connectors that accept security events from
// an issuer.
func (d *Delegation) Sources(_ context.Context, issuer string) (out []secevent.Source, err error) {
	for _, c := range d.connectors {
		if s := (eventSource{d, c}); len(c.Events.Audience) > 0 && s.Policy().Issuer == issuer {
			out = append(out, s)
		}
	}
	return out, nil
}

// eventSource is a connector as a source of security events, which end sessions that depend on
// sign-ins there.
type eventSource struct {
	d *Delegation
	c *connector
}

// Name implements secevent.Source.
func (s eventSource) Name() string { return s.c.ID }

// Policy implements secevent.Source.
func (s eventSource) Policy() secevent.Policy {
	e := s.c.Events
	p := secevent.Policy{Issuer: e.Issuer, Audience: e.Audience, Bearer: e.BearerToken}
	if p.Issuer == "" {
		p.Issuer = s.c.Issuer
	}
	p.Issuers = []string{p.Issuer}
	if s.c.Issuer != "" && s.c.Issuer != p.Issuer {
		p.Issuers = append(p.Issuers, s.c.Issuer)
	}
	return p
}

// Verify implements secevent.Source.
func (s eventSource) Verify(ctx context.Context, raw string) ([]byte, error) {
	payload, err := s.c.VerifyEvent(ctx, raw)
	switch {
	case errors.Is(err, provider.ErrForged):
		return nil, secevent.ErrKey
	case err != nil:
		return nil, fmt.Errorf("%w: %w", secevent.ErrUnavailable, err)
	}
	return payload, nil
}

// End implements secevent.Source. It ends only sessions that depend on the issuer (AS-245).
func (s eventSource) End(ctx context.Context, o secevent.Order) (int, error) {
	var keys []storage.UpstreamKey
	for _, t := range o.Targets {
		keys = append(keys, storage.UpstreamKey{
			Connector: s.c.ID, Subject: t.Subject, SessionID: t.SessionID, Until: o.Until,
		})
	}
	ended, err := s.d.endOnce(ctx, string(o.Reason),
		storage.Use{Purpose: eventPurpose, ID: s.c.ID + " " + o.ID, Expires: o.ForgetAt}, keys...)
	switch {
	case errors.Is(err, storage.ErrSpent):
		return 0, secevent.ErrRepeated
	case err != nil:
		return 0, fmt.Errorf("%w: %w", secevent.ErrUnavailable, err)
	}
	return ended, nil
}
