package keys

import (
	"crypto/sha256"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
)

// maxVerified limits the number of cached verified tokens, of about a kilobyte each.
const maxVerified = 4096

// verified caches which tokens the current keys have signed. A resource server that introspects
// asks about the same few tokens repeatedly, and verifying a signature costs more than the rest of
// the answer. Nothing else is cached: the store is asked each time whether the grant is still
// active.
type verified struct {
	tokens *bounded.Map[[sha256.Size]byte, []byte]
}

func newVerified(now func() time.Time) *verified {
	return &verified{bounded.New[[sha256.Size]byte, []byte](maxVerified, now)}
}

func verifiedKey(token, typ string) [sha256.Size]byte {
	return sha256.Sum256([]byte(typ + " " + token)) // neither has a space
}

func (v *verified) get(key [sha256.Size]byte) ([]byte, bool) { return v.tokens.Get(key) }

// put caches a token that has just been verified.
func (v *verified) put(key [sha256.Size]byte, payload []byte) {
	v.tokens.Put(key, payload, time.Time{})
}
