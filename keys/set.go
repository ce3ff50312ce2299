package keys

import (
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

	"github.com/mcp-authd/mcp-authd/storage"
)

const sealPurpose = "signing key"

// set is what was read from the store at one moment, ready for use.
type set struct {
	readAt time.Time
	active *signer // to sign with; nil when there is none of the configured algorithm yet
	public map[string]jose.JSONWebKey
	jwks   []byte
	etag   string
}

// signer is the active key.
type signer struct {
	id  string
	alg string
	key crypto.Signer
}

// newSet opens the active key and publishes them all.
func (m *Manager) newSet(stored []storage.SigningKey, now time.Time) (*set, error) {
	s := &set{readAt: now, public: map[string]jose.JSONWebKey{}}
	list := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	signing := m.signing(stored, now)
	for _, k := range stored {
		var pub jose.JSONWebKey
		if err := json.Unmarshal(k.Public, &pub); err != nil {
			return nil, fmt.Errorf("public key %s: %w", k.ID, err)
		}
		s.public[k.ID] = pub
		list.Keys = append(list.Keys, pub)
		if k.ID == signing {
			key, err := m.open(k)
			if err != nil {
				return nil, err
			}
			s.active = &signer{k.ID, k.Algorithm, key}
		}
	}
	var err error
	if s.jwks, err = json.Marshal(list); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(s.jwks)
	s.etag = `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	return s, nil
}

// known is how long after its creation every replica publishes a key, with some time
// for clocks that differ.
const known = 2 * cacheTTL

// signing is the id of the key to sign with: the newest that every replica publishes, or
// a resource server that asks another replica would not find the key of a token that it
// was just shown, and that replica would not know the token when it is to be revoked.
// Until then the key that was replaced goes on.
func (m *Manager) signing(stored []storage.SigningKey, now time.Time) (id string) {
	for _, k := range stored { // oldest first
		if k.Algorithm != m.cfg.Algorithm || k.State == storage.KeyNext {
			continue
		}
		if id == "" || !now.Before(k.CreatedAt.Add(known)) {
			id = k.ID
		}
	}
	return id
}

// generate makes a key pair of the configured algorithm.
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
	pub.KeyID = base64.RawURLEncoding.EncodeToString(thumb[:16])
	public, err := json.Marshal(pub)
	if err != nil {
		return storage.SigningKey{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return storage.SigningKey{}, err
	}
	return storage.SigningKey{
		ID: pub.KeyID, Algorithm: m.cfg.Algorithm, State: storage.KeyActive, Public: public,
		Private: m.ring.Seal(sealPurpose, private, []byte(pub.KeyID)), CreatedAt: m.cfg.Now(),
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
		return nil, fmt.Errorf("signing key %s cannot be opened: the secret key is not the one it was stored under", k.ID)
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
