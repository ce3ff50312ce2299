package oauth

import "net/url"

// NotURL is the text that Redacted returns for anything that is not a URL.
const NotURL = "(not a URL)"

// Redacted returns a URL in the form kept in logs and attempts. User information, query and
// fragment may contain secrets, so each is replaced by a placeholder. Redacted is idempotent.
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
