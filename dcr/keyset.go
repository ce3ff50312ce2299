package dcr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	keySetRetry = 30 * time.Second // an unknown key id makes us look again no sooner
	maxKeySets  = 1000
)

// keySets finds the public keys of clients that authenticate by private_key_jwt. Those
// at a jwks_uri are fetched under the same rules as documents, and kept.
type keySets struct {
	fetch   *safehttp.Client
	now     func() time.Time
	flight  singleflight.Group
	rate    *rate.Limiter
	entries *bounded.Map[string, keySet]
}

type keySet struct {
	keys    []jose.JSONWebKey
	err     error
	fetched time.Time
	expires time.Time
}

func newKeySets(fetch *safehttp.Client, now func() time.Time) *keySets {
	return &keySets{
		fetch: fetch, now: now, entries: bounded.New[string, keySet](maxKeySets, now),
		rate: rate.NewLimiter(documentsAllowed, 10*documentsAllowed),
	}
}

// ClientKeys returns the public keys that may verify an assertion of c whose header
// names kid, or none. A key id that the kept set does not have makes it look again, at
// most every half minute, so that a client can change its keys at any time.
func (r *Registry) ClientKeys(ctx context.Context, c storage.Client, kid string) ([]jose.JSONWebKey, error) {
	keys, err := r.keySets(ctx, c).of(ctx, c, kid)
	if err != nil || kid == "" {
		return keys, err
	}
	return slices.DeleteFunc(slices.Clone(keys),
		func(k jose.JSONWebKey) bool { return k.KeyID != "" && k.KeyID != kid }), nil
}

// keySets are those that the client shares an allowance of fetches with.
func (r *Registry) keySets(ctx context.Context, c storage.Client) *keySets {
	if r.Vouched(c) {
		return r.vouched
	}
	if c.LastUsedAt.IsZero() && c.JWKSURI != "" { // as it was registered, or a moment ago
		if row, err := r.cfg.Store.Client(ctx, c.ID); err == nil {
			c.LastUsedAt = row.LastUsedAt
		}
	}
	if c.LastUsedAt.IsZero() {
		return r.strange
	}
	return r.approved
}

func (s *keySets) of(ctx context.Context, c storage.Client, kid string) ([]jose.JSONWebKey, error) {
	switch {
	case c.JWKS != nil:
		return clientKeys.Parse(c.JWKS)
	case c.JWKSURI == "":
		return nil, errors.New("the client has no keys")
	}
	e, ok := s.entries.Get(c.JWKSURI)
	known := kid == "" || slices.ContainsFunc(e.keys, func(k jose.JSONWebKey) bool { return k.KeyID == kid })
	now := s.now()
	if ok && now.Before(e.expires) && (known || now.Sub(e.fetched) < keySetRetry) {
		return e.keys, e.err
	}
	v, err, _ := s.flight.Do(c.JWKSURI, func() (any, error) { return s.load(context.WithoutCancel(ctx), c.JWKSURI) })
	if err != nil {
		if ok && e.err == nil && now.Before(e.expires.Add(documentMaxTTL)) {
			return e.keys, nil // an outage elsewhere ends no session
		}
		return nil, err
	}
	return v.([]jose.JSONWebKey), nil
}

// load fetches a key set. What cannot be had is remembered for a moment, so that failed
// attempts to sign in do not become a stream of requests to another site.
func (s *keySets) load(ctx context.Context, uri string) ([]jose.JSONWebKey, error) {
	if !s.rate.AllowN(s.now(), 1) {
		return nil, errors.New("too many key sets at once")
	}
	answer, err := s.fetch.Get(ctx, uri, safehttp.Validators{})
	now := s.now()
	var keys []jose.JSONWebKey
	if err == nil {
		keys, err = clientKeys.Parse(answer.Body)
	}
	if errors.Is(err, safehttp.ErrNeverPermitted) { // AS-161: asking again is of no use
		err = oauth.NewError(oauth.InvalidClient,
			"The jwks_uri of the client has a host that this server never reads from.").Because(err)
	} else if err != nil {
		err = fmt.Errorf("key set of the client: %w", err)
	}
	if err != nil {
		if old, ok := s.entries.Get(uri); ok && old.err == nil {
			old.fetched = now // good keys outlive a bad answer
			s.entries.Put(uri, old, time.Time{})
			return nil, err
		}
		s.entries.Put(uri, keySet{err: err, fetched: now, expires: now.Add(documentRetry)}, time.Time{})
		return nil, err
	}
	s.entries.Put(uri, keySet{keys: keys, fetched: now, expires: now.Add(lifetime(answer.Header))}, time.Time{})
	return keys, nil
}
