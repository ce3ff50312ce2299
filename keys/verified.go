package keys

import (
	"crypto/sha256"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
)

// maxVerified bounds the tokens that are remembered as verified, at about a kilobyte
// each.
const maxVerified = 4096

// verified remembers which tokens the present keys have signed: a resource server that
// introspects asks about the same few tokens all the time, and a signature costs more
// than everything else in the answer. Nothing else is remembered: whether the grant is
// still good is asked of the store each time.
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

// put remembers a token that has just been verified.
func (v *verified) put(key [sha256.Size]byte, payload []byte) {
	v.tokens.Put(key, payload, time.Time{})
}
