package metadata

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// ValidateIssuer returns an error if issuer cannot identify an authorization server. RFC 8414 §2
// (AS-21) requires https without query or fragment; http is permitted on loopback for development.
// Clients compare issuers as plain strings (RFC 8414 §3.3). So the issuer must have the one
// spelling that every URL library preserves. It has no trailing slash, scheme and host in lower
// case, no default port, and a path of plain characters.
func ValidateIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return fmt.Errorf("metadata: issuer %q is not an absolute URL", issuer)
	case u.RawQuery != "" || strings.ContainsRune(issuer, '#'):
		return fmt.Errorf("metadata: issuer %q has a query or a fragment", issuer)
	case u.User != nil:
		return fmt.Errorf("metadata: issuer %q has user information", issuer)
	}
	if err := checkTransport("issuer", u); err != nil {
		return err
	}
	if err := checkIssuerPath(u.EscapedPath()); err != nil {
		return fmt.Errorf("metadata: issuer %q: %w", issuer, err)
	}
	if canonical, err := oauth.CanonicalResource(issuer); err != nil || canonical != issuer {
		return fmt.Errorf("metadata: issuer %q is not in its canonical spelling; use %q", issuer, canonical)
	}
	return nil
}

// checkIssuerPath returns an error unless path has unreserved characters only. Such a path is the
// same escaped and unescaped, in a URL, a mux pattern and a well-known location.
func checkIssuerPath(path string) error {
	if strings.HasSuffix(path, "/") {
		return errors.New("leave out the slash at the end")
	}
	for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if path != "" && (segment == "" || segment == "." || segment == "..") {
			return fmt.Errorf("the path segment %q is not permitted", segment)
		}
		for _, c := range segment {
			if !isUnreserved(c) {
				return fmt.Errorf("the path has the character %q; use letters, digits, '-', '.', '_' and '~'", c)
			}
		}
	}
	return nil
}

func isUnreserved(c rune) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.ContainsRune("-._~", c)
}

// checkTransport returns an error unless u is https, or http on loopback, which stays on this
// machine (MCP "Communication Security", AS-01).
func checkTransport(what string, u *url.URL) error {
	switch {
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && oauth.IsLoopbackHost(u.Hostname()):
		return nil
	}
	return fmt.Errorf("metadata: %s %q must be https (http is for localhost, 127.0.0.1 and [::1] only)", what, u)
}
