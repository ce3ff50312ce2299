package statuslist

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/issuer"
)

const (
	// maxToken and maxUnpacked limit a status list before and after decompression, in bytes:
	// decompression can multiply the size by a thousand.
	maxToken    = 1 << 20
	maxUnpacked = 1 << 20 // eight million tokens of one bit

	mediaType  = "statuslist+jwt"
	defaultTTL = 7 * time.Second
	minTTL     = time.Second
	maxTTL     = time.Hour
)

// claims are the claims of a status list token (OAuth Token Status List §5.1).
type claims struct {
	Subject  string      `json:"sub"` // REQUIRED, the URI of the list
	IssuedAt json.Number `json:"iat"` // REQUIRED
	Expires  json.Number `json:"exp"`
	TTL      json.Number `json:"ttl"` // seconds
	Issuer   *string     `json:"iss"`
	List     *struct {   // REQUIRED, §4.2
		Bits int    `json:"bits"` // 1, 2, 4 or 8 for each token
		List string `json:"lst"`  // zlib, base64url
	} `json:"status_list"`
}

// bitmap is the unpacked status of many tokens. It is immutable.
type bitmap struct {
	bytes []byte
	width uint64 // bits per token
	count uint64 // tokens
}

// valid reports whether a token is valid; index must be below count. The lowest bits of a byte are
// the first (§4.1), and any value other than 0 means not valid (§7.1).
func (b bitmap) valid(index uint64) bool {
	at := index * b.width
	return b.bytes[at/8]>>(at%8)&(1<<b.width-1) == 0
}

// list is the content of a status list token.
type list struct {
	bitmap
	ttl     time.Duration // between two fetches, within limits
	issued  time.Time
	expires time.Time // zero: never
}

// readClaims reads the claims of a list whose signature is valid (§8.3). uri is the location it was
// fetched from. It must be the list's subject: otherwise one list could be passed off as another.
func readClaims(payload []byte, iss, uri string, now time.Time, skew time.Duration) (*list, error) {
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, fmt.Errorf("the claims of the status list cannot be read: %w", err)
	}
	l := &list{ttl: ttlOf(c.TTL), issued: issuer.NumericDate(c.IssuedAt), expires: issuer.NumericDate(c.Expires)}
	switch {
	case c.Subject != uri:
		return nil, fmt.Errorf("the status list is for %q", c.Subject)
	case c.Issuer != nil && *c.Issuer != iss:
		return nil, fmt.Errorf("the status list is by %q", *c.Issuer)
	case l.issued.IsZero() || l.issued.After(now.Add(skew)):
		return nil, errors.New("the status list is not issued yet")
	case c.Expires != "" && !now.Before(l.expires):
		return nil, errors.New("the status list has expired")
	case c.List == nil:
		return nil, errors.New("the token has no status list")
	}
	switch c.List.Bits {
	case 1, 2, 4, 8:
	default:
		return nil, fmt.Errorf("the status list has %d bits for each token", c.List.Bits)
	}
	packed, err := inflate(c.List.List)
	if err != nil {
		return nil, fmt.Errorf("the status list cannot be unpacked: %w", err)
	}
	width := uint64(c.List.Bits)
	l.bitmap = bitmap{packed, width, uint64(len(packed)) * 8 / width}
	return l, nil
}

// ttlOf keeps the ttl within limits, so that an issuer cannot cause constant or very rare fetches.
func ttlOf(n json.Number) time.Duration {
	if n == "" {
		return defaultTTL
	}
	seconds, err := n.Float64()
	if math.IsInf(seconds, 1) {
		err = nil
	}
	if err != nil {
		return minTTL
	}
	return time.Duration(min(max(seconds, minTTL.Seconds()), maxTTL.Seconds()) * float64(time.Second))
}

func inflate(list string) ([]byte, error) {
	packed, err := base64.RawURLEncoding.Strict().DecodeString(list)
	if err != nil {
		return nil, err
	}
	in := bytes.NewReader(packed)
	z, err := zlib.NewReader(in)
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(z, maxUnpacked+1))
	switch {
	case err != nil:
		return nil, err
	case len(out) > maxUnpacked:
		return nil, fmt.Errorf("larger than %d bytes", maxUnpacked)
	case in.Len() > 0:
		return nil, errors.New("more after its end")
	}
	return out, nil
}
