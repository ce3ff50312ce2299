package dcr

import (
	"reflect"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// golden is the sealed form of version 1. Client IDs stay in use for years, so a change that cannot
// read it must add a new version beside the old one.
const golden = "\x01\x02\x03\x80\xf2\xa8\xd3\x06\x03Ann\x05a b c\x1d{\"application_type\":\"native\"}\x02\x12http://127.0.0.1/x\ncursor://a"

func TestSealedForm(t *testing.T) {
	want := storage.Client{
		Name: "Ann", RedirectURIs: []string{"http://127.0.0.1/x", "cursor://a"},
		GrantTypes: []string{"authorization_code", "refresh_token"},
		AuthMethod: "client_secret_basic", Scopes: oauth.Scopes{"a", "b", "c"}, Source: storage.SourceDynamic,
		Metadata: []byte(`{"application_type":"native"}`), CreatedAt: time.Unix(1785346304, 0).UTC(),
	}
	if form := string(encodeClient(want)); form != golden {
		t.Errorf("got form %q\nwant %q", form, golden)
	}
	got, err := decodeClient([]byte(golden))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	for n := range len(golden) {
		if c, err := decodeClient([]byte(golden[:n])); err == nil {
			t.Errorf("cut to %d bytes: got %+v", n, c)
		}
	}
	if c, err := decodeClient([]byte(golden + "x")); err == nil {
		t.Errorf("with a byte more: got %+v", c)
	}
}

func FuzzSealedForm(f *testing.F) {
	f.Add([]byte(golden))
	f.Add([]byte{1, 0, 1, 0, 0, 0, 0, 0})
	f.Add([]byte{1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeClient(b)
		if err != nil {
			return
		}
		again, err := decodeClient(encodeClient(c))
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("got %+v, %v\nwant %+v", again, err, c)
		}
	})
}
