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

// AuthorizationServerPaths returns every URL path at which a client may look for
// the metadata of issuer: oauth-authorization-server (RFC 8414 §3.1, AS-17) and
// openid-configuration (OpenID Connect Discovery §4.1), path-inserted and
// path-appended, each also with the trailing slash that some libraries add.
func AuthorizationServerPaths(issuer string) []string {
	return append(discoveryPaths(AuthorizationServerWellKnown, issuer), discoveryPaths(OpenIDWellKnown, issuer)...)
}

// MountAuthorizationServer serves m in mux at all of AuthorizationServerPaths, and
// its OpenIDConfiguration where a client looks for that.
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

// ProtectedResourceURL returns where the metadata of resource lives: the
// well-known segment inserted between host and path, a lone slash after the host
// dropped (RFC 9728 §3.1, RS-06).
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

// Mount registers h in mux for each path exactly: a path that ends with a slash
// matches itself only and not, as a mux pattern would by default, what is below.
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
