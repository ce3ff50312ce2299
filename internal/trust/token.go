package trust

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/strictjson"
)

// Limits of an assertion.
const (
	maxAssertion = 16 << 10 // bytes
	maxDepth     = 8        // nesting of objects and lists in claims
	maxMembers   = 512      // values in header or claims
	// MaxText limits a stored claim, in bytes.
	MaxText = 1024
)

// algorithms lists only asymmetric algorithms. With HS256, a public key could be used as a shared
// secret (RFC 8725 §3.1, AS-182).
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512,
	jose.EdDSA, ed25519Name,
}

// ed25519Name is the name in RFC 9864 §2.2 for EdDSA with the curve Ed25519.
const ed25519Name jose.SignatureAlgorithm = "Ed25519"

// token is an unverified JWT.
type token struct {
	signed *jose.JSONWebSignature
	alg    string
	kid    string
	typ    string // in lower case, without "application/"
	claims map[string]any
	raw    map[string]json.RawMessage // the claims as raw JSON
	digest string                     // of header and payload, because an ECDSA signature has two valid forms

	tried    bool     // the issuer's keys were tried
	unsigned *Refusal // result of that
}

var (
	errLong      = errors.New("longer than 16 KiB")
	errSegments  = errors.New("not three segments of base64url")
	errJSON      = errors.New("header or payload is not a JSON object")
	errDuplicate = errors.New("a JSON member occurs twice")
	errDeep      = errors.New("nested too deeply, or too many values")
	errAlgorithm = errors.New("signed by an algorithm that is not accepted")
)

// parse parses a JWT in compact form (RFC 7519 §7.2).
func parse(raw string) (*token, error) {
	if len(raw) > maxAssertion {
		return nil, errLong
	}
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return nil, errSegments
	}
	header, err := segment(parts[0])
	if err != nil {
		return nil, err
	}
	claims, err := segment(parts[1])
	if err != nil {
		return nil, err
	}
	t := &token{claims: claims.values, raw: claims.raw}
	t.alg, _ = header.values["alg"].(string)
	t.kid, _ = header.values["kid"].(string)
	typ, _ := header.values["typ"].(string)
	t.typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	if !slices.Contains(algorithms, jose.SignatureAlgorithm(t.alg)) {
		return nil, errAlgorithm
	}
	// It also refuses unknown extensions (crit), as RFC 7515 §4.1.11 requires.
	if t.signed, err = jose.ParseSignedCompact(raw, algorithms); err != nil || len(t.signed.Signatures) != 1 {
		return nil, errSegments
	}
	t.digest = digest(raw)
	return t, nil
}

// object is a JSON object.
type object struct {
	values map[string]any
	raw    map[string]json.RawMessage
}

func segment(text string) (out object, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || base64.RawURLEncoding.EncodeToString(b) != text {
		return out, errSegments // line breaks or spare bits would give another digest and allow a second use
	}
	v, err := strictjson.Value(b, strictjson.Limits{Depth: maxDepth, Values: maxMembers})
	switch duplicate := (*strictjson.DuplicateError)(nil); {
	case errors.As(err, &duplicate):
		return out, errDuplicate
	case errors.Is(err, strictjson.ErrLarge):
		return out, errDeep
	case err != nil:
		return out, errJSON
	}
	if v, err = native(v); err != nil {
		return out, err
	}
	values, ok := v.(map[string]any)
	if !ok || json.Unmarshal(b, &out.raw) != nil {
		return out, errJSON
	}
	out.values = values
	return out, nil
}

// native converts the numbers in a decoded value. Duplicate members were refused before, because
// parsers use different ones (RFC 8725 §2.4, RFC 7519 §4).
func native(v any) (_ any, err error) {
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case map[string]any:
		for name := range v {
			if v[name], err = native(v[name]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = native(v[i]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// number returns an int if possible, so that IDs compare exactly.
func number(n json.Number) (any, error) {
	if i, err := strconv.Atoi(n.String()); err == nil {
		return i, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, errJSON
	}
	return f, nil
}
