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
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	keySetRetry = 30 * time.Second // minimum time between two fetches for an unknown key ID
	maxKeySets  = 1000
)

// keySets finds the public keys of clients that authenticate with private_key_jwt. Key sets at a
// jwks_uri are fetched under the same rules as documents, and cached.
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

// ClientKeys returns the public keys of c that may verify an assertion whose header names kid, or
// none. If the cached set lacks kid, ClientKeys fetches the set again, at most every 30 seconds. A
// client can thus rotate its keys at any time.
func (r *Registry) ClientKeys(ctx context.Context, c storage.Client, kid string) ([]jose.JSONWebKey, error) {
	keys, err := r.keySets(ctx, c).of(ctx, c, kid)
	if err != nil || kid == "" {
		return keys, err
	}
	return slices.DeleteFunc(slices.Clone(keys),
		func(k jose.JSONWebKey) bool { return k.KeyID != "" && k.KeyID != kid }), nil
}

// keySets returns the cache whose fetch allowance the client shares.
func (r *Registry) keySets(ctx context.Context, c storage.Client) *keySets {
	if r.Vouched(c) {
		return r.vouched
	}
	if c.LastUsedAt.IsZero() && c.JWKSURI != "" { // c may be a copy from its registration, or a few seconds old
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
			return e.keys, nil // an outage of the client's site must not end sessions
		}
		return nil, err
	}
	return v.([]jose.JSONWebKey), nil
}

// load fetches a key set. A failure is cached for documentRetry, so that failed sign-ins do not
// become a stream of requests to another site.
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
	if errors.Is(err, safehttp.ErrNeverPermitted) { // AS-161: a retry cannot succeed
		err = oauth.NewError(oauth.InvalidClient,
			"The jwks_uri of the client has a host that this server never reads from.").Because(err)
	} else if err != nil {
		err = fmt.Errorf("key set of the client: %w", err)
	}
	if err != nil {
		if old, ok := s.entries.Get(uri); ok && old.err == nil {
			old.fetched = now // keep the good keys after a bad response
			s.entries.Put(uri, old, time.Time{})
			return nil, err
		}
		s.entries.Put(uri, keySet{err: err, fetched: now, expires: now.Add(documentRetry)}, time.Time{})
		return nil, err
	}
	s.entries.Put(uri, keySet{keys: keys, fetched: now, expires: now.Add(lifetime(answer.Header))}, time.Time{})
	return keys, nil
}
