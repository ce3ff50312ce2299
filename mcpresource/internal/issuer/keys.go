package issuer

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"

	"github.com/mcp-authd/mcp-authd/internal/foreign"
)

// keySet limits the size of an issuer's key set.
var keySet = foreign.KeySet{MaxBytes: maxDocument, MaxKeys: 1000}

const (
	// refreshAfter is the age after which a key set is fetched again, in the background.
	refreshAfter = 5 * time.Minute
	// waitAfter is the age after which a request waits for a new set. Sets are only fetched during
	// requests, so after a quiet time an old set could contain a withdrawn key.
	waitAfter = 15 * time.Minute
	// refreshPause is the minimum time between two fetches, also for unknown keys: forged tokens
	// must not cause requests to the authorization server.
	refreshPause = 10 * time.Second
	// retryPause is the same without any keys, for example when both servers start.
	retryPause = time.Second
	// staleFor is how long keys are used if they cannot be fetched again.
	staleFor = 24 * time.Hour
)

// KeysConfig states whose keys are fetched, and how. An empty Location is discovered.
type KeysConfig struct {
	Issuer, Location string
	Client           *http.Client
	Now              func() time.Time
	Log              *slog.Logger
}

// Keys is the key set of an issuer. It is fetched when first needed, so that servers may start in
// any order.
type Keys struct {
	c      KeysConfig
	flight singleflight.Group

	mu     sync.Mutex      // guards the fields below
	keys   map[string]*Key // the keys themselves are immutable
	only   *Key            // the key of a set with one key, for tokens without kid
	readAt time.Time
	tried  time.Time
	failed bool // the last fetch
	busy   bool // fetching in the background
}

// NewKeys returns a key set that has not been fetched yet.
func NewKeys(c KeysConfig) *Keys { return &Keys{c: c} }

// Key is a public key with its cached thumbprint (RFC 7638), which is costly to compute.
type Key struct {
	jose.JSONWebKey
	Print string
}

// ErrNoKey means that the issuer has no key with that id. Any other error of Keys means that its
// keys are unavailable.
var ErrNoKey = errors.New("no such key")

var (
	errJustTried = errors.New("the keys could not be read a moment ago")
	errMaybeNew  = errors.New("unknown key, and the keys could not be read again")
)

// Key returns the key with an id. An unknown id causes a fetch of the set, at most once every
// refreshPause. A known id causes none while the set is young, even if the signature is invalid.
func (s *Keys) Key(ctx context.Context, kid string, now time.Time) (*Key, error) {
	k, ok, age, tried := s.lookup(kid, now)
	fresh := age < staleFor
	switch {
	case ok && age < refreshAfter:
		return k, nil
	case ok && (age < waitAfter || fresh && s.failing()):
		if tried >= refreshPause {
			s.background(ctx) // this request need not wait
		}
		return k, nil
	case fresh && tried < refreshPause:
		return k, s.missing()
	case !fresh && tried < retryPause:
		return k, errJustTried
	}
	if err := s.refresh(ctx); err != nil && !fresh {
		return k, err
	}
	if k, ok, _, _ := s.lookup(kid, now); ok {
		return k, nil
	}
	return k, s.missing()
}

// missing returns the error for an unknown key. While the set cannot be fetched, the key may be a
// new valid one.
func (s *Keys) missing() error {
	if s.failing() {
		return errMaybeNew
	}
	return ErrNoKey
}

// lookup returns a key, the age of the set, and the time since the last fetch.
func (s *Keys) lookup(kid string, now time.Time) (k *Key, ok bool, age, tried time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	age, tried = now.Sub(s.readAt), now.Sub(s.tried)
	if kid == "" && s.only != nil {
		return s.only, true, age, tried
	}
	k, ok = s.keys[kid]
	return k, ok, age, tried
}

// failing reports whether the last fetch failed. Requests then use the known keys, and do not wait
// for the next fetch.
func (s *Keys) failing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// background fetches the set without delaying a request. Further requests during the fetch start no
// goroutines.
func (s *Keys) background(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return
	}
	s.busy = true
	go func() {
		_ = s.refresh(context.WithoutCancel(ctx)) // errors are logged there
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy = false
	}()
}

// refresh fetches the set. Concurrent callers share one fetch.
func (s *Keys) refresh(ctx context.Context) error {
	_, err, _ := s.flight.Do("", func() (any, error) {
		if s.justRead() {
			return nil, nil // by a fetch that ended after the caller's lookup
		}
		err := s.read(context.WithoutCancel(ctx))
		if err != nil {
			s.c.Log.WarnContext(ctx, "keys of the authorization server not read", "issuer", s.c.Issuer, "error", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = err != nil
		s.tried = s.c.Now() // at the end: callers during the fetch wait for it
		return nil, err
	})
	return err
}

func (s *Keys) justRead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.failed && s.c.Now().Sub(s.tried) < retryPause
}

func (s *Keys) read(ctx context.Context) error {
	location := s.c.Location
	if location == "" {
		m, err := Discover(ctx, s.c.Client, s.c.Issuer)
		if err != nil {
			return err
		}
		if location = m.JWKSURI; location == "" {
			return errors.New("the metadata names no jwks_uri")
		}
	}
	body, err := fetchJSON(ctx, s.c.Client, location)
	if err != nil {
		return err
	}
	set, err := keySet.Parse(body)
	if err != nil {
		return fmt.Errorf("%s: %w", location, err)
	}
	keys := map[string]*Key{}
	for _, k := range set {
		if sum, err := k.Thumbprint(crypto.SHA256); err == nil {
			keys[k.KeyID] = &Key{k, string(sum)}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys, s.only, s.readAt = keys, nil, s.c.Now()
	if len(keys) == 1 {
		for _, k := range keys {
			s.only = k
		}
	}
	return nil
}
