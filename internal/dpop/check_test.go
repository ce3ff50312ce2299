package dpop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// TestOwnTimesOfProof checks that a proof is not accepted after its own exp or before its own nbf
// (RFC 7519 4.1.4, 4.1.5).
func TestOwnTimesOfProof(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key},
		(&jose.SignerOptions{EmbedJWK: true}).WithType(Type))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		claim string
		after time.Duration
		want  error
	}{
		{"an exp to come", "exp", time.Minute, nil},
		{"an exp just past", "exp", -10 * time.Second, nil},
		{"a passed exp", "exp", -10 * time.Minute, Error("the proof has expired by its exp")},
		{"an exp of zero", "exp", -time.Duration(now.UnixNano()), Error("the proof has expired by its exp")},
		{"a passed nbf", "nbf", -time.Minute, nil},
		{"an nbf to come", "nbf", 10 * time.Minute, Error("the proof is not good yet by its nbf")},
	} {
		t.Run("AS-211 "+tt.name, func(t *testing.T) {
			claims, err1 := json.Marshal(map[string]any{
				"jti": "1", "htm": "POST", "htu": target, "iat": now.Unix(), tt.claim: now.Add(tt.after).Unix(),
			})
			signed, err2 := signer.Sign(claims)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			proof, err := signed.CompactSerialize()
			if err != nil {
				t.Fatal(err)
			}
			_, err = Check([]string{proof}, Request{Method: "POST", IsTarget: isTarget, Now: now})
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}
