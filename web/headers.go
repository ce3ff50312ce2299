package web

import (
	"net/http"
	"regexp"
	"strings"
)

// policy is in what the headers of one page differ from those of another.
type policy struct {
	// formTargets are allowed in addition to our own origin as the end of a form post.
	// Chromium holds every redirect after a form post against form-action too, so the
	// pages that end in a redirect to the client must name where it goes; without
	// this, approving would silently do nothing.
	formTargets []string
	script      bool // the page has a script file
	connect     bool // which asks our own origin something
	// keepOpener leaves out Cross-Origin-Opener-Policy. Web clients open the
	// authorization in a popup and wait for a message from their own callback page in
	// it; isolating our page would cut that window off from them for good.
	keepOpener bool
}

// formTarget is what may stand in form-action: a private-use scheme or an http(s)
// origin. Anything else, above all space, comma and semicolon, could add
// directives to the header.
var formTarget = regexp.MustCompile(`^(https?://[A-Za-z0-9._-]+(:[0-9]{1,5})?|[A-Za-z][A-Za-z0-9+.-]*:)$`)

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
	form := []string{"form-action", "'self'"}
	for _, t := range p.formTargets {
		if formTarget.MatchString(t) && !executable(t) {
			form = append(form, t)
		}
	}
	directives = append(directives, strings.Join(form, " "), "base-uri 'none'", "frame-ancestors 'none'")
	return strings.Join(directives, "; ")
}
