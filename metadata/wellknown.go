package metadata

import (
	"net/http"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// The registered well-known locations (RFC 8615).
const (
	AuthorizationServerWellKnown = "/.well-known/oauth-authorization-server" // RFC 8414 §7.3, AS-19
	OpenIDWellKnown              = "/.well-known/openid-configuration"       // OpenID Connect Discovery §4
	ProtectedResourceWellKnown   = "/.well-known/oauth-protected-resource"   // RFC 9728 §8.3
)

// AuthorizationServerPaths returns every URL path where a client may look for the metadata of
// issuer: oauth-authorization-server (RFC 8414 §3.1, AS-17) and openid-configuration (OpenID
// Connect Discovery §4.1). Each is both path-inserted and path-appended, with and without the
// trailing slash that some libraries add.
func AuthorizationServerPaths(issuer string) []string {
	return append(discoveryPaths(AuthorizationServerWellKnown, issuer), discoveryPaths(OpenIDWellKnown, issuer)...)
}

// MountAuthorizationServer serves m in mux at all of AuthorizationServerPaths. The
// openid-configuration paths get m.OpenIDConfiguration.
func MountAuthorizationServer(mux *http.ServeMux, m AuthorizationServer) error {
	plain, err := Handler(m)
	if err != nil {
		return err
	}
	openID, err := Handler(m.OpenIDConfiguration())
	if err != nil {
		return err
	}
	Mount(mux, plain, discoveryPaths(AuthorizationServerWellKnown, m.Issuer)...)
	Mount(mux, openID, discoveryPaths(OpenIDWellKnown, m.Issuer)...)
	return nil
}

func discoveryPaths(wellKnown, issuer string) []string {
	path := strings.TrimSuffix(strings.TrimPrefix(issuer, oauth.ResourceOrigin(issuer)), "/")
	inserted, appended := wellKnown+path, path+wellKnown
	if path == "" {
		return []string{inserted, inserted + "/"}
	}
	return []string{inserted, inserted + "/", appended, appended + "/"}
}

// ProtectedResourceURL returns the URL of the metadata of resource. The well-known segment is
// inserted between host and path, and a lone slash after the host is dropped (RFC 9728 §3.1,
// RS-06).
func ProtectedResourceURL(resource string) string {
	origin := oauth.ResourceOrigin(resource)
	rest := strings.TrimPrefix(resource, origin)
	if rest == "/" || strings.HasPrefix(rest, "/?") {
		rest = rest[1:]
	}
	return origin + ProtectedResourceWellKnown + rest
}

// ProtectedResourcePath returns the URL path of ProtectedResourceURL.
func ProtectedResourcePath(resource string) string {
	location := ProtectedResourceURL(resource)
	path, _, _ := strings.Cut(strings.TrimPrefix(location, oauth.ResourceOrigin(resource)), "?")
	return path
}

// Mount registers h in mux for exactly these paths. A path that ends with a slash matches only
// itself; a plain mux pattern would also match everything below it.
func Mount(mux *http.ServeMux, h http.Handler, paths ...string) {
	for _, p := range paths {
		p = patternEscaper.Replace(p)
		if strings.HasSuffix(p, "/") {
			p += "{$}"
		}
		mux.Handle(p, h)
	}
}

// patternEscaper keeps braces in a resource's path from being read as wildcards.
var patternEscaper = strings.NewReplacer("{", "%7B", "}", "%7D")
