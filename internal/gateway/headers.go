package gateway

import (
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/cookie"
)

// requestOnly lists client headers that end at the gateway: credentials, proofs of possession,
// headers that the guard has already judged, and Expect, which would only delay the request.
// ReverseProxy removes hop-by-hop headers (RFC 9110 §7.6.1) and X-Forwarded-*.
var requestOnly = []string{
	"Authorization", "Dpop", "Cookie", "Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers",
	"Expect",
}

// claimed lists the header names that a server believes when they come from a proxy: caller,
// address and path. Proxy becomes HTTP_PROXY in CGI (CVE-2016-5385). Names have the form that plain
// returns, and "*" ends a prefix.
var claimed = []string{
	"proxy", "remote-user", "remote-groups", "remote-name", "remote-email", "remote-addr", "auth-user", "auth-type",
	"ssl-client-*", "x-ssl-client-*",
	"x-remote-*", "x-user", "x-username", "x-user-id", "x-user-email", "x-auth-request-*", "x-auth-user*",
	"x-auth-email", "x-authenticated-*", "x-webauth-*",
	"x-forwarded-*", "forwarded", "client-cert", "client-cert-chain", "x-client-cert", "x-client-dn", "x-consumer-*",
	"x-userinfo", "x-email", "x-token-*", "x-goog-authenticated-*", "x-goog-iap-jwt-assertion",
	"x-ms-client-principal*",
	"x-amzn-oidc-*", "cf-access-*", "tailscale-*", "x-pomerium-*", "x-authentik-*", "x-vouch-*", "oidc-*", "x-envoy-*",
	"true-client-ip", "client-ip", "x-client-ip", "x-cluster-client-ip", "x-real-ip", "x-originating-ip",
	"x-remote-ip", "cf-connecting-ip", "fastly-client-ip", "x-azure-clientip", "x-azure-socketip",
	"x-original-*", "x-rewrite-url", "x-script-name", "x-http-method*", "x-method-override",
}

// responseOnly lists headers that an MCP server sends about its own origin. They do not apply to
// the gateway's origin.
var responseOnly = []string{
	"Www-Authenticate", "Proxy-Authenticate", "Set-Cookie", "Alt-Svc", "Clear-Site-Data", "Strict-Transport-Security",
	"Public-Key-Pins", "Service-Worker-Allowed", "Refresh", "Location", "Content-Location", "Nel", "Report-To",
	"Reporting-Endpoints", "Link",
	"Content-Security-Policy-Report-Only",
}

// clean removes the client's own headers from the request, and every header that the MCP server
// would take for the gateway's word.
func (u *Upstream) clean(h http.Header) {
	cookies := h["Cookie"]
	for _, name := range requestOnly {
		delete(h, name)
	}
	for name := range h {
		if u.c.Identity.speaks(name) {
			delete(h, name)
		}
	}
	if kept := u.cookies(cookies); kept != "" {
		h.Set("Cookie", kept)
	}
}

// cookies returns the cookies that the configuration names. It compares the raw text, because
// parsing and writing a cookie may change it.
func (u *Upstream) cookies(lines []string) string {
	if len(u.c.Cookies) == 0 {
		return ""
	}
	var kept []string
	for _, line := range lines {
		for c := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(strings.TrimSpace(c), "=")
			if u.passesCookie(name) {
				kept = append(kept, strings.TrimSpace(c))
			}
		}
	}
	return strings.Join(kept, "; ")
}

// passesCookie reports whether the cookie name may pass. Cookies of the authorization server, which
// may share our origin, never pass. It recognizes them by their prefix.
func (u *Upstream) passesCookie(name string) bool {
	if name == "" || cookie.Ours(name) {
		return false
	}
	return slices.Contains(u.c.Cookies, "*") || slices.Contains(u.c.Cookies, name)
}

func (u *Upstream) cleanResponse(h http.Header) {
	cookies := h["Set-Cookie"]
	for _, name := range responseOnly {
		delete(h, name)
	}
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") { // the guard sets these
			delete(h, name)
		}
	}
	for _, c := range cookies {
		if name, _, _ := strings.Cut(c, "="); u.passesCookie(strings.TrimSpace(name)) {
			h.Add("Set-Cookie", c)
		}
	}
	Sandbox(h)
}

// dropTrailers removes the trailers from a response. MCP has no trailers, and a client that merges
// them into the header would get what cleanResponse removes. RFC 9110 §6.5.1 lets a proxy discard
// them.
func dropTrailers(r *http.Response) {
	r.Trailer = nil
	r.Body = &withoutTrailers{r.Body, r}
}

// withoutTrailers is a response body that drops the trailers that the transport adds at its end.
type withoutTrailers struct {
	io.ReadCloser
	of *http.Response
}

// Read implements io.Reader.
func (b *withoutTrailers) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.of.Trailer = nil
	}
	return n, err
}

// Close implements io.Closer.
func (b *withoutTrailers) Close() error {
	err := b.ReadCloser.Close()
	b.of.Trailer = nil
	return err
}

// encodeName returns a name as the value of the header Mcp-Name. It uses Base64 if the name is not
// plain ASCII or looks encoded (MCP 2026-07-28, Streamable HTTP, "Value Encoding").
func encodeName(name string) string {
	plain := !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' })
	if plain && strings.TrimSpace(name) == name && !strings.HasPrefix(name, encodedPrefix) {
		return name
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
}

const encodedPrefix = "=?base64?"

// Sandbox sets headers that keep a response of an MCP server from becoming a page of our origin.
// Users sign in on that origin.
func Sandbox(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
}

// plain returns the common form of all header names that servers may confuse. CGI and its
// descendants replace every character that is not a letter or digit with an underscore.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
}

// isClaimed reports whether a plain name matches claimed.
func isClaimed(name string) bool {
	return claimedNames[name] ||
		slices.ContainsFunc(claimedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// claimedNames and claimedPrefixes hold claimed, split for fast lookup: each header of each request
// is checked.
var claimedNames, claimedPrefixes = apart(claimed)

func apart(patterns []string) (names map[string]bool, prefixes []string) {
	names = map[string]bool{}
	for _, p := range patterns {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			prefixes = append(prefixes, prefix)
			continue
		}
		names[p] = true
	}
	return names, prefixes
}
