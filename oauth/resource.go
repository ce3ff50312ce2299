package oauth

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// MaxResourceLength is the maximum length of a resource indicator, in bytes.
const MaxResourceLength = 2048

// CanonicalResource returns the canonical spelling of a resource indicator, used to store, compare
// and put into "aud". It must be an absolute http or https URI without fragment or user information
// (RFC 8707 §2, AS-104). Scheme and host are lower-cased. A default port and trailing slashes of
// the path are dropped, because clients add and remove them (MCP "Canonical Server URI"). Path and
// query are otherwise kept byte for byte. The function is idempotent.
//
// Use it for resource indicators only: issuers, redirect URIs and client ids are compared as plain
// strings.
func CanonicalResource(raw string) (string, error) {
	if len(raw) > MaxResourceLength {
		return "", errors.New("resource is too long")
	}
	if strings.ContainsRune(raw, '#') {
		return "", errors.New("resource has a fragment")
	}
	if !uriCharacters(raw) {
		return "", errors.New("resource has a character that a URI cannot have")
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
	if strings.Contains(host, "%") || !uriCharacters(host) {
		return "", errors.New("resource has a host with escapes; use its ASCII form")
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if p := u.Port(); p != "" && !(scheme == "https" && p == "443") && !(scheme == "http" && p == "80") {
		host += ":" + p
	}
	out := scheme + "://" + host + strings.TrimRight(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		out += "?" + u.RawQuery
	}
	return out, nil
}

// LowerOrigin returns raw with scheme and host in lower case.
func LowerOrigin(raw string) string {
	i := strings.Index(raw, "://")
	if i < 0 {
		return raw
	}
	end := len(raw)
	if j := strings.IndexAny(raw[i+3:], "/?"); j >= 0 {
		end = i + 3 + j
	}
	return strings.ToLower(raw[:end]) + raw[end:]
}

// uriCharacters reports whether s is printable ASCII without the characters that RFC 3986 excludes
// and that would break a header or an attribute.
func uriCharacters(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= 0x20 || c >= 0x7f || c == '\\' || c == '"' || c == '<' || c == '>' {
			return false
		}
	}
	return true
}

// ResourceOrigin returns the scheme://host[:port] of a canonical resource.
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

// InClear reports whether a request to raw can be read on the network: raw is http and its host is
// not this machine.
func InClear(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Scheme == "http" && !IsLoopbackHost(u.Hostname())
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
