package session

import "strings"

// maxAgent bounds how much of a User-Agent is looked at, and maxProduct what is kept of one that
// no list knows.
const maxAgent, maxProduct = 512, 32

// mark is what tells a browser or a system in a User-Agent, and its name.
type mark struct{ text, name string }

// Most browsers call themselves by the names of others, too, so the order matters.
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

// Agent says in words which browser a User-Agent is of, such as "Chrome on Windows"; of another
// program it is the name, in quotation marks: a program names itself as it likes, and all other words
// are ours. It is "" when it says nothing. It is for people to recognize what is theirs, and
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

// product is the name of the first product of a User-Agent (RFC 9110 §10.1.5), quoted.
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
