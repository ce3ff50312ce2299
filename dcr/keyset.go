package dcr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/time/rate"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/jwks"
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
	rate    *rate.Limiter
	entries *bounded.Map[string, *jwks.Set[jose.JSONWebKey]]
}

func newKeySets(fetch *safehttp.Client, now func() time.Time) *keySets {
	return &keySets{
		fetch: fetch, now: now, entries: bounded.New[string, *jwks.Set[jose.JSONWebKey]](maxKeySets, now),
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
	set, err := s.set(c.JWKSURI)
	if err != nil {
		return nil, err
	}
	keys, err := set.Find(ctx, func(keys []jose.JSONWebKey) bool {
		return kid == "" || slices.ContainsFunc(keys, func(k jose.JSONWebKey) bool { return k.KeyID == kid })
	})
	if keys != nil {
		return keys, nil // an outage of the client's site must not end sessions
	}
	return nil, err
}

var errCrowded = errors.New("too many key sets at once")

// set returns the cached key set at a URI. While no fetch is allowed, it adds none: clients must
// not displace the key sets of others faster than that.
func (s *keySets) set(uri string) (*jwks.Set[jose.JSONWebKey], error) {
	if set, ok := s.entries.Get(uri); ok {
		return set, nil
	}
	if s.rate.TokensAt(s.now()) < 1 {
		return nil, errCrowded
	}
	set := &jwks.Set[jose.JSONWebKey]{
		Fetch: func(ctx context.Context) ([]jose.JSONWebKey, time.Duration, error) { return s.load(ctx, uri) },
		Now:   s.now,
		Pause: keySetRetry,
		Retry: documentRetry, // failed sign-ins must not become a stream of requests to another site
		Stale: documentMaxTTL,
		Allow: func(string) error {
			if !s.rate.AllowN(s.now(), 1) {
				return errCrowded
			}
			return nil
		},
	}
	if !s.entries.Add(uri, set, time.Time{}) { // by a concurrent caller
		return s.set(uri)
	}
	return set, nil
}

// load fetches a key set.
func (s *keySets) load(ctx context.Context, uri string) ([]jose.JSONWebKey, time.Duration, error) {
	answer, err := s.fetch.Get(ctx, uri, safehttp.Validators{})
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
	return keys, lifetime(answer.Header), err
}
