package trust

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/secevent"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const eventPurpose = "security event"

// Events exposes the entries as sources of security events: it implements secevent.Sources.
type Events struct {
	issuers *Issuers
	store   storage.AssertedEnds
}

// NewEvents returns the entries of issuers as sources of security events.
func NewEvents(i *Issuers, store storage.AssertedEnds) *Events { return &Events{i, store} }

// Sources implements secevent.Sources. It returns the entries that accept security events from an
// issuer. A disabled entry is skipped, because everything that depended on it has ended.
func (v *Events) Sources(ctx context.Context, issuer string) (out []secevent.Source, err error) {
	entries, err := v.issuers.entries(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", secevent.ErrUnavailable, err)
	}
	var ids []string
	for _, e := range entries {
		if e.Issuer == issuer && e.Kind == Enterprise {
			ids = append(ids, e.ID)
		}
	}
	for _, e := range entries {
		if e.Issuer == issuer && e.DisabledAt.IsZero() && len(e.EventAudience) > 0 {
			out = append(out, eventSource{v, e, ids})
		}
	}
	return out, nil
}

// eventSource is an entry as a source of security events, which end grants that depend on its
// issuer's assertions.
type eventSource struct {
	events *Events
	entry  *entry
	ids    []string // IDs of all entries of the issuer
}

// Name implements secevent.Source.
func (s eventSource) Name() string { return s.entry.ID }

// Policy implements secevent.Source.
func (s eventSource) Policy() secevent.Policy {
	return secevent.Policy{
		Issuer: s.entry.Issuer, Issuers: []string{s.entry.Issuer}, Audience: s.entry.EventAudience,
	}
}

// Verify implements secevent.Source. It uses only the keys of the entry's issuer (AS-230, AS-245).
func (s eventSource) Verify(ctx context.Context, raw string) ([]byte, error) {
	signed, err := jose.ParseSignedCompact(raw, secevent.Algorithms)
	if err != nil {
		return nil, secevent.ErrKey
	}
	t := &token{signed: signed, alg: signed.Signatures[0].Header.Algorithm, kid: signed.Signatures[0].Header.KeyID}
	keys, err := s.events.issuers.keySet(s.entry.keys).of(ctx, t)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", secevent.ErrUnavailable, err)
	case !t.verify(keys):
		return nil, secevent.ErrKey
	}
	return signed.UnsafePayloadWithoutVerification(), nil // verified above
}

// End implements secevent.Source. An event about a session ends all of the user's grants from
// assertions, because assertions name no session.
func (s eventSource) End(ctx context.Context, o secevent.Order) (int, error) {
	now := s.events.issuers.o.Now()
	end := storage.AssertedEnd{
		Issuer: s.entry.Issuer, TrustIDs: s.ids, At: o.At, Until: o.Until, ForgetAt: o.At.Add(maxMaxTTL + time.Minute),
	}
	for _, t := range o.Targets {
		if t.Subject != "" {
			end.Subjects = append(end.Subjects, t.Subject)
		}
	}
	use := storage.Use{Purpose: eventPurpose, ID: "trust " + s.entry.ID + " " + o.ID, Expires: o.ForgetAt}
	ended, err := s.events.store.EndAsserted(ctx, end, use, now)
	switch {
	case errors.Is(err, storage.ErrSpent):
		return 0, secevent.ErrRepeated
	case err != nil:
		return 0, fmt.Errorf("%w: %w", secevent.ErrUnavailable, err)
	}
	return ended, nil
}

// hearing validates the entry's settings for security events.
func (e *entry) hearing() error {
	if e.Kind == Workload && len(e.EventAudience) > 0 {
		return errors.New("event_audience: means nothing for workloads")
	}
	for i, a := range e.EventAudience {
		if strings.ContainsFunc(a, func(r rune) bool { return r <= ' ' }) {
			return fmt.Errorf("event_audience[%d]: %q has blanks in it", i, a)
		}
	}
	return nil
}
