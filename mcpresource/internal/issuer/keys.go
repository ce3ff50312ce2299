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

// keySet bounds the keys of an issuer.
var keySet = foreign.KeySet{MaxBytes: maxDocument, MaxKeys: 1000}

const (
	// refreshAfter is when a key set is read again, in the background.
	refreshAfter = 5 * time.Minute
	// waitAfter is the age from which a request waits for a new set, because there were no requests
	// for so long: a key that was withdrawn meanwhile must not pass even once.
	waitAfter = 15 * time.Minute
	// refreshPause is the least time between two readings, also for unknown keys:
	// forged tokens must not become requests to the authorization server.
	refreshPause = 10 * time.Second
	// retryPause is the same while there are no keys at all, as when both servers start.
	retryPause = time.Second
	// staleFor is how long keys serve on when they cannot be read again.
	staleFor = 24 * time.Hour
)

// KeysConfig says whose keys are read, and how. Location "" is found by discovery.
type KeysConfig struct {
	Issuer, Location string
	Client           *http.Client
	Now              func() time.Time
	Log              *slog.Logger
}

// Keys is the key set of an issuer. It is read when first needed, so that servers may start in
// any order.
type Keys struct {
	c      KeysConfig
	flight singleflight.Group

	mu     sync.Mutex      // guards what follows
	keys   map[string]*Key // what they point to does not change
	only   *Key            // the one key of a set of one, for tokens without kid
	readAt time.Time
	tried  time.Time
	failed bool // the last reading
	busy   bool // reading in the background
}

// NewKeys returns a key set that has not been read yet.
func NewKeys(c KeysConfig) *Keys { return &Keys{c: c} }

// Key is a public key with its thumbprint (RFC 7638), which costs more than to look it up.
type Key struct {
	jose.JSONWebKey
	Print string
}

// ErrNoKey means that the issuer has no key of that name. Every other error of Keys means that
// its keys are out of reach.
var ErrNoKey = errors.New("no such key")

var (
	errJustTried = errors.New("the keys could not be read a moment ago")
	errMaybeNew  = errors.New("unknown key, and the keys could not be read again")
)

// Key returns the key with an id. An unknown id has the set read again, at most once
// every refreshPause; a known id never does for as long as the set is young, whatever the
// signature looks like.
func (s *Keys) Key(ctx context.Context, kid string, now time.Time) (*Key, error) {
	k, ok, age, tried := s.lookup(kid, now)
	fresh := age < staleFor
	switch {
	case ok && age < refreshAfter:
		return k, nil
	case ok && (age < waitAfter || fresh && s.failing()):
		if tried >= refreshPause {
			s.background(ctx) // the present request need not wait
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

// missing is the error for an unknown key: while the set cannot be read, a new one may
// be good as well.
func (s *Keys) missing() error {
	if s.failing() {
		return errMaybeNew
	}
	return ErrNoKey
}

// lookup finds a key and says how old the set is and how long ago it was last asked for.
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

// failing reports whether the last reading failed: then requests go on with what is
// known, and none waits for the next one.
func (s *Keys) failing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// background reads the set without making a request wait. However many requests come meanwhile,
// none of them adds a goroutine that waits for a failing server.
func (s *Keys) background(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return
	}
	s.busy = true
	go func() {
		_ = s.refresh(context.WithoutCancel(ctx)) // logged there
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy = false
	}()
}

// refresh reads the set; any number of callers share one reading.
func (s *Keys) refresh(ctx context.Context) error {
	_, err, _ := s.flight.Do("", func() (any, error) {
		if s.justRead() {
			return nil, nil // by a reading that ended between the caller's look and this one
		}
		err := s.read(context.WithoutCancel(ctx))
		if err != nil {
			s.c.Log.WarnContext(ctx, "keys of the authorization server not read", "issuer", s.c.Issuer, "error", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = err != nil
		s.tried = s.c.Now() // at the end: who comes meanwhile waits for this reading
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
