package dcr

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	// idPrefix marks client IDs of this server. It distinguishes them from client ID metadata
	// documents, whose IDs are https URLs (AS-146).
	idPrefix = "mcp_"
	// maxSealedID keeps IDs below 500 characters, which every known client can store and send.
	maxSealedID = 499

	sealPurpose   = "client id"
	secretPurpose = "client secret"
	sealVersion   = 1
)

var errSealed = errors.New("dcr: not a sealed client id")

// sealer turns clients into IDs and back. It has one ring per master key. A client's secret is
// always derived from the key that sealed its ID, even when that key is no longer the primary.
type sealer struct{ rings []*secrets.Ring }

func newSealer(masters [][]byte) (*sealer, error) {
	if _, err := secrets.NewRing(masters...); err != nil {
		return nil, err
	}
	s := &sealer{}
	for _, m := range masters {
		ring, err := secrets.NewRing(m)
		if err != nil {
			return nil, err
		}
		s.rings = append(s.rings, ring)
	}
	return s, nil
}

// seal sets an ID that contains all of c, and returns the secret of a confidential client. It
// returns false if the ID would be too long.
func (s *sealer) seal(c storage.Client) (storage.Client, string, bool) {
	ring := s.rings[0]
	id := idPrefix + base64.RawURLEncoding.EncodeToString(ring.Seal(sealPurpose, encodeClient(c), nil))
	if len(id) > maxSealedID {
		return c, "", false
	}
	c.ID = id
	return c, deriveSecret(ring, &c), true
}

// open returns the client contained in an ID.
func (s *sealer) open(id string) (storage.Client, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(id, idPrefix))
	// A decoder that skips line breaks would accept many IDs for one client.
	if err != nil || strings.ContainsAny(id, "\r\n") {
		return storage.Client{}, errSealed
	}
	for _, ring := range s.rings {
		plain, err := ring.Open(sealPurpose, raw, nil)
		if err != nil {
			continue
		}
		c, err := decodeClient(plain)
		if err != nil {
			return c, err
		}
		c.ID = id
		deriveSecret(ring, &c)
		return c, nil
	}
	return storage.Client{}, errSealed
}

// deriveSecret sets the secret hash of a confidential client and returns the secret.
func deriveSecret(ring *secrets.Ring, c *storage.Client) string {
	if !c.HasSecret() {
		return ""
	}
	sum := ring.MAC(secretPurpose, []byte(c.ID))
	secret := base64.RawURLEncoding.EncodeToString(sum[:])
	h := storage.Hash(secrets.Hash(secret))
	c.SecretHash = &h
	return secret
}

const managementPurpose, managementPrefix = "registration access token", "mcpra_"

// managementToken returns the registration access token of a client (RFC 7592 §3). Like the secret
// it is derived, so it needs no row and survives the loss of the database.
func (s *sealer) managementToken(id string) string { return managementToken(s.rings[0], id) }

func managementToken(ring *secrets.Ring, id string) string {
	sum := ring.MAC(managementPurpose, []byte(id))
	return managementPrefix + base64.RawURLEncoding.EncodeToString(sum[:])
}

// manages reports whether token is the registration access token of a client under any of the
// master keys.
func (s *sealer) manages(id, token string) bool {
	given, found := secrets.Hash(token), 0
	for _, ring := range s.rings {
		want := secrets.Hash(managementToken(ring, id))
		found |= subtle.ConstantTimeCompare(given[:], want[:])
	}
	return found == 1
}

// encodeClient returns the sealed form: version, method, grants, creation time in seconds, then
// length-prefixed strings. It is a tenth smaller than JSON, and space in an ID is scarce.
func encodeClient(c storage.Client) []byte {
	b := []byte{sealVersion, byte(slices.Index(authMethods, c.AuthMethod)), grantBits(c.GrantTypes, allGrants)}
	b = binary.AppendUvarint(b, uint64(c.CreatedAt.Unix()))
	b = appendString(b, c.Name)
	b = appendString(b, c.Scopes.String())
	b = appendString(b, string(c.Metadata))
	b = binary.AppendUvarint(b, uint64(len(c.RedirectURIs)))
	for _, u := range c.RedirectURIs {
		b = appendString(b, u)
	}
	if c.AuthMethod == privateKeyJWT {
		b = appendString(appendString(b, string(c.JWKS)), c.JWKSURI)
	}
	return b
}

func decodeClient(b []byte) (storage.Client, error) {
	if len(b) < 3 || b[0] != sealVersion || int(b[1]) >= len(authMethods) {
		return storage.Client{}, errSealed
	}
	d := decoder{rest: b[3:]}
	c := storage.Client{
		AuthMethod: authMethods[b[1]], GrantTypes: grantsOf(b[2], allGrants), Source: storage.SourceDynamic,
	}
	c.CreatedAt = time.Unix(int64(d.uvarint()), 0).UTC()
	c.Name = d.string()
	c.Scopes = oauth.ParseScopes(d.string())
	if m := d.string(); m != "" {
		c.Metadata = []byte(m)
	}
	for n := d.uvarint(); n > 0 && !d.failed; n-- {
		c.RedirectURIs = append(c.RedirectURIs, d.string())
	}
	if c.AuthMethod == privateKeyJWT {
		if set := d.string(); set != "" {
			c.JWKS = []byte(set)
		}
		c.JWKSURI = d.string()
	}
	if d.failed || len(d.rest) > 0 {
		return storage.Client{}, errSealed
	}
	return c, nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// grantBits packs the grants that are in offered into one bit each, in the order of offered.
func grantBits(grants, offered []string) (bits byte) {
	for i, g := range offered {
		if slices.Contains(grants, g) {
			bits |= 1 << i
		}
	}
	return bits
}

func grantsOf(bits byte, offered []string) (grants []string) {
	for i, g := range offered {
		if bits&(1<<i) != 0 {
			grants = append(grants, g)
		}
	}
	return grants
}

// decoder reads the sealed form. After a failure it returns only empty values.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.rest, d.failed = nil, true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) string() string {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.rest, d.failed = nil, true
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}
