// Package cookie names the cookies of an authorization server.
package cookie

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

const (
	prefix = "mcp-authd-"
	host   = "__Host-" // RFC 6265bis §4.1.3.2: Secure, without Domain, with Path=/
)

// Name returns the name of an issuer's cookie for a purpose. Cookies know no port (RFC 6265 §8.5), and
// with Path=/ no path, so the name holds a hash of the issuer: two servers on one host would otherwise
// overwrite each other's cookies.
func Name(issuer, purpose string) string {
	sum := sha256.Sum256([]byte(issuer))
	return Shared(issuer, purpose) + "-" + base64.RawURLEncoding.EncodeToString(sum[:6])
}

// Shared returns a name that all issuers of one host share.
func Shared(issuer, purpose string) string {
	if Secure(issuer) {
		return host + prefix + purpose
	}
	return prefix + purpose
}

// Secure reports whether the cookies of an issuer are Secure with the __Host- prefix. http, which is
// for loopback only, leaves both out, because not every client returns Secure cookies over http.
func Secure(issuer string) bool { return strings.HasPrefix(issuer, "https://") }

// Ours reports whether a name belongs to a cookie of an authorization server, whatever its issuer.
func Ours(name string) bool { return strings.HasPrefix(strings.TrimPrefix(name, host), prefix) }
