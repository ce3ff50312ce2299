package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/time/rate"

	"github.com/mcp-authd/mcp-authd/internal/jwks"
)

const (
	keyReadEvery = 10 * time.Second
	keyReads     = 6 // burst
)

// readable limits the key sets of providers.
var readable = jwks.Parser{MaxBytes: maxDocument, MaxKeys: 1000}

var errNoKey = fmt.Errorf("%w: the token is signed by no key of the provider", ErrGarbage)

// keySet holds the signing keys of a provider. It reads them when no known key verifies a token.
type keySet = jwks.Set[jose.JSONWebKey]

// keysFor is a key set for one use, with its own allowance of reads. Anyone can send a logout token
// with an unknown key, and must not use up the reads that sign-ins need.
type keysFor struct {
	*keySet
	use string
}

const forAnswers, forLogouts, forEvents = "answer", "logout", "event"

func newKeySet(at string, client *http.Client, now func() time.Time, noted *reads) *keySet {
	allowed := map[string]*rate.Limiter{}
	for _, use := range []string{forAnswers, forLogouts, forEvents} {
		allowed[use] = rate.NewLimiter(rate.Every(keyReadEvery), keyReads)
	}
	return &keySet{
		Fetch: func(ctx context.Context) ([]jose.JSONWebKey, time.Duration, error) {
			keys, err := readKeySet(ctx, client, at)
			return keys, jwks.Forever, noted.note(readKeys, now(), err)
		},
		Now: now,
		Allow: func(use string) error {
			if !allowed[use].AllowN(now(), 1) {
				return fmt.Errorf("%w: its keys were read just now", &TooOften{keyReadEvery})
			}
			return nil
		},
	}
}

// VerifySignature implements oidc.KeySet.
func (k keysFor) VerifySignature(ctx context.Context, jwt string) (payload []byte, err error) {
	signed, err := jose.ParseSignedCompact(jwt, asymmetric)
	if err != nil || len(signed.Signatures) != 1 {
		return nil, fmt.Errorf("%w: not a signed token", ErrGarbage)
	}
	kid := signed.Signatures[0].Header.KeyID
	_, err = k.FindFor(ctx, k.use, func(keys []jose.JSONWebKey) bool {
		return slices.ContainsFunc(keys, func(key jose.JSONWebKey) bool {
			if kid != "" && key.KeyID != kid {
				return false
			}
			payload, err = signed.Verify(&key)
			return err == nil
		})
	})
	switch {
	case errors.Is(err, jwks.ErrNoKey):
		return nil, errNoKey
	case err != nil:
		return nil, failed(err) // also if the caller's context ended
	}
	return payload, nil
}

func readKeySet(ctx context.Context, client *http.Client, at string) ([]jose.JSONWebKey, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the keys: %w", failed(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("the keys: %w", failed(err))
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: the keys: status %d", ErrGarbage, resp.StatusCode)
	}
	keys, err := readable.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	return keys, nil
}
