package web

import (
	"html/template"
	"net/url"
	"strings"
	"unicode"

	"github.com/mcp-authd/mcp-authd/internal/label"
)

// How much of a supplied text is shown, in characters.
const (
	maxName    = 80
	maxText    = 600
	maxAddress = 300
)

func cleanName(s string) string { return clean(s, maxName) }
func cleanText(s string) string { return clean(s, maxText) }

// cleanClaim is cleanName for the name that an application gave itself, which stands between
// quotation marks of ours: it has none, of any kind, with which it could end them and go on
// in our words. An apostrophe within a word stays.
func cleanClaim(s string) string { return cleanName(unquote(s)) }

func unquote(s string) string {
	runes := []rune(s)
	var out []rune
	for i, r := range runes {
		apostrophe := (r == '\'' || r == '’') && i > 0 && i+1 < len(runes) && unicode.IsLetter(runes[i-1]) &&
			unicode.IsLetter(runes[i+1])
		if !quotation(r) || apostrophe {
			out = append(out, r)
		}
	}
	return string(out)
}

// quotation reports quotation marks, and what looks like one.
func quotation(r rune) bool {
	return unicode.In(r, unicode.Quotation_Mark, unicode.Pi, unicode.Pf) ||
		strings.ContainsRune("`´ʹʺʻʼʽˮ˝ʼ′″‴‵‶‷〃ʾʿ״׳", r)
}
func cleanAddress(s string) string { return clean(s, maxAddress) }

// clean makes supplied text fit to be read (AS-48): white space of every kind becomes one
// space, characters that are invisible or reorder the line are dropped (a
// right-to-left override shows "exe.jpg" where "gpj.exe" stands), stacked marks are
// limited (they would paint over our own words), and what is too long ends in an
// ellipsis. Escaping is left to html/template.
func clean(s string, limit int) string {
	if len(s) <= limit && isClean(s) {
		return s
	}
	var out []rune
	marks, space := 0, false
	for _, r := range s {
		switch {
		case label.Blank(r):
			space = len(out) > 0
			continue
		case label.Invisible(r):
			continue
		case unicode.Is(unicode.M, r):
			if marks++; marks > 2 || len(out) == 0 || space {
				continue
			}
		default:
			marks = 0
		}
		if space {
			out, space = append(out, ' '), false
		}
		if out = append(out, r); len(out) > limit {
			return strings.TrimRight(string(out[:limit-1]), " ") + "…"
		}
	}
	return string(out)
}

// isClean reports text of visible ASCII with single spaces within: most of it is.
func isClean(s string) bool {
	space := true
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || space && s[i] == ' ' {
			return false
		}
		space = s[i] == ' '
	}
	return s == "" || !space
}

// link makes a live link of an address that a client had a hand in, or "" when it
// must not be one. html/template would let only http, https and mailto through;
// applications on a computer are opened by schemes of their own.
func link(raw string) template.URL {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" || executable(u.Scheme+":") || strings.ContainsFunc(raw, unbecoming) {
		return ""
	}
	if (u.Scheme == "http" || u.Scheme == "https") && u.Host == "" {
		return ""
	}
	return template.URL(raw) // #nosec G203 -- checked above; attribute escaping still applies
}

// unbecoming reports what no address contains, but browsers skip or mend.
func unbecoming(r rune) bool {
	return r <= ' ' || r > unicode.MaxASCII || strings.ContainsRune("\x7f\"<>\\^`{|}", r)
}

// executable reports the schemes that run or show their own content in a browser,
// or reach into the machine, instead of opening an application.
func executable(scheme string) bool {
	switch strings.ToLower(strings.TrimSuffix(scheme, ":")) {
	case "javascript", "vbscript", "livescript", "data", "blob", "filesystem", "file", "about", "view-source",
		"chrome", "chrome-extension", "moz-extension", "resource", "jar", "ws", "wss", "ftp", "intent",
		"content", "mhtml", "res", "ms-appx-web", "search-ms", "ms-msdt":
		return true
	}
	return false
}

// privateScheme returns the scheme when host stands for one ("cursor:"), else "".
func privateScheme(host string) string {
	scheme, ok := strings.CutSuffix(host, ":")
	if !ok || strings.ContainsAny(scheme, ":]") {
		return ""
	}
	return scheme
}
