package dpop

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const target = "https://auth.example.com/token"

func isTarget(uri string) bool { return uri == target }

func keysOf(t testing.TB) map[string]crypto.Signer {
	t.Helper()
	p256, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, err2 := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	_, ed, err3 := ed25519.GenerateKey(rand.Reader)
	rs, err4 := rsa.GenerateKey(rand.Reader, 2048)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"ES256": p256, "ES384": p384, "EdDSA": ed, "RS256": rs}
}

func TestSigner(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for alg, key := range keysOf(t) {
		t.Run("RS-205 a proof by "+alg, func(t *testing.T) {
			s, err := NewSigner(key)
			if err != nil {
				t.Fatal(err)
			}
			c := Claims{Method: "POST", URL: target + "?a=b#c", Token: "token", Nonce: "n", Now: now}
			one, err1 := s.Proof(c)
			two, err2 := s.Proof(c)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			r := Request{Method: "POST", IsTarget: isTarget, Token: "token", Key: s.Thumbprint(), Now: now}
			first, err1 := Check([]string{one}, r)
			second, err2 := Check([]string{two}, r)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			if first.ID == second.ID || first.Digest() == second.Digest() || first.Thumbprint() != s.Thumbprint() {
				t.Errorf("got %+v and %+v", first, second)
			}
			if !IsThumbprint(s.Thumbprint()) || first.Nonce != "n" || !first.Until().Equal(now.Add(Window)) {
				t.Errorf("got %+v", first)
			}
		})
	}
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewSigner(p521); err == nil {
		t.Error("a key that no server takes was taken")
	}
}

func TestNonces(t *testing.T) {
	n, other := NewNonces(make([]byte, 32), "one"), NewNonces(make([]byte, 32), "other")
	now := time.Unix(1_800_000_000, 0)
	nonce := n.At(now)
	for after, want := range map[time.Duration]bool{
		-NonceTime: true, 0: true, NonceTime: true, 2 * NonceTime: false, -2 * NonceTime: false,
	} {
		if got := n.Knows(nonce, now.Add(after)); got != want {
			t.Errorf("RS-208 after %s: got %v", after, got)
		}
	}
	if other.Knows(nonce, now) || n.Knows("", now) {
		t.Error("RS-208: a nonce of another purpose, or none")
	}
}

func TestThumbprintForm(t *testing.T) {
	good := strings.Repeat("A", 43)
	for text, want := range map[string]bool{
		good: true, "": false, good[1:]: false, good + "A": false, good[1:] + "=": false, good[1:] + "B": false,
	} {
		if got := IsThumbprint(text); got != want {
			t.Errorf("RS-205 %q: got %v", text, got)
		}
	}
}

func TestReplays(t *testing.T) {
	now := time.Now()
	m := newMemory(10, func() time.Time { return now })
	use := func(id string) bool {
		first, _ := m.Use(t.Context(), id, now.Add(time.Minute))
		return first
	}
	if !use("a") || use("a") {
		t.Error("RS-209: not once")
	}
	for i := range 4 {
		use(fmt.Sprint(i))
	}
	if use("a") {
		t.Error("RS-209: forgotten among the last five")
	}
	for i := range 1000 {
		use(fmt.Sprint("flood", i))
	}
	if n := m.used.Len(); n > 10 {
		t.Errorf("RS-51: %d are kept", n)
	}
	now = now.Add(time.Hour)
	use("b")
	now = now.Add(time.Hour)
	use("c")
	use("d")
	if n := m.used.Len(); n > 4 {
		t.Errorf("RS-51: %d out of time are kept", n)
	}
}

// FuzzProof checks that a parsed proof has a usable key and the signed contents.
func FuzzProof(f *testing.F) {
	for _, key := range keysOf(f) {
		s, err := NewSigner(key)
		if err != nil {
			f.Fatal(err)
		}
		text, err := s.Proof(Claims{Method: "POST", URL: target, Now: time.Unix(1_800_000_000, 0)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add("e30.e30.e30")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		if !IsThumbprint(p.thumbprint) || p.ID == "" || p.issued.IsZero() || len(p.Digest()) != 32 {
			t.Errorf("got %+v", p)
		}
		_ = p.Verify()
	})
}

// TestProofKeys checks that the cost of a key is limited before any computation with it, because
// the key comes with the request.
func TestProofKeys(t *testing.T) {
	for bits, want := range map[int]bool{1024: false, 2047: false, 2048: true, 4096: true, 4097: false, 8192: false} {
		n := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
		if got := isProofKey(&jose.JSONWebKey{Key: &rsa.PublicKey{N: n, E: 65537}}, "RS256"); got != want {
			t.Errorf("RS-205: %d bits: got %v", bits, got)
		}
	}
	if isProofKey(&jose.JSONWebKey{Key: keysOf(t)["RS256"]}, "RS256") ||
		isProofKey(&jose.JSONWebKey{Key: []byte("secret")}, "HS256") {
		t.Error("RS-205: a key that is not public")
	}
}
