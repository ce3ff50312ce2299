package web

import (
	"net/http"
	"strings"
)

// policy is in what the headers of one page differ from those of another.
type policy struct {
	// leaves leaves out form-action, on pages with a form that can end at an application or a provider.
	// Chromium holds every redirect after a form post against form-action, also those of the other
	// site, until a document has loaded: an approval would silently do nothing if the application's
	// callback redirected to where we cannot know (docs/decisions/approval.md).
	leaves  bool
	script  bool // the page has a script file
	connect bool // which asks our own origin something
	// keepOpener leaves out Cross-Origin-Opener-Policy. Web clients open the
	// authorization in a popup and wait for a message from their own callback page in
	// it; isolating our page would cut that window off from them for good.
	keepOpener bool
}

func (p policy) set(h http.Header) {
	h.Set("Content-Security-Policy", p.contentSecurity())
	h.Set("X-Frame-Options", "DENY") // OAuth 2.1 §7.10, AS-46
	h.Set("X-Content-Type-Options", "nosniff")
	// Not no-referrer: browsers then send "Origin: null" with our own forms (Fetch, "append a request
	// Origin header"), and those that send no Sec-Fetch-Site either could send no form.
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
