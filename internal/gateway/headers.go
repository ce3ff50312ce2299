package gateway

import (
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/cookie"
)

// requestOnly are headers of the client that end at the gateway: credentials, proofs of
// their possession, what the guard has judged in the MCP server's place, and what would
// only delay the request. Those between two hops (RFC 9110 §7.6.1) and X-Forwarded-* are
// removed by ReverseProxy.
var requestOnly = []string{
	"Authorization", "Dpop", "Cookie", "Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers",
	"Expect",
}

// claimed are the names under which proxies tell a server what it believes without asking:
// who calls, from where, and for which path. Proxy becomes HTTP_PROXY in CGI
// (CVE-2016-5385). They are written as plain has them, "*" ends a prefix.
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

// responseOnly are headers of the MCP server that speak for its own origin and not for
// ours.
var responseOnly = []string{
	"Www-Authenticate", "Proxy-Authenticate", "Set-Cookie", "Alt-Svc", "Clear-Site-Data", "Strict-Transport-Security",
	"Public-Key-Pins", "Service-Worker-Allowed", "Refresh", "Location", "Content-Location", "Nel", "Report-To",
	"Reporting-Endpoints", "Link",
	"Content-Security-Policy-Report-Only",
}

// clean removes from the request what is the client's own, and everything that would be
// taken for the gateway's word.
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

// cookies keeps those that were named. They are compared as they are written: what is
// parsed and written again may change.
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

// passesCookie knows the cookies of the authorization server, which may share our
// origin, by their prefix: they pass under no circumstances.
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
		if strings.HasPrefix(name, "Access-Control-") { // the guard's to say
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

// dropTrailers takes the trailers from a response. MCP has none, and clients that join them to the head would
// get what cleanResponse removes (RFC 9110 §6.5.1 lets a proxy discard them).
func dropTrailers(r *http.Response) {
	r.Trailer = nil
	r.Body = &withoutTrailers{r.Body, r}
}

// withoutTrailers is the body of a response without the trailers that the transport puts behind it.
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

// encodeName returns a name as the header Mcp-Name has it: one that is not plain ASCII, or looks encoded, in Base64
// (MCP 2026-07-28, Streamable HTTP, "Value Encoding").
func encodeName(name string) string {
	plain := !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' })
	if plain && strings.TrimSpace(name) == name && !strings.HasPrefix(name, encodedPrefix) {
		return name
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
}

const encodedPrefix = "=?base64?"

// Sandbox keeps what an MCP server answers from becoming a page of our origin, on which
// people sign in, should a browser ever show it.
func Sandbox(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
}

// plain brings the spellings of a header name that servers take for one another together:
// CGI and its many children make an underscore of every character that is no letter or
// digit.
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

// isClaimed reports whether a plain name is one of those.
func isClaimed(name string) bool {
	return claimedNames[name] ||
		slices.ContainsFunc(claimedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// claimedNames and claimedPrefixes are claimed, apart: each header of each request is looked up.
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
