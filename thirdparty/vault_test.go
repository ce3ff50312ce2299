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
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
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
	Tokens: provider.Tokens{
		Access: "access-of-alice", Refresh: "refresh-of-alice", Type: "Bearer",
		Expires: time.UnixMilli(1_700_000_000_000).UTC(),
	},
	Profile: provider.Profile{Subject: "alice", Claims: map[string]any{"groups": []any{"staff"}, "id": 7.0}},
}

func TestVault(t *testing.T) {
	v := testVault(t, masterKey)
	row := storage.Upstream{ID: "ups_1", Connector: "corp", Subject: "alice", UserID: "usr_1"}
	at := func(u storage.Upstream, sealed []byte) storage.Upstream {
		u.Sealed = sealed
		return u
	}
	sealed, err := v.seal(row, sample)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("AS-223: what is sealed opens again, and shows nothing", func(t *testing.T) {
		got, err := v.open(at(row, sealed))
		if err != nil || got.Tokens.Access != sample.Tokens.Access || got.Tokens.Refresh != sample.Tokens.Refresh ||
			!got.Tokens.Expires.Equal(sample.Tokens.Expires) {
			t.Errorf("got %#v, %v", got.Tokens, err)
		}
		if !reflect.DeepEqual(got.Profile, sample.Profile) { // otherwise rules could decide differently than at sign-in
			t.Errorf("got claims %v", got.Profile.Claims)
		}
		if bytes.Contains(sealed, []byte("alice")) {
			t.Error("the name is readable")
		}
	})
	t.Run("AS-223: sealed twice it is two envelopes under two keys", func(t *testing.T) {
		again, _ := v.seal(row, sample)
		lock, content, _ := split(layout, sealed)
		otherLock, otherContent, _ := split(layout, again)
		if bytes.Equal(content, otherContent) || bytes.Equal(lock, otherLock) {
			t.Error("the envelopes are alike")
		}
		if _, err := v.open(at(row, envelope(lock, otherContent))); !errors.Is(err, secrets.ErrOpen) {
			t.Errorf("one key opens the other: %v", err)
		}
	})
	t.Run("AS-223: it is bound to its row, key and content each", func(t *testing.T) {
		second := row
		second.ID = "ups_2"
		other, _ := v.seal(second, sample)
		lock, content, _ := split(layout, sealed)
		otherLock, otherContent, _ := split(layout, other)
		for name, swapped := range map[string][]byte{
			"whole": other, "key": envelope(otherLock, content), "content": envelope(lock, otherContent),
		} {
			if _, err := v.open(at(row, swapped)); !errors.Is(err, secrets.ErrOpen) {
				t.Errorf("%s of another row: got %v, want %v", name, err, secrets.ErrOpen)
			}
		}
		// The content's binding also holds if the key is right.
		key, err := v.ring.Open(keyPurpose, lock, bound(row))
		if err != nil {
			t.Fatal(err)
		}
		moved := envelope(v.ring.Seal(keyPurpose, key, bound(second)), content)
		if _, err := v.open(at(second, moved)); !errors.Is(err, secrets.ErrOpen) {
			t.Errorf("content with its key moved to another row: got %v", err)
		}
	})
	t.Run("AS-223: nothing damaged opens", func(t *testing.T) {
		for i := range sealed {
			broken := bytes.Clone(sealed)
			broken[i] ^= 1
			if _, err := v.open(at(row, broken)); !errors.Is(err, secrets.ErrOpen) {
				t.Fatalf("byte %d changed: got %v", i, err)
			}
			if _, err := v.open(at(row, sealed[:i])); !errors.Is(err, secrets.ErrOpen) {
				t.Fatalf("cut to %d bytes: got %v", i, err)
			}
		}
	})
	t.Run("AS-223: another master key needs only the data key sealed again", func(t *testing.T) {
		newer := bytes.Repeat([]byte{9}, secrets.KeySize)
		both := testVault(t, newer, masterKey)
		out, changed, err := both.reseal(at(row, sealed))
		if err != nil || !changed {
			t.Fatalf("got %v, %v", changed, err)
		}
		_, before, _ := split(layout, sealed)
		_, after, _ := split(layout, out)
		if !bytes.Equal(before, after) {
			t.Error("the content was touched")
		}
		if _, err := testVault(t, newer).open(at(row, out)); err != nil {
			t.Errorf("the new key alone: %v", err)
		}
		if _, changed, err := both.reseal(at(row, out)); err != nil || changed {
			t.Errorf("resealing twice: got %v, %v", changed, err)
		}
		if _, _, err := testVault(t, newer).reseal(at(row, sealed)); !errors.Is(err, secrets.ErrOpen) {
			t.Errorf("without the old key: got %v", err)
		}
	})
}

func TestNothingPrintsTokens(t *testing.T) {
	var out bytes.Buffer
	sent := sentRequest{Nonce: "nonce-value", Verifier: "verifier-value"}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&out, format, sample)
		fmt.Fprintf(&out, format, sample.Tokens)
		fmt.Fprintf(&out, format, sent)
		fmt.Fprintf(&out, format, &sent)
	}
	for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		l := slog.New(h)
		l.Info("x", "held", sample, "tokens", sample.Tokens, "profile", sample.Profile, "trip", sent)
	}
	for _, secret := range []string{"access-of-alice", "refresh-of-alice", "nonce-value", "verifier-value"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("AS-223: %s was printed:\n%s", secret, out.String())
		}
	}
}

// FuzzOpen: opening an arbitrary row neither panics nor succeeds.
func FuzzOpen(f *testing.F) {
	ring, err := secrets.NewRing(masterKey)
	if err != nil {
		f.Fatal(err)
	}
	v := vault{ring}
	row := storage.Upstream{ID: "ups_1", Connector: "corp", Subject: "alice", UserID: "usr_1"}
	sealed, err := v.seal(row, sample)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add([]byte{layout, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		row.Sealed = b
		if _, err := v.open(row); err == nil && !bytes.Equal(b, sealed) {
			t.Errorf("%x opened", b)
		}
		if _, err := v.convert(row); err == nil {
			t.Errorf("%x was taken for an earlier version", b)
		}
	})
}
