package provider

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/mcp-authd/mcp-authd/internal/foreign"
)

const (
	keyReadEvery = 10 * time.Second
	keyReads     = 6 // burst
)

// readable limits the key sets of providers.
var readable = foreign.KeySet{MaxBytes: maxDocument, MaxKeys: 1000}

// keySet holds the signing keys of a provider. It reads them when no known key verifies a token.
type keySet struct {
	at      string
	client  *http.Client
	now     func() time.Time
	flights singleflight.Group
	reads   *reads

	mu   sync.Mutex // guards keys
	keys []jose.JSONWebKey
}

var errNoKey = fmt.Errorf("%w: the token is signed by no key of the provider", ErrGarbage)

// allowed is the key set for one use, with its own allowance of reads. Anyone can send a logout
// token with an unknown key, and must not use up the reads that sign-ins need.
type allowed struct {
	*keySet
	use   string // concurrent callers with the same use share one read
	reads *rate.Limiter
}

func (k *keySet) allow(use string) allowed {
	return allowed{k, use, rate.NewLimiter(rate.Every(keyReadEvery), keyReads)}
}

// VerifySignature implements oidc.KeySet.
func (a allowed) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	signed, err := jose.ParseSignedCompact(jwt, asymmetric)
	if err != nil || len(signed.Signatures) != 1 {
		return nil, fmt.Errorf("%w: not a signed token", ErrGarbage)
	}
	if payload, ok := a.verify(signed); ok {
		return payload, nil
	}
	if _, err, _ := a.flights.Do(a.use, func() (any, error) {
		if !a.reads.AllowN(a.now(), 1) {
			return nil, fmt.Errorf("%w: its keys were read just now", &TooOften{keyReadEvery})
		}
		return nil, a.keySet.reads.note(readKeys, a.now(), a.read(context.WithoutCancel(ctx)))
	}); err != nil {
		return nil, err
	}
	if payload, ok := a.verify(signed); ok {
		return payload, nil
	}
	return nil, errNoKey
}

// verify tries the keys that may have signed the token.
func (k *keySet) verify(signed *jose.JSONWebSignature) (payload []byte, ok bool) {
	k.mu.Lock()
	keys := k.keys
	k.mu.Unlock()
	kid := signed.Signatures[0].Header.KeyID
	for i := range keys {
		if kid != "" && keys[i].KeyID != kid {
			continue
		}
		if payload, err := signed.Verify(&keys[i]); err == nil {
			return payload, true
		}
	}
	return nil, false
}

func (k *keySet) read(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.at, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	resp, err := k.client.Do(req)
	if err != nil {
		return fmt.Errorf("the keys: %w", failed(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("the keys: %w", failed(err))
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: the keys: status %d", ErrGarbage, resp.StatusCode)
	}
	keys, err := readable.Parse(body)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys = keys
	return nil
}
