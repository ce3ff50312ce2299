package oauth

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// MaxResourceLength bounds a resource indicator, in bytes.
const MaxResourceLength = 2048

// CanonicalResource returns the one spelling under which a resource indicator is
// stored, compared and put into "aud". It must be an absolute http or https URI
// without fragment and without user information (RFC 8707 §2). Scheme and host
// are lower-cased, a default port is dropped and one trailing slash of the path
// is dropped, because real clients add and remove it (MCP "Canonical Server
// URI"); path and query are otherwise kept byte for byte.
//
// Use it for resource indicators only: issuers, redirect URIs and client ids are
// compared as plain strings.
func CanonicalResource(raw string) (string, error) {
	if len(raw) > MaxResourceLength {
		return "", errors.New("resource is too long")
	}
	if strings.ContainsRune(raw, '#') {
		return "", errors.New("resource has a fragment")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", fmt.Errorf("resource is not a URI: %w", err)
	}
	scheme := strings.ToLower(u.Scheme)
	switch {
	case scheme != "https" && scheme != "http":
		return "", errors.New("resource is not an absolute http or https URI")
	case u.Opaque != "" || u.Hostname() == "":
		return "", errors.New("resource has no host")
	case u.User != nil:
		return "", errors.New("resource has user information")
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if p := u.Port(); p != "" && !(scheme == "https" && p == "443") && !(scheme == "http" && p == "80") {
		host += ":" + p
	}
	out := scheme + "://" + host + strings.TrimSuffix(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		out += "?" + u.RawQuery
	}
	return out, nil
}

// ResourceOrigin returns scheme://host[:port] of a canonical resource.
func ResourceOrigin(canonical string) string {
	i := strings.Index(canonical, "://")
	if i < 0 {
		return canonical
	}
	if j := strings.IndexAny(canonical[i+3:], "/?"); j >= 0 {
		return canonical[:i+3+j]
	}
	return canonical
}

// IsLoopbackHost reports whether host (without port) names this machine:
// 127.0.0.0/8, ::1 or localhost. Brackets around an IPv6 literal are allowed.
func IsLoopbackHost(host string) bool {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
