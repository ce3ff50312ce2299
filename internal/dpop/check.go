package dpop

import (
	"net/url"
	"strings"
	"time"
)

// Request describes the request that a proof must match.
type Request struct {
	Method   string
	IsTarget func(uri string) bool // reports whether uri is the URL of the request, see SameTarget
	Token    string                // the presented access token; "" for none
	Key      string                // the required thumbprint; "" for any
	Nonces   *Nonces               // nil if no nonce is required
	Now      time.Time
}

// Check checks the proof of a request by all rules of RFC 9449 §4.3, the cheapest first. The
// exception is single use, which the caller checks after all other rules. headers holds the values
// of Header. It returns an Error, or ErrNonce.
func Check(headers []string, r Request) (*Proof, error) {
	if len(headers) != 1 {
		return nil, Error("not exactly one proof")
	}
	p, err := Parse(headers[0])
	if err != nil {
		return nil, err
	}
	switch {
	case p.Method != r.Method:
		return nil, Error("the proof is for another method")
	case !r.IsTarget(p.URI):
		return nil, Error("the proof is for another URI")
	case r.Token != "" && p.TokenHash != TokenHash(r.Token):
		return nil, Error("the proof is for another token")
	case p.issued.Before(r.Now.Add(-Window)) || p.issued.After(r.Now.Add(Window)):
		return nil, Error("the proof was not made now")
	case p.Expires != nil && seconds(r.Now.Add(-leeway)) >= *p.Expires:
		return nil, Error("the proof has expired by its exp")
	case p.NotBefore != nil && seconds(r.Now.Add(leeway)) < *p.NotBefore:
		return nil, Error("the proof is not good yet by its nbf")
	case r.Key != "" && p.thumbprint != r.Key:
		return nil, Error("the proof is by another key")
	case r.Nonces != nil && !r.Nonces.Knows(p.Nonce, r.Now):
		return nil, ErrNonce
	}
	return p, p.Verify()
}

func seconds(t time.Time) float64 { return float64(t.Unix()) }

// SameTarget reports whether htu names a URL, which has neither query nor fragment. It ignores both
// in htu (RFC 9449 §4.3), and compares scheme and host ignoring case (RFC 3986 §6.2.2).
func SameTarget(htu, want string) bool {
	if htu == want {
		return true
	}
	htu, _, _ = strings.Cut(htu, "#")
	htu, _, _ = strings.Cut(htu, "?")
	a, err1 := url.Parse(htu)
	b, err2 := url.Parse(want)
	return err1 == nil && err2 == nil && a.User == nil && a.Opaque == "" &&
		strings.EqualFold(a.Scheme, b.Scheme) && hostOf(a) == hostOf(b) && a.EscapedPath() == b.EscapedPath()
}

// hostOf returns the host of a URL without the default port of its scheme.
func hostOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch strings.ToLower(u.Scheme) {
	case "https":
		return strings.TrimSuffix(host, ":443")
	case "http":
		return strings.TrimSuffix(host, ":80")
	}
	return host
}
