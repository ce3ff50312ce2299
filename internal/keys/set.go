package keys

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const sealPurpose = "signing key"

// set holds the keys as read from the store at one moment, ready for use.
type set struct {
	readAt  time.Time
	stored  []storage.SigningKey // oldest first
	signer  *signer              // nil: see signErr
	signErr error
	public  map[string]jose.JSONWebKey
	jwks    []byte
	etag    string
	// verified is shared between sets as long as the published keys are the same.
	verified *verified
}

// signer is a key that can sign.
type signer struct {
	id  string
	alg string
	key crypto.Signer
}

var errNoActive = errors.New("no active signing key")

// newSet prepares the public keys and opens the signing key.
func (m *Manager) newSet(ctx context.Context, stored []storage.SigningKey, now time.Time) (*set, error) {
	s := &set{readAt: now, stored: stored, public: map[string]jose.JSONWebKey{}}
	list := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range stored {
		var pub jose.JSONWebKey
		if err := json.Unmarshal(k.Public, &pub); err != nil {
			return nil, fmt.Errorf("public key %s: %w", k.ID, err)
		}
		s.public[k.ID] = pub
		list.Keys = append(list.Keys, pub)
	}
	s.signer, s.signErr = m.chooseSigner(ctx, s)
	var err error
	if s.jwks, err = json.Marshal(list); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(s.jwks)
	s.etag = `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	return s, nil
}

// chooseSigner opens the signing key, which is the active key of the algorithm. If the algorithm
// lacks one, because replicas are configured with different algorithms, it is the newest active
// key. A replica that lacks the master key to open it continues with its previous key as long as
// that is published, and logs an error.
func (m *Manager) chooseSigner(ctx context.Context, s *set) (*signer, error) {
	k := m.activeOf(s)
	if k == nil {
		k = m.otherActive(s)
	}
	if k == nil {
		return nil, errNoActive
	}
	k = s.settled(k)
	var before *signer
	if m.current != nil {
		before = m.current.signer
	}
	if before != nil && (before.id == k.ID || m.afterOutage(s) && m.maySign(s, before.id)) {
		return before, nil
	}
	key, err := m.open(*k)
	if err == nil {
		return &signer{k.ID, k.Algorithm, key}, nil
	}
	if before != nil {
		if _, published := s.public[before.id]; published {
			m.cfg.Logger.ErrorContext(ctx, "signing with an older key", "kid", before.id, "error", err)
			return before, nil
		}
	}
	return nil, err
}

// activeOf returns the active key of the configured algorithm, or nil.
func (m *Manager) activeOf(s *set) *storage.SigningKey {
	return s.find(m.cfg.Algorithm, storage.KeyActive)
}

// otherActive returns the newest active key of another algorithm, or nil.
func (m *Manager) otherActive(s *set) (other *storage.SigningKey) {
	for i := range s.stored {
		k := &s.stored[i]
		if k.State == storage.KeyActive && k.Algorithm != m.cfg.Algorithm &&
			(other == nil || since(*k).After(since(*other))) {
			other = k
		}
	}
	return other
}

func (s *set) find(algorithm string, state storage.KeyState) *storage.SigningKey {
	for i := range s.stored {
		if k := &s.stored[i]; k.Algorithm == algorithm && k.State == state {
			return k
		}
	}
	return nil
}

// known is how long after its creation every replica publishes a key. A replica that cannot reach
// the store succeeds after at most cacheTTL plus twice rereadTimeout (the attempt and the pause).
// The rest allows for clock differences. In a longer outage, every replica notices: see
// afterOutage.
const known = 3 * cacheTTL

// afterOutage reports whether the store was unavailable so recently before s was read that other
// replicas may not have read the keys since.
func (m *Manager) afterOutage(s *set) bool { return s.readAt.Before(m.failedAt.Add(known)) }

// maySign reports whether a key stays published for the lifetime of a token that it signs now.
func (m *Manager) maySign(s *set, id string) bool {
	for _, k := range s.stored {
		if k.ID == id {
			return k.ExpiresAt.IsZero() || !s.readAt.Add(m.cfg.AccessTTL).After(k.ExpiresAt)
		}
	}
	return false
}

// settled returns k, or while k is younger than known the newest older key that can sign instead.
// Otherwise a resource server that asks another replica might not find the key of a new token. That
// replica also could not verify the token to revoke it. A key that was published ahead, or that is
// the only one, signs immediately.
func (s *set) settled(k *storage.SigningKey) *storage.SigningKey {
	out := k
	for i := range s.stored { // oldest first
		o := &s.stored[i]
		if o.Algorithm != k.Algorithm || o.State == storage.KeyNext || o.CreatedAt.After(k.CreatedAt) {
			continue
		}
		if settled := !s.readAt.Before(o.CreatedAt.Add(known)); settled || out == k {
			out = o
		}
		if o == k {
			break
		}
	}
	return out
}

// since returns when a next or active key entered its state.
func since(k storage.SigningKey) time.Time {
	if k.ActivatedAt.IsZero() {
		return k.CreatedAt
	}
	return k.ActivatedAt
}

// generate returns a new active key pair of the configured algorithm.
func (m *Manager) generate() (storage.SigningKey, error) {
	key, err := generateKey(m.cfg.Algorithm)
	if err != nil {
		return storage.SigningKey{}, err
	}
	pub := jose.JSONWebKey{Key: key.Public(), Algorithm: m.cfg.Algorithm, Use: "sig"}
	thumb, err := pub.Thumbprint(crypto.SHA256) // RFC 7638
	if err != nil {
		return storage.SigningKey{}, err
	}
	// The prefix prevents a name that starts with a hyphen, which would be a flag on the command
	// line.
	pub.KeyID = "key_" + base64.RawURLEncoding.EncodeToString(thumb[:16])
	public, err := json.Marshal(pub)
	if err != nil {
		return storage.SigningKey{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return storage.SigningKey{}, err
	}
	now := m.cfg.Now()
	return storage.SigningKey{
		ID: pub.KeyID, Algorithm: m.cfg.Algorithm, State: storage.KeyActive, Public: public,
		Private: m.ring.Seal(sealPurpose, private, []byte(pub.KeyID)), CreatedAt: now, ActivatedAt: now,
	}, nil
}

func generateKey(algorithm string) (crypto.Signer, error) {
	switch algorithm {
	case string(jose.ES256):
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case string(jose.EdDSA):
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	case string(jose.RS256):
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	return nil, fmt.Errorf("algorithm %q is not one of ES256, EdDSA, RS256", algorithm)
}

// open unseals a private key.
func (m *Manager) open(k storage.SigningKey) (crypto.Signer, error) {
	der, err := m.ring.Open(sealPurpose, k.Private, []byte(k.ID))
	if err != nil {
		return nil, fmt.Errorf("signing key %s cannot be opened: the secret key is not the one it was stored under",
			k.ID)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", k.ID, err)
	}
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("signing key " + k.ID + " cannot sign")
	}
	return s, nil
}
