package gateway

import (
	"net/http"
	"slices"
	"strings"
)

// requestOnly are headers of the client that end at the gateway: credentials, proofs of
// their possession, what the guard has judged in the MCP server's place, and what would
// only delay the request. Those between two hops (RFC 9110 §7.6.1) and X-Forwarded-* are
// removed by ReverseProxy. The last ones make some frameworks serve another path than the
// configured one.
var requestOnly = []string{
	"Authorization", "Dpop", "Cookie", "Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers",
	"Expect", "X-Real-Ip", "X-Original-Url", "X-Original-Uri", "X-Rewrite-Url", "X-Script-Name",
}

// responseOnly are headers of the MCP server that speak for its own origin and not for
// ours.
var responseOnly = []string{
	"Www-Authenticate", "Proxy-Authenticate", "Set-Cookie", "Alt-Svc", "Clear-Site-Data", "Strict-Transport-Security",
	"Public-Key-Pins", "Service-Worker-Allowed", "Refresh", "Location", "Content-Location", "Nel", "Report-To", "Reporting-Endpoints",
}

// clean removes from the request what is the client's own, and everything that would be
// taken for the gateway's word. CGI and its many children see hyphens and underscores
// alike, so a name with an underscore may be any other's.
func (u *Upstream) clean(h http.Header) {
	cookies := h["Cookie"]
	for _, name := range requestOnly {
		delete(h, name)
	}
	for name := range h {
		if u.c.Identity.speaks(name) || strings.HasPrefix(name, "X-Forwarded-") {
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
	if name == "" || strings.HasPrefix(strings.TrimPrefix(name, "__Host-"), "mcp-authd") {
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
}

// plain brings the spellings of a header name that servers take for one another together:
// CGI and its many children see hyphens and underscores alike.
func plain(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}
