package jwks

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

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeissuer"
)

var parser = Parser{MaxBytes: 64 << 10, MaxKeys: 20}

// Security PL5, RFC 7517 4.2, RFC 7518 3.3: which keys of others verify signatures.
func TestKeysThatVerify(t *testing.T) {
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
			keys, err := parser.Parse(body)
			if err != nil || len(keys) < 1 || (len(keys) == 2) != tt.good {
				t.Errorf("%d keys, %v; want it taken: %v", len(keys), err, tt.good)
			}
		})
	}
	for _, bad := range []string{"", "[]", "{}", `{"keys":null}`, `{"keys":"x"}`} {
		_, err := parser.Parse([]byte(bad))
		if err == nil {
			t.Errorf("%s is read as a key set", bad)
		}
	}
	if keys, err := parser.Parse([]byte(`{"keys":[1,{"kty":"new"},{}]}`)); err != nil || len(keys) != 0 {
		t.Errorf("unknown kinds: %d keys, %v", len(keys), err)
	}
}

// TestOddKeys: RU-10 RFC 7517 5: a key that is not understood leaves the others readable.
func TestOddKeys(t *testing.T) {
	good, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	one, err := json.Marshal(jose.JSONWebKey{Key: good.Public(), KeyID: "good"})
	if err != nil {
		t.Fatal(err)
	}
	for name, odd := range fakeissuer.OddKeys() {
		t.Run("RU-10 "+name, func(t *testing.T) {
			for _, list := range []string{odd + "," + string(one), string(one) + "," + odd} {
				keys, err := parser.Parse([]byte(`{"keys":[` + list + `]}`))
				if err != nil || len(keys) != 1 || keys[0].KeyID != "good" {
					t.Errorf("got %+v, %v", keys, err)
				}
			}
		})
	}
}

// TestKeySetBounds: AS-130, AS-205: a set is bounded, and one that publishes a secret can be refused.
func TestKeySetBounds(t *testing.T) {
	strict := parser
	strict.RefuseSecrets, strict.Uses = true, []string{"jwt-svid"}
	for _, tt := range []struct{ raw, want string }{
		{`{"keys":[],"x":"` + strings.Repeat("x", parser.MaxBytes) + `"}`, "larger than"},
		{`{"keys":[` + strings.Repeat("{},", parser.MaxKeys) + `{}]}`, "more than 20 keys"},
		{`{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`, "a private or a symmetric key"},
		{`{"keys":[{"kty":"new","d":"AAAA"}]}`, "a private or a symmetric key"},
		{`{"keys":[1]}`, "one that is no object"},
	} {
		if _, err := strict.Parse([]byte(tt.raw)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40s: got %v, want %q", tt.raw, err, tt.want)
		}
	}
	svid := `{"keys":[{"kty":"OKP","crv":"Ed25519","use":"jwt-svid","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`
	if keys, err := strict.Parse([]byte(svid)); err != nil || len(keys) != 1 {
		t.Errorf("got %d keys, %v; want one of another use", len(keys), err)
	}
	if keys, err := parser.Parse([]byte(svid)); err != nil || len(keys) != 0 {
		t.Errorf("got %d keys, %v; want none without that use", len(keys), err)
	}
}

// FuzzKeySet: whatever a server publishes, no key is taken that may not verify.
func FuzzKeySet(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"RSA","use":"enc","n":"AQAB","e":"AQAB"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AAAA"}],"Keys":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		keys, _ := parser.Parse(body)
		for _, k := range keys {
			if r, ok := k.Key.(*rsa.PublicKey); ok && r.N.BitLen() < minRSA || !k.IsPublic() || k.Use == "enc" {
				t.Errorf("taken: %+v", k)
			}
		}
	})
}
