package storage

import (
	"encoding/hex"
	"testing"
)

// TestMaterialStays: consents are stored under the digest of a client's material. So the same
// client must have the same digest in every version of this program, regardless of the order of its
// lists.
func TestMaterialStays(t *testing.T) {
	c := Client{
		ID: "id", Name: "name", AuthMethod: "none", JWKSURI: "https://j", JWKS: []byte(`{}`),
		Metadata:     []byte(`{"a":1}`),
		RedirectURIs: []string{"https://b", "https://a"}, GrantTypes: []string{"refresh_token", "authorization_code"},
	}
	const want = "54b579387ccb80029e93a3e31850a17daed21de961e7c57c959efc16070fe2ea"
	if m := c.Material(); hex.EncodeToString(m[:]) != want {
		t.Errorf("got %x, want %s", m, want)
	}
	if c.RedirectURIs[0] != "https://b" {
		t.Error("the client was changed")
	}
}
