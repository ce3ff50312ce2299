package oauth

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// MaxRedirectURILength bounds a redirect URI, in bytes.
const MaxRedirectURILength = 2048

// RedirectPolicy says which redirect URIs may be registered. The zero value
// admits https anywhere and http on loopback only, the rule of the MCP
// specification ("Communication Security").
type RedirectPolicy struct {
	// PrivateUseSchemes are the private-use URI schemes (RFC 8252 §7.1) that are
	// admitted in addition to https and loopback http, in lower case.
	PrivateUseSchemes []string
	// DottedSchemes admits every private-use scheme that contains a dot, that is,
	// one named after a domain its owner controls (OAuth 2.1 §8.4.3).
	DottedSchemes bool
}

// DesktopSchemes are the private-use schemes that MCP desktop clients use today;
// it is the default of the server's registration policy.
var DesktopSchemes = []string{
	"cursor", "vscode", "vscode-insiders", "claude", "warp", "warppreview", "windsurf",
	"kiro", "com.raycast", "raycast", "zed", "goose", "lmstudio",
}

// refusedSchemes can never be registered: a browser runs or reads their content.
var refusedSchemes = []string{
	"javascript", "data", "file", "vbscript", "blob", "about", "ftp", "ws", "wss", "view-source", "filesystem",
	"chrome", "intent",
}

// Reasons of Check that an operator, or TLS, can change.
var (
	ErrRedirectScheme  = errors.New("the scheme of the redirect URI is not permitted here")
	ErrRedirectInClear = errors.New("an http redirect URI must be on localhost, 127.0.0.1 or [::1]; use https")
)

// Check reports why raw cannot be registered as a redirect URI, or nil. It must be https, or http
// on loopback, or of a scheme that the policy admits (MCP "Communication Security", AS-56), and
// be absolute, without fragment (OAuth 2.1 §2.3, AS-58), without user information,
// control characters or white space, and without a parameter of the response.
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
			return ErrRedirectInClear // also for names below .localhost: docs/decisions/clients.md
		}
	case slices.Contains(p.PrivateUseSchemes, scheme):
	case p.DottedSchemes && strings.Contains(scheme, "."):
	default:
		return ErrRedirectScheme
	}
	return nil
}

// responseParameters are those of authorization responses (OAuth 2.1 §4.1.2, RFC 9207 §2). A
// redirect URI that has one already would make it two (OAuth 2.1 §3.1, AS-43), of which a
// client may believe the wrong one.
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

// PlainHost reports whether a host consists of the characters of a domain name or an
// address alone, so that what people are shown is what they would type: no escapes, and
// no letters that look like others.
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

// MatchRedirectURI reports whether requested is registered. Comparison is by
// exact string (OAuth 2.1 §4.1.1, AS-53), with one exception: where a registered URI is
// http on 127.0.0.1, [::1] or localhost, the port of the request is free (RFC
// 8252 §7.3, AS-54), all else being equal byte for byte. The three hosts are not
// interchangeable.
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

// splitLoopback takes the port out of an http loopback URI.
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

// IsLoopbackRedirect reports whether raw sends the browser to this machine.
func IsLoopbackRedirect(raw string) bool {
	u, err := parseRedirect(raw)
	return err == nil && strings.EqualFold(u.Scheme, "http") && IsLoopbackHost(u.Hostname())
}

// RedirectPlace is the place that a redirect URI sends an answer to, as far as people can tell
// places apart: the origin of an https URI, "loopback" for every port and spelling of this
// machine, and a private-use scheme with its colon. Two URIs of one place differ in what
// the one who answers there decides. No two places are written alike.
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
