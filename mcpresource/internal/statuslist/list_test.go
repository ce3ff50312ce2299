package statuslist

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

const (
	authServer = "https://auth.example.com"
	listURI    = authServer + "/status/0"
)

// pack returns the lst member of a status list.
func pack(b []byte) string {
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	z.Write(b)
	z.Close()
	return base64.RawURLEncoding.EncodeToString(out.Bytes())
}

// listClaims returns the claims of a valid list, with changes in pairs; nil removes a claim.
func listClaims(now time.Time, change ...any) map[string]any {
	c := map[string]any{
		"sub": listURI, "iss": authServer, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "ttl": 15,
		"status_list": map[string]any{"bits": 1, "lst": pack([]byte{0xb9, 0xa3})},
	}
	for i := 0; i+1 < len(change); i += 2 {
		if change[i+1] == nil {
			delete(c, change[i].(string))
			continue
		}
		c[change[i].(string)] = change[i+1]
	}
	return c
}

func encode(claims map[string]any) []byte {
	b, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return b
}

func TestStatusList(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	read := func(payload []byte) (*list, error) {
		return readClaims(payload, authServer, listURI, now, 30*time.Second)
	}
	// The vectors of OAuth Token Status List §4.1 and §4.2.
	for _, tt := range []struct {
		bits int
		lst  string
		want []int // 1: not valid
	}{
		{1, "eNrbuRgAAhcBXQ", []int{1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1}},
		{2, "eNo76fITAAPfAgc", []int{1, 1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1}}, // 1 2 0 3 0 1 0 1 1 2 3 3
		{4, pack([]byte{0x10, 0x0f}), []int{0, 1, 1, 0}},
		{8, pack([]byte{0, 1, 255}), []int{0, 1, 1}},
	} {
		t.Run(fmt.Sprintf("RS-44 Status List 4.1: %d bits, the lowest first, and any value but 0 is not valid",
			tt.bits), func(t *testing.T) {
			l, err := read(encode(listClaims(now, "status_list", map[string]any{"bits": tt.bits, "lst": tt.lst})))
			if err != nil {
				t.Fatal(err)
			}
			if l.count != uint64(len(tt.want)) {
				t.Fatalf("got %d tokens, want %d", l.count, len(tt.want))
			}
			for i, want := range tt.want {
				if l.valid(uint64(i)) != (want == 0) {
					t.Errorf("index %d: got valid %v", i, l.valid(uint64(i)))
				}
			}
		})
	}
	for name, payload := range map[string][]byte{
		"without exp, iss and ttl": encode(listClaims(now, "exp", nil, "iss", nil, "ttl", nil)),
		"issued a moment ahead":    encode(listClaims(now, "iat", now.Add(20*time.Second).Unix())),
		"of no token": encode(
			listClaims(now, "status_list", map[string]any{"bits": 1, "lst": pack(nil)}),
		),
		"as large as may be": encode(
			listClaims(now, "status_list", map[string]any{"bits": 1, "lst": pack(make([]byte, maxUnpacked))}),
		),
		"with claims nobody knows":   encode(listClaims(now, "aggregation_uri", "x")),
		"with fractions of a second": encode(listClaims(now, "iat", float64(now.Unix())+.25)),
		"with a claim of another in it": encode(
			listClaims(now, "status_list", map[string]any{"bits": 1, "lst": pack([]byte{0}), "aggregation_uri": "x"}),
		),
		"that expires in the next second ": encode(listClaims(now, "exp", now.Add(time.Second).Unix())),
	} {
		t.Run("RS-44 a list "+name, func(t *testing.T) {
			if _, err := read(payload); err != nil {
				t.Error(err)
			}
		})
	}
	list := func(bits any, lst any) []byte {
		return encode(listClaims(now, "status_list", map[string]any{"bits": bits, "lst": lst}))
	}
	good := pack([]byte{0xb9, 0xa3})
	raw, _ := base64.RawURLEncoding.DecodeString(good)
	for name, payload := range map[string][]byte{
		"that is not JSON":               []byte("{"),
		"that is no object":              []byte("[]"),
		"that says nothing":              []byte("{}"),
		"of another place":               encode(listClaims(now, "sub", listURI+"/")),
		"of another place in other case": encode(listClaims(now, "sub", strings.ToUpper(listURI))),
		"of no place":                    encode(listClaims(now, "sub", nil)),
		"by somebody else":               encode(listClaims(now, "iss", "https://evil.example.com")),
		"by nobody":                      encode(listClaims(now, "iss", "")),
		"without iat":                    encode(listClaims(now, "iat", nil)),
		"of the future":                  encode(listClaims(now, "iat", now.Add(time.Minute).Unix())),
		"with iat as text":               encode(listClaims(now, "iat", "yesterday")),
		"that has expired":               encode(listClaims(now, "exp", now.Unix())),
		"that expired before 1970":       encode(listClaims(now, "exp", -1)),
		"with exp beyond all time":       encode(listClaims(now, "exp", 1e300)),
		"without a list":                 encode(listClaims(now, "status_list", nil)),
		"with null for a list": bytes.Replace(list(1, good), []byte(`"status_list":{`),
			[]byte(`"status_list":null,"x":{`), 1),
		"with a list of another type": encode(listClaims(now, "status_list", "eNrb")),
		"without bits":                encode(listClaims(now, "status_list", map[string]any{"lst": good})),
		"of 0 bits":                   list(0, good),
		"of 3 bits":                   list(3, good),
		"of 16 bits":                  list(16, good),
		"of -1 bits":                  list(-1, good),
		"of bits as text":             list("1", good),
		"without lst":                 encode(listClaims(now, "status_list", map[string]any{"bits": 1})),
		"with lst as a number":        list(1, 7),
		"with padding":                list(1, base64.URLEncoding.EncodeToString(raw)),
		"in another base64":           list(1, "eN+/"),
		"that is not compressed":      list(1, base64.RawURLEncoding.EncodeToString([]byte{0xb9, 0xa3})),
		"that is cut off":             list(1, base64.RawURLEncoding.EncodeToString(raw[:len(raw)-1])),
		"with a wrong checksum": list(1,
			base64.RawURLEncoding.EncodeToString(append(bytes.Clone(raw[:len(raw)-1]), raw[len(raw)-1]^1))),
		"with more after it":       list(1, base64.RawURLEncoding.EncodeToString(append(bytes.Clone(raw), 0))),
		"that unpacks to too much": list(1, pack(make([]byte, maxUnpacked+1))),
		"that is a bomb":           list(1, pack(make([]byte, 64<<20))),
	} {
		t.Run("RS-44 a list "+name+" is refused", func(t *testing.T) {
			if l, err := read(payload); err == nil {
				t.Errorf("got %+v", l)
			}
		})
	}
	for n, want := range map[json.Number]time.Duration{
		"": 7 * time.Second, "15": 15 * time.Second, "0.01": time.Second, "0": time.Second, "-5": time.Second,
		"1.5":  1500 * time.Millisecond,
		"3600": time.Hour, "86400": time.Hour, "1e300": time.Hour, "1e999": time.Hour, "-1e999": time.Second,
	} {
		t.Run("RS-44 ttl "+n.String(), func(t *testing.T) {
			if got := ttlOf(n); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func FuzzStatusList(f *testing.F) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	f.Add(encode(listClaims(now)))
	f.Add(encode(
		listClaims(now, "exp", nil, "ttl", 1e300, "status_list",
			map[string]any{"bits": 8, "lst": pack([]byte{1, 2, 3})}),
	))
	f.Add(encode(listClaims(now, "status_list", map[string]any{"bits": 4, "lst": "eNrbuRgAAhcBXQ"})))
	f.Fuzz(func(t *testing.T, payload []byte) {
		l, err := readClaims(payload, authServer, listURI, now, 0)
		if err != nil {
			return
		}
		if len(l.bytes) > maxUnpacked || l.count*l.width != uint64(len(l.bytes))*8 || l.count > math.MaxInt32 {
			t.Fatalf("%d bytes, %d tokens of %d bits", len(l.bytes), l.count, l.width)
		}
		if l.ttl < minTTL || l.ttl > maxTTL || l.issued.After(now) || !l.expires.IsZero() && !l.expires.After(now) {
			t.Fatalf("ttl %s, iat %s, exp %s", l.ttl, l.issued, l.expires)
		}
		if l.count > 0 {
			l.valid(0)
			l.valid(l.count - 1)
		}
	})
}
