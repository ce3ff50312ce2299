package pages

import (
	"net/http"
	"strings"
)

// policy contains the headers that differ between pages.
type policy struct {
	// leaves omits form-action, on pages with a form that can end at an application or a provider.
	// Chromium applies form-action to every redirect after a form post, including redirects of the
	// other site, until a document has loaded. If the application's callback redirected to an
	// unknown host, an approval would silently do nothing (docs/decisions/approval.md).
	leaves  bool
	script  bool // the page has a script file
	connect bool // the script sends requests to this origin
	// keepOpener omits Cross-Origin-Opener-Policy. Web clients open the authorization page in a
	// popup and wait for a message from their callback page in it. Isolating the page would
	// permanently disconnect that window from them.
	keepOpener bool
}

func (p policy) set(h http.Header) {
	h.Set("Content-Security-Policy", p.contentSecurity())
	h.Set("X-Frame-Options", "DENY") // OAuth 2.1 §7.10, AS-46
	h.Set("X-Content-Type-Options", "nosniff")
	// Not no-referrer: browsers would then send "Origin: null" with forms on these pages (Fetch,
	// "append a request Origin header"). Browsers without Sec-Fetch-Site could then send no form.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	if !p.keepOpener {
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
	}
}

func (p policy) contentSecurity() string {
	directives := []string{"default-src 'none'", "style-src 'self'", "img-src 'self'"}
	if p.script {
		directives = append(directives, "script-src 'self'")
	}
	if p.connect {
		directives = append(directives, "connect-src 'self'")
	}
	if !p.leaves {
		directives = append(directives, "form-action 'self'")
	}
	directives = append(directives, "base-uri 'none'", "frame-ancestors 'none'")
	return strings.Join(directives, "; ")
}
