package keys

import (
	"crypto/sha256"
	"sync"
)

// maxVerified bounds the tokens that are remembered as verified, at about a kilobyte
// each.
const maxVerified = 4096

// verified remembers which tokens the present keys have signed: a resource server that
// introspects asks about the same few tokens all the time, and a signature costs more
// than everything else in the answer. Nothing else is remembered: whether the grant is
// still good is asked of the store each time.
type verified struct {
	mu     sync.Mutex // guards tokens
	tokens map[[sha256.Size]byte][]byte
}

func newVerified() *verified { return &verified{tokens: map[[sha256.Size]byte][]byte{}} }

func verifiedKey(token, typ string) [sha256.Size]byte {
	return sha256.Sum256([]byte(typ + " " + token)) // neither has a space
}

func (v *verified) get(key [sha256.Size]byte) ([]byte, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	payload, ok := v.tokens[key]
	return payload, ok
}

// put remembers a token that has just been verified. A full memory forgets arbitrary
// ones: only who holds tokens of this server can fill it.
func (v *verified) put(key [sha256.Size]byte, payload []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for other := range v.tokens {
		if len(v.tokens) < maxVerified {
			break
		}
		delete(v.tokens, other)
	}
	v.tokens[key] = payload
}
