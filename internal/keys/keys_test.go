package keys

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

var master = bytes.Repeat([]byte{9}, 32)

func openStore(t testing.TB) *sqlite.Store {
	t.Helper()
	s := installation.Store(t)
	return s
}

func newManager(t testing.TB, c Config) *Manager {
	t.Helper()
	if c.Store == nil {
		c.Store = openStore(t)
	}
	if c.SecretKeys == nil {
		c.SecretKeys = [][]byte{master}
	}
	m, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

type claims struct {
	Subject string `json:"sub"`
}

func sign(t testing.TB, m *Manager) string {
	t.Helper()
	token, err := m.Sign(t.Context(), "at+jwt", claims{"alice"})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func header(t *testing.T, token string) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// published verifies a token as a resource server does, with the JWK Set alone.
func published(t *testing.T, m *Manager, token string) error {
	t.Helper()
	body, _, err := m.JWKS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(body, []byte(`"d"`)) {
		t.Fatal("the JWK Set holds a private key")
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(body, &set); err != nil {
		t.Fatal(err)
	}
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA, jose.RS256})
	if err != nil {
		return err
	}
	keys := set.Key(jws.Signatures[0].Header.KeyID)
	if len(keys) != 1 {
		return errors.New("unknown key")
	}
	_, err = jws.Verify(keys[0])
	return err
}

func TestSign(t *testing.T) {
	for _, alg := range []string{"ES256", "EdDSA", "RS256"} {
		t.Run("AS-32 AS-119 "+alg+" verifies by the published keys, and equal claims give equal tokens",
			func(t *testing.T) {
				m := newManager(t, Config{Algorithm: alg})
				token := sign(t, m)
				if err := published(t, m, token); err != nil {
					t.Error(err)
				}
				if again := sign(t, m); again != token {
					t.Error("two signatures of the same claims differ")
				}
				payload, err := m.Verify(t.Context(), token, "at+jwt")
				if err != nil || string(payload) != `{"sub":"alice"}` {
					t.Errorf("got %s, %v", payload, err)
				}
			})
	}
	t.Run("an unknown algorithm stops the start", func(t *testing.T) {
		if _, err := New(t.Context(),
			Config{Store: openStore(t), SecretKeys: [][]byte{master}, Algorithm: "HS256"}); err == nil {
			t.Error("got nil")
		}
	})
	t.Run("another master key stops the start and says why", func(t *testing.T) {
		store := openStore(t)
		newManager(t, Config{Store: store})
		_, err := New(t.Context(), Config{Store: store, SecretKeys: [][]byte{bytes.Repeat([]byte{8}, 32)}})
		if err == nil || !strings.Contains(err.Error(), "secret key") {
			t.Errorf("got %v", err)
		}
	})
}

func TestVerifyRefuses(t *testing.T) {
	m := newManager(t, Config{})
	token := sign(t, m)
	header, rest, _ := strings.Cut(token, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	enc := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	kid := strings.Split(func() string { b, _ := base64.RawURLEncoding.DecodeString(header); return string(b) }(),
		`"`)[7]
	for name, forged := range map[string]string{
		"RS-42 alg none": enc(`{"alg":"none","typ":"at+jwt","kid":"`+kid+`"}`) + "." + payload + ".",
		"RS-42 HMAC with the JWKS": enc(`{"alg":"HS256","typ":"at+jwt","kid":"`+kid+`"}`) + "." + payload + "." +
			signature,
		"RS-42 another algorithm": enc(`{"alg":"RS256","typ":"at+jwt","kid":"`+kid+`"}`) + "." + payload + "." +
			signature,
		"RS-42 another type": enc(`{"alg":"ES256","kid":"`+kid+`","typ":"JWT"}`) + "." + payload + "." +
			signature,
		"RS-42 an unknown key": enc(`{"alg":"ES256","kid":"nobody","typ":"at+jwt"}`) + "." + payload + "." +
			signature,
		"RS-42 an altered payload": header + "." + enc(`{"sub":"mallory"}`) + "." + signature,
		"RS-42 a cut signature":    header + "." + payload + "." + signature[:10],
		"RS-42 a stranger's token": sign(t, newManager(t, Config{})),
		"RS-42 nothing":            "",
		"RS-42 an endless token":   strings.Repeat("a.", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := m.Verify(t.Context(), forged, "at+jwt"); !errors.Is(err, ErrVerify) {
				t.Errorf("got %v, want ErrVerify", err)
			}
		})
	}
}

// hanging is a store that stops answering.
type hanging struct {
	*sqlite.Store
	hangs atomic.Bool
	asked atomic.Int64 // while it hangs
}

func (h *hanging) Keys(ctx context.Context, now time.Time) ([]storage.SigningKey, error) {
	if h.hangs.Load() {
		h.asked.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Store.Keys(ctx, now)
}

// One caller waits briefly for a store that hangs, and the others share its result. (On a busy
// machine, a caller that runs seconds later may ask again.)
func TestAStoreThatHangsHoldsNobodyUp(t *testing.T) {
	store, later := &hanging{Store: openStore(t)}, time.Duration(0)
	m := newManager(t, Config{Store: store, Now: func() time.Time { return time.Now().Add(later) }})
	store.hangs.Store(true)
	later = time.Minute
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, _, err := m.JWKS(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := store.asked.Load(); got < 1 || got > 5 {
		t.Errorf("20 callers asked %d times, want once", got)
	}
}

func BenchmarkSign(b *testing.B) {
	for _, alg := range []string{"ES256", "EdDSA", "RS256"} {
		b.Run(alg, func(b *testing.B) {
			m := newManager(b, Config{Algorithm: alg})
			b.ReportAllocs()
			for b.Loop() {
				sign(b, m)
			}
		})
	}
}

// TestVerifiedOnAnotherReplica: a replica clears its cache when it notices that the keys have
// changed.
func TestVerifiedOnAnotherReplica(t *testing.T) {
	c, store := installation.NewClock(), openStore(t)
	first := newManager(t, Config{Store: store, Now: c.Now})
	second := newManager(t, Config{Store: store, Now: c.Now})
	token := sign(t, first)
	if _, err := second.Verify(t.Context(), token, "at+jwt"); err != nil {
		t.Fatal(err)
	}
	if err := first.Revoke(t.Context(), first.current.signer.id); err != nil {
		t.Fatal(err)
	}
	c.Advance(cacheTTL)
	if _, err := second.Verify(t.Context(), token, "at+jwt"); !errors.Is(err, ErrVerify) {
		t.Errorf("the key was withdrawn elsewhere: got %v", err)
	}
}

// TestVerifiedIsRemembered: a verified token is valid as long as its key is published, and only for
// its type.
func TestVerifiedIsRemembered(t *testing.T) {
	m := newManager(t, Config{})
	token := sign(t, m)
	for range 2 {
		if _, err := m.Verify(t.Context(), token, "at+jwt"); err != nil {
			t.Fatal(err)
		}
	}
	if n := m.current.verified.tokens.Len(); n != 1 {
		t.Errorf("%d tokens are remembered", n)
	}
	if _, err := m.Verify(t.Context(), token, "statuslist+jwt"); !errors.Is(err, ErrVerify) {
		t.Errorf("RS-42 another type: got %v", err)
	}
	if _, err := m.Verify(t.Context(), token+"A", "at+jwt"); !errors.Is(err, ErrVerify) {
		t.Errorf("RS-42 another signature: got %v", err)
	}
	if err := m.Revoke(t.Context(), m.current.signer.id); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Verify(t.Context(), token, "at+jwt"); !errors.Is(err, ErrVerify) {
		t.Errorf("the key was withdrawn: got %v", err)
	}
	v := newVerified(time.Now)
	for i := range 2 * maxVerified {
		v.put(verifiedKey(strings.Repeat("x", i), ""), nil)
	}
	if v.tokens.Len() > maxVerified {
		t.Errorf("%d tokens are remembered", v.tokens.Len())
	}
}
