package oauth

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// MaxRedirectURILength is the maximum length of a redirect URI, in bytes.
const MaxRedirectURILength = 2048

// RedirectPolicy decides which redirect URIs may be registered. The zero value allows https
// anywhere and http on loopback only, as the MCP specification requires ("Communication Security").
type RedirectPolicy struct {
	// PrivateUseSchemes are the private-use URI schemes (RFC 8252 §7.1) allowed in addition to
	// https and loopback http, in lower case.
	PrivateUseSchemes []string
	// DottedSchemes allows every private-use scheme that contains a dot, that is, one named after a
	// domain of its owner (OAuth 2.1 §8.4.3).
	DottedSchemes bool
}

// DesktopSchemes are the private-use schemes that MCP desktop clients use today. They are the
// default of the server's registration policy.
var DesktopSchemes = []string{
	"cursor", "vscode", "vscode-insiders", "claude", "warp", "warppreview", "windsurf",
	"kiro", "com.raycast", "raycast", "zed", "goose", "lmstudio",
}

// refusedSchemes can never be registered, because browsers execute or read their content.
var refusedSchemes = []string{
	"javascript", "data", "file", "vbscript", "blob", "about", "ftp", "ws", "wss", "view-source", "filesystem",
	"chrome", "intent",
}

// Errors of Check that the operator can resolve, by changing the policy or using https.
var (
	ErrRedirectScheme  = errors.New("the scheme of the redirect URI is not permitted here")
	ErrRedirectInClear = errors.New("an http redirect URI must be on localhost, 127.0.0.1 or [::1]; use https")
)

// Check returns an error if raw cannot be registered as a redirect URI. It must be https, http on
// loopback, or of a scheme that the policy allows (MCP "Communication Security", AS-56). It must be
// absolute, without fragment (OAuth 2.1 §2.3, AS-58), user information, control characters, white
// space, or parameters of the response.
func (p RedirectPolicy) Check(raw string) error {
	u, err := parseRedirect(raw)
	if err != nil {
		return err
	}
	scheme := strings.ToLower(u.Scheme)
	switch {
	case hasResponseParameter(u):
		return errors.New("the redirect URI has a parameter that the response has: code, state, iss or error")
	case slices.Contains(refusedSchemes, scheme):
		return errors.New("the scheme of the redirect URI is never permitted")
	case scheme == "https":
		if u.Hostname() == "" {
			return errors.New("the redirect URI has no host")
		}
	case scheme == "http":
		if !IsLoopbackHost(u.Hostname()) {
			return ErrRedirectInClear // even for names below .localhost: docs/decisions/clients.md
		}
	case slices.Contains(p.PrivateUseSchemes, scheme):
	case p.DottedSchemes && strings.Contains(scheme, "."):
	default:
		return ErrRedirectScheme
	}
	return nil
}

// responseParameters are the parameters of authorization responses (OAuth 2.1 §4.1.2, RFC 9207 §2).
// If a redirect URI already has one, the response would have it twice (OAuth 2.1 §3.1, AS-43), and
// the client might believe the wrong value.
var responseParameters = []string{"code", "state", "iss", "error", "error_description", "error_uri"}

func hasResponseParameter(u *url.URL) bool {
	return slices.ContainsFunc(responseParameters, u.Query().Has)
}

func parseRedirect(raw string) (*url.URL, error) {
	if raw == "" || len(raw) > MaxRedirectURILength {
		return nil, errors.New("the redirect URI is empty or too long")
	}
	if !uriCharacters(raw) {
		return nil, errors.New("the redirect URI has a character that a URI cannot have")
	}
	if strings.ContainsRune(raw, '#') {
		return nil, errors.New("the redirect URI has a fragment")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("the redirect URI cannot be parsed")
	case !u.IsAbs():
		return nil, errors.New("the redirect URI is not absolute")
	case u.User != nil:
		return nil, errors.New("the redirect URI has user information")
	case !PlainHost(u.Hostname()):
		return nil, errors.New("the redirect URI has a host that is not written in plain ASCII; use its xn-- form")
	}
	return u, nil
}

// PlainHost reports whether host has only the characters of a domain name or an address. Then the
// user sees the host as it would be typed, without escapes or look-alike letters.
func PlainHost(host string) bool {
	for i := range len(host) {
		switch c := host[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_', c == ':':
		default:
			return false
		}
	}
	return true
}

// MatchRedirectURI reports whether requested is registered. Comparison is by exact string (OAuth
// 2.1 §4.1.1, AS-53), with one exception. If a registered URI is http on 127.0.0.1, [::1] or
// localhost, the port may differ (RFC 8252 §7.3, AS-54); everything else must be equal byte for
// byte. The three hosts are not interchangeable.
func MatchRedirectURI(registered []string, requested string) bool {
	if slices.Contains(registered, requested) {
		return true
	}
	req, ok := splitLoopback(requested)
	if !ok {
		return false
	}
	return slices.ContainsFunc(registered, func(r string) bool {
		reg, ok := splitLoopback(r)
		return ok && reg == req
	})
}

// splitLoopback removes the port from an http loopback URI. ok is false for other URIs.
func splitLoopback(raw string) (withoutPort string, ok bool) {
	u, err := parseRedirect(raw)
	if err != nil || u.Scheme != "http" {
		return "", false
	}
	switch u.Hostname() {
	case "127.0.0.1", "::1", "localhost":
	default:
		return "", false
	}
	if p := u.Port(); p == "" && strings.HasSuffix(u.Host, ":") {
		return "", false
	}
	rest := strings.TrimPrefix(raw, "http://"+u.Host)
	if len(rest) == len(raw) {
		return "", false
	}
	return u.Hostname() + rest, true
}

// IsLoopbackRedirect reports whether raw is an http URL on this machine.
func IsLoopbackRedirect(raw string) bool {
	u, err := parseRedirect(raw)
	return err == nil && strings.EqualFold(u.Scheme, "http") && IsLoopbackHost(u.Hostname())
}

// RedirectPlace returns the destination of a redirect URI as users can distinguish it. That is the
// origin of an https URI, "loopback" for any port and spelling of this machine, or a private-use
// scheme with its colon. URIs with the same destination are under the same party's control.
// Different destinations never have the same text.
func RedirectPlace(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	scheme := strings.ToLower(u.Scheme)
	switch {
	case IsLoopbackRedirect(raw):
		return "loopback"
	case scheme != "https" && scheme != "http":
		return scheme + ":"
	}
	host := strings.ToLower(u.Host)
	if scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	}
	return scheme + "://" + strings.TrimSuffix(host, ":")
}
