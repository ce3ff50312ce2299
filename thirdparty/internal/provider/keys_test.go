package provider

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

// Security PL5, RFC 7517 4.2, RFC 7518 3.3: which keys of a provider verify signatures.
func TestKeysOfAProvider(t *testing.T) {
	// a modulus need not be one to be counted
	ofBits := func(bits uint) *rsa.PublicKey {
		n := new(big.Int).Lsh(big.NewInt(1), bits-1)
		return &rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 65537}
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		key  jose.JSONWebKey
		good bool
	}{
		"EC":                           {jose.JSONWebKey{Key: private.Public(), Use: "sig"}, true},
		"EC without use":               {jose.JSONWebKey{Key: private.Public()}, true},
		"EC for encryption":            {jose.JSONWebKey{Key: private.Public(), Use: "enc"}, false},
		"EC for something else":        {jose.JSONWebKey{Key: private.Public(), Use: "Sig"}, false},
		"RSA of 2048 bits":             {jose.JSONWebKey{Key: ofBits(2048), Use: "sig"}, true},
		"RSA of 2048 bits, encryption": {jose.JSONWebKey{Key: ofBits(2048), Use: "enc"}, false},
		"RSA of 2047 bits":             {jose.JSONWebKey{Key: ofBits(2047), Use: "sig"}, false},
		"RSA of 1024 bits":             {jose.JSONWebKey{Key: ofBits(1024), Use: "sig"}, false},
		"RSA longer than any in use":   {jose.JSONWebKey{Key: ofBits(maxRSA + 1), Use: "sig"}, false},
		"symmetric":                    {jose.JSONWebKey{Key: []byte("0123456789abcdef0123456789abcdef")}, false},
		"private":                      {jose.JSONWebKey{Key: private}, false},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(jose.JSONWebKeySet{
				Keys: []jose.JSONWebKey{tt.key, {Key: private.Public(), KeyID: "another"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			keys, err := parseKeySet(body)
			if err != nil || len(keys) < 1 || (len(keys) == 2) != tt.good {
				t.Errorf("%d keys, %v; want it taken: %v", len(keys), err, tt.good)
			}
		})
	}
	for _, bad := range []string{"", "[]", "{}", `{"keys":null}`, `{"keys":"x"}`} {
		_, err := parseKeySet([]byte(bad))
		wantError(t, err, ErrGarbage)
	}
	if keys, err := parseKeySet([]byte(`{"keys":[1,{"kty":"new"},{}]}`)); err != nil || len(keys) != 0 {
		t.Errorf("unknown kinds: %d keys, %v", len(keys), err)
	}
}

// Security PL1, RFC 7519 4: names of claims are compared exactly.
func TestNamesOfClaims(t *testing.T) {
	for _, name := range []string{"iss", "aud", "exp", "nonce", "sub"} {
		for _, other := range []string{strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:]} {
			t.Run(other+" alone is not "+name, func(t *testing.T) {
				u := fakeidp.Start(t)
				u.Behave(func(b *fakeidp.Behaviour) {
					b.EditIDToken = func(_, c map[string]any) { c[other] = c[name]; delete(c, name) }
				})
				_, _, err := travel(t, connect(t, toFake(u)), u, nil)
				wantError(t, err, ErrGarbage)
			})
		}
	}
	t.Run("an audience beside another one of almost the same name", func(t *testing.T) {
		u := fakeidp.Start(t)
		u.Behave(func(b *fakeidp.Behaviour) {
			b.EditIDToken = func(_, c map[string]any) { c["Aud"], c["aud"] = c["aud"], "another-client" }
		})
		_, _, err := travel(t, connect(t, toFake(u)), u, nil)
		wantError(t, err, ErrGarbage)
	})
}

// FuzzKeySet: whatever a provider publishes, no key is taken that may not verify.
func FuzzKeySet(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"RSA","use":"enc","n":"AQAB","e":"AQAB"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AAAA"}],"Keys":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		keys, _ := parseKeySet(body)
		for _, k := range keys {
			if r, ok := k.Key.(*rsa.PublicKey); ok && r.N.BitLen() < minRSA || !k.IsPublic() || k.Use == "enc" {
				t.Errorf("taken: %+v", k)
			}
		}
	})
}
