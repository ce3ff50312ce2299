package oauth

import "net/url"

// NotURL is what Redacted makes of a text that is no URL.
const NotURL = "(not a URL)"

// Redacted is a URL as logs and attempts keep it: without user information, and without the values that may
// follow its path, since people put secrets there. Of what stands there it says that it was there. What was
// redacted stays the same when it is redacted again.
func Redacted(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return NotURL
	}
	if u.User != nil {
		u.User = url.User("...")
	}
	if u.Opaque != "" {
		u.Opaque = "..."
	}
	if u.RawQuery != "" {
		u.RawQuery = "..."
	}
	if u.Fragment != "" {
		u.Fragment, u.RawFragment = "...", ""
	}
	return u.String()
}
