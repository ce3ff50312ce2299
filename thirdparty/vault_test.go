package thirdparty

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

func testVault(t *testing.T, keys ...[]byte) vault {
	t.Helper()
	ring, err := secrets.NewRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return vault{ring}
}

var sample = holding{
	Tokens:  tokens{Access: "access-of-alice", Refresh: "refresh-of-alice", Type: "Bearer", Expires: time.UnixMilli(1_700_000_000_000).UTC()},
	Profile: profile{Subject: "alice", Claims: map[string]any{"groups": []any{"staff"}, "id": 7.0}},
}

func TestVault(t *testing.T) {
	v := testVault(t, masterKey)
	sealed, err := v.seal("ups_1", sample)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("AS-223: what is sealed opens again, and shows nothing", func(t *testing.T) {
		got, err := v.open("ups_1", sealed)
		if err != nil || got.Tokens.Access != sample.Tokens.Access || got.Tokens.Refresh != sample.Tokens.Refresh || !got.Tokens.Expires.Equal(sample.Tokens.Expires) {
			t.Errorf("got %#v, %v", got.Tokens, err)
		}
		if !reflect.DeepEqual(got.Profile, sample.Profile) { // or rules would judge otherwise than at sign-in
			t.Errorf("got claims %v", got.Profile.Claims)
		}
		if bytes.Contains(sealed, []byte("alice")) {
			t.Error("the name is readable")
		}
	})
	t.Run("AS-223: sealed twice it is two envelopes under two keys", func(t *testing.T) {
		again, _ := v.seal("ups_1", sample)
		lock, content, _ := split(sealed)
		otherLock, otherContent, _ := split(again)
		if bytes.Equal(content, otherContent) || bytes.Equal(lock, otherLock) {
			t.Error("the envelopes are alike")
		}
		if _, err := v.open("ups_1", envelope(lock, otherContent)); !errors.Is(err, secrets.ErrOpen) {
			t.Errorf("one key opens the other: %v", err)
		}
	})
	t.Run("AS-223: it is bound to its row, key and content each", func(t *testing.T) {
		other, _ := v.seal("ups_2", sample)
		lock, content, _ := split(sealed)
		otherLock, otherContent, _ := split(other)
		for name, swapped := range map[string][]byte{
			"whole": other, "key": envelope(otherLock, content), "content": envelope(lock, otherContent),
		} {
			if _, err := v.open("ups_1", swapped); !errors.Is(err, secrets.ErrOpen) {
				t.Errorf("%s of another row: got %v, want %v", name, err, secrets.ErrOpen)
			}
		}
		// The binding of the content holds also where the key is right.
		key, err := v.ring.Open(keyPurpose, lock, []byte("ups_1"))
		if err != nil {
			t.Fatal(err)
		}
		moved := envelope(v.ring.Seal(keyPurpose, key, []byte("ups_2")), content)
		if _, err := v.open("ups_2", moved); !errors.Is(err, secrets.ErrOpen) {
			t.Errorf("content with its key moved to another row: got %v", err)
		}
	})
	t.Run("AS-223: nothing damaged opens", func(t *testing.T) {
		for i := range sealed {
			broken := bytes.Clone(sealed)
			broken[i] ^= 1
			if _, err := v.open("ups_1", broken); !errors.Is(err, secrets.ErrOpen) {
				t.Fatalf("byte %d changed: got %v", i, err)
			}
			if _, err := v.open("ups_1", sealed[:i]); !errors.Is(err, secrets.ErrOpen) {
				t.Fatalf("cut to %d bytes: got %v", i, err)
			}
		}
	})
	t.Run("AS-223: another master key needs only the data key sealed anew", func(t *testing.T) {
		newer := bytes.Repeat([]byte{9}, secrets.KeySize)
		both := testVault(t, newer, masterKey)
		out, changed, err := both.reseal("ups_1", sealed)
		if err != nil || !changed {
			t.Fatalf("got %v, %v", changed, err)
		}
		_, before, _ := split(sealed)
		_, after, _ := split(out)
		if !bytes.Equal(before, after) {
			t.Error("the content was touched")
		}
		if _, err := testVault(t, newer).open("ups_1", out); err != nil {
			t.Errorf("the new key alone: %v", err)
		}
		if _, changed, err := both.reseal("ups_1", out); err != nil || changed {
			t.Errorf("resealing twice: got %v, %v", changed, err)
		}
		if _, _, err := testVault(t, newer).reseal("ups_1", sealed); !errors.Is(err, secrets.ErrOpen) {
			t.Errorf("without the old key: got %v", err)
		}
	})
}

func TestNothingPrintsTokens(t *testing.T) {
	var out bytes.Buffer
	away := trip{Nonce: "nonce-value", Verifier: "verifier-value"}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&out, format, sample)
		fmt.Fprintf(&out, format, sample.Tokens)
		fmt.Fprintf(&out, format, away)
		fmt.Fprintf(&out, format, &away)
	}
	for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		l := slog.New(h)
		l.Info("x", "held", sample, "tokens", sample.Tokens, "profile", sample.Profile, "trip", away)
	}
	for _, secret := range []string{"access-of-alice", "refresh-of-alice", "nonce-value", "verifier-value"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("AS-223: %s was printed:\n%s", secret, out.String())
		}
	}
}

// FuzzOpen: whatever lies in a row, opening it neither panics nor succeeds.
func FuzzOpen(f *testing.F) {
	ring, err := secrets.NewRing(masterKey)
	if err != nil {
		f.Fatal(err)
	}
	v := vault{ring}
	sealed, err := v.seal("ups_1", sample)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add([]byte{layout, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := v.open("ups_1", b); err == nil && !bytes.Equal(b, sealed) {
			t.Errorf("%x opened", b)
		}
	})
}
