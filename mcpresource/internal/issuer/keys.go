package issuer

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/jwks"
)

// keySet limits the size of an issuer's key set.
var keySet = jwks.Parser{MaxBytes: maxDocument, MaxKeys: 1000}

const (
	// refreshAfter is the age after which a key set is fetched again, in the background.
	refreshAfter = 5 * time.Minute
	// waitAfter is the age after which a request waits for a new set. Sets are only fetched during
	// requests, so after a quiet time an old set could contain a withdrawn key.
	waitAfter    = 15 * time.Minute
	refreshPause = 10 * time.Second
	retryPause   = time.Second
	staleFor     = 24 * time.Hour // how long keys are used if they cannot be fetched again
)

// KeysConfig states whose keys are fetched, and how. An empty Location is discovered.
type KeysConfig struct {
	Issuer, Location string
	Client           *http.Client
	Now              func() time.Time
	Log              *slog.Logger
}

// Keys is the key set of an issuer.
type Keys struct {
	c   KeysConfig
	set *jwks.Set[Key]
}

// NewKeys returns a key set that has not been fetched yet.
func NewKeys(c KeysConfig) *Keys {
	k := &Keys{c: c}
	k.set = &jwks.Set[Key]{
		Fetch: k.fetch,
		Now:   c.Now,
		Pause: refreshPause,
		Retry: retryPause,
		Grace: waitAfter - refreshAfter,
		Stale: staleFor - refreshAfter,
	}
	return k
}

// Key is a public key with its cached thumbprint (RFC 7638), which is costly to compute.
type Key struct {
	jose.JSONWebKey
	Print string
}

// Key returns the key with an id, or an error of package jwks. Without an id it returns the only
// key of a set.
func (k *Keys) Key(ctx context.Context, kid string) (found *Key, err error) {
	_, err = k.set.Find(ctx, func(keys []Key) bool {
		for i := len(keys) - 1; i >= 0; i-- { // the last of equal ids
			if keys[i].KeyID == kid || kid == "" && len(keys) == 1 {
				found = &keys[i]
				return true
			}
		}
		return false
	})
	return found, err
}

func (k *Keys) fetch(ctx context.Context) ([]Key, time.Duration, error) {
	keys, err := k.read(ctx)
	if err != nil {
		k.c.Log.WarnContext(ctx, "keys of the authorization server not read", "issuer", k.c.Issuer, "error", err)
	}
	return keys, refreshAfter, err
}

func (k *Keys) read(ctx context.Context) (keys []Key, err error) {
	location := k.c.Location
	if location == "" {
		m, err := Discover(ctx, k.c.Client, k.c.Issuer)
		if err != nil {
			return nil, err
		}
		if location = m.JWKSURI; location == "" {
			return nil, errors.New("the metadata names no jwks_uri")
		}
	}
	body, err := fetchJSON(ctx, k.c.Client, location)
	if err != nil {
		return nil, err
	}
	set, err := keySet.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", location, err)
	}
	for _, one := range set {
		if sum, err := one.Thumbprint(crypto.SHA256); err == nil {
			keys = append(keys, Key{one, string(sum)})
		}
	}
	return keys, nil
}
