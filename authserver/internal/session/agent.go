package session

import "strings"

// maxAgent limits how much of a User-Agent is parsed, and maxProduct the length of an unknown
// product name.
const maxAgent, maxProduct = 512, 32

// mark maps a text in a User-Agent to the name of a browser or system.
type mark struct{ text, name string }

// The order matters, because most browsers also contain the names of others.
var (
	browsers = []mark{
		{"Edg/", "Edge"}, {"EdgA/", "Edge"}, {"EdgiOS/", "Edge"}, {"Edge/", "Edge"},
		{"OPR/", "Opera"}, {"Opera", "Opera"},
		{"SamsungBrowser/", "Samsung Internet"}, {"Vivaldi/", "Vivaldi"}, {"DuckDuckGo/", "DuckDuckGo"},
		{"FxiOS/", "Firefox"}, {"Firefox/", "Firefox"}, {"CriOS/", "Chrome"}, {"Chrome/", "Chrome"},
		{"Safari/", "Safari"}, {"AppleWebKit/", "Safari"},
	}
	systems = []mark{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"CrOS", "ChromeOS"}, {"Windows", "Windows"},
		{"Macintosh", "macOS"}, {"Mac OS X", "macOS"}, {"FreeBSD", "FreeBSD"}, {"OpenBSD", "OpenBSD"},
		{"Linux", "Linux"},
	}
)

// Agent describes the browser of a User-Agent in words, such as "Chrome on Windows". For another
// program it returns the product name in quotation marks, because programs choose their own names.
// It returns "" if it recognizes nothing. The result helps users to recognize their sign-ins, and
// proves nothing.
func Agent(userAgent string) string {
	if len(userAgent) > maxAgent {
		userAgent = userAgent[:maxAgent]
	}
	browser, system := find(browsers, userAgent), find(systems, userAgent)
	switch {
	case browser == "":
		return product(userAgent)
	case system == "":
		return browser
	}
	return browser + " on " + system
}

func find(marks []mark, in string) string {
	for _, m := range marks {
		if strings.Contains(in, m.text) {
			return m.name
		}
	}
	return ""
}

// product returns the name of the first product in a User-Agent (RFC 9110 §10.1.5), quoted.
func product(userAgent string) string {
	name, _, _ := strings.Cut(userAgent, "/")
	name, _, _ = strings.Cut(name, " ")
	for _, r := range name {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r)) {
			return ""
		}
	}
	if name == "" {
		return ""
	}
	return "“" + name[:min(len(name), maxProduct)] + "”"
}
