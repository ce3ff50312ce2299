package grant

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

func FuzzRefreshToken(f *testing.F) {
	key := make([]byte, 32)
	good := RefreshToken{
		GrantID: "grt_" + strings.Repeat("A", 27), Generation: 7, IssuedAt: time.UnixMilli(1.7e12).UTC(),
		Secret: [secretSize]byte{1},
	}
	bound := good
	bound.Key = strings.Repeat("B", 42) + "A"
	for _, s := range []string{
		"", RefreshPrefix, good.Compose(key), good.Compose(key) + "=", secrets.Token(RefreshPrefix), bound.Compose(key),
	} {
		f.Add(s)
	}
	for _, want := range []RefreshToken{good, bound} {
		if back, signed, mac, ok := DecodeRefresh(want.Compose(key)); !ok || back != want ||
			string(mac) != string(refreshMAC(key, signed)) {
			f.Errorf("got %+v, want %+v", back, want)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, signed, mac, ok := DecodeRefresh(text)
		if !ok {
			return
		}
		// A token has one spelling: with a valid mac it equals the composed one.
		if string(mac) == string(refreshMAC(key, signed)) && token.Compose(key) != text {
			t.Errorf("%q is another spelling of %+v", text, token)
		}
	})
}
