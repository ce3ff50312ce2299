package ways

import (
	"encoding/hex"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// decoyKey is a public key on P-256 in COSE form (RFC 9053 §7.1.1): the generator of the curve. Any
// valid key would do.
const decoyKey = "a5010203262001215820" +
	"6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296" + "225820" +
	"4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"

// decoyOf returns a passkey for the user that an assertion names. An assertion of an unknown
// passkey is verified with it, which always fails.
func decoyOf(s state, parsed *protocol.ParsedCredentialAssertionData) Proven {
	key, err := hex.DecodeString(decoyKey)
	if err != nil {
		panic("ways: " + err.Error())
	}
	return Proven{
		User: storage.User{ID: string(parsed.Response.UserHandle)},
		Way: storage.Way{
			RPID: s.RPID, Data: stored(&webauthn.Credential{ID: parsed.RawID, PublicKey: key}),
		},
	}
}
