package session

import (
	"strings"
	"testing"
)

// Users see their sign-ins described in words.
func TestAgent(t *testing.T) {
	const webkit = "AppleWebKit/537.36 (KHTML, like Gecko) "
	const chrome = webkit + "Chrome/140.0.0.0 Safari/537.36"
	const apple = "AppleWebKit/605.1.15 (KHTML, like Gecko) "
	for userAgent, want := range map[string]string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + chrome:                             "Chrome on Windows",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + chrome + " Edg/140.0.0.0":          "Edge on Windows",
		"Mozilla/5.0 (X11; Linux x86_64) " + webkit + "HeadlessChrome/140 Safari/537":     "Chrome on Linux",
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":          "Firefox on Linux",
		"Mozilla/5.0 (Linux; Android 15; Pixel 9) " + chrome:                              "Chrome on Android",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) " + apple + "Version/18 Safari/": "Safari on macOS",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) " + apple + "Version/18":  "Safari on iPhone",
		"Mozilla/5.0 (iPad; CPU OS 18_5 like Mac OS X) " + apple + "CriOS/140 Safari/6":   "Chrome on iPad",
		"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) " + chrome:                              "Chrome on ChromeOS",
		"curl/8.5.0":                           "“curl”",
		"Go-http-client/1.1":                   "“Go-http-client”",
		"node":                                 "“node”",
		"":                                     "",
		"<script>alert(1)</script>":            "",
		"\u202eevil/1":                         "",
		strings.Repeat("a", 1<<20):             "“" + strings.Repeat("a", maxProduct) + "”",
		"Google.verified.it/Press-Approve-now": "“Google.verified.it”",
		strings.Repeat(" ", 600) + "Edg/":      "",
	} {
		if got := Agent(userAgent); got != want {
			t.Errorf("%.80q: got %q, want %q", userAgent, got, want)
		}
	}
}
