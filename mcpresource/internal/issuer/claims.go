package issuer

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Audience is a string or an array of strings (RFC 7519 §4.1.3).
type Audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *Audience) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*a = make(Audience, 1)
		return json.Unmarshal(b, &(*a)[0])
	}
	return json.Unmarshal(b, (*[]string)(a))
}

// Scopes is a space-delimited string, or an array, which some servers send.
type Scopes oauth.Scopes

// UnmarshalJSON implements json.Unmarshaler.
func (s *Scopes) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var list []string
		err := json.Unmarshal(b, &list)
		*s = Scopes(oauth.ParseScopes(strings.Join(list, " ")))
		return err
	}
	var one string
	err := json.Unmarshal(b, &one)
	*s = Scopes(oauth.ParseScopes(one))
	return err
}

// NumericDate reads a NumericDate (RFC 7519 §2). It returns the zero time for anything else.
func NumericDate(n json.Number) time.Time {
	f, err := n.Float64()
	if err != nil || f <= 0 || f > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(f), 0)
}

// HasType reports whether the media type in the header equals want. The header may omit
// "application/" (RFC 7515 §4.1.9).
func HasType(jws *jose.JSONWebSignature, want string) bool {
	return strings.EqualFold(strings.TrimPrefix(strings.ToLower(Type(jws)), "application/"), want)
}

// Type returns the typ of a JWT, or "".
func Type(jws *jose.JSONWebSignature) string {
	typ, _ := jws.Signatures[0].Protected.ExtraHeaders[jose.HeaderType].(string)
	return typ
}
