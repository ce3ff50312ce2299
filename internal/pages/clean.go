package pages

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"unicode"

	"github.com/mcp-authd/mcp-authd/internal/label"
)

// Limits of shown untrusted texts, in characters.
const (
	maxName    = 80
	maxTool    = 40 // too short for a sentence in the characters of tool names
	maxText    = 600
	maxAddress = 300
	maxLines   = 40 // of a multi-line text
)

func cleanName(s string) string { return label.Clean(s, maxName) }
func cleanText(s string) string { return label.Clean(s, maxText) }

// cleanClaim is cleanName for a name chosen by an application or a user, which pages show in
// quotation marks.
func cleanClaim(s string) string { return label.Claim(s, maxName) }

// cleanTool is cleanClaim for the name of a tool, which an application may have invented.
func cleanTool(s string) string { return label.Claim(s, maxTool) }

func cleanAddress(s string) string { return label.Clean(s, maxAddress) }

// cleanExact returns a text in which every character counts. Invisible characters are spelled out.
func cleanExact(s string) string {
	var out strings.Builder
	for i, r := range []rune(s) {
		switch {
		case i == maxText:
			return out.String() + "…"
		case r == ' ':
			out.WriteRune('␣')
		case label.Blank(r), label.Invisible(r), unicode.Is(unicode.M, r), r == unicode.ReplacementChar:
			fmt.Fprintf(&out, `\u{%x}`, r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// maxIndent limits the indentation of a line, in spaces.
const maxIndent = 32

// cleanLines returns a multi-line text with its lines and their indentation.
func cleanLines(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, line := range lines[:min(len(lines), maxLines)] {
		line = strings.ReplaceAll(line, "\t", "    ")
		indent := min(len(line)-len(strings.TrimLeft(line, " ")), maxIndent)
		lines[i] = strings.Repeat(" ", indent) + cleanText(line)
	}
	return strings.Join(lines[:min(len(lines), maxLines)], "\n")
}

// link returns an untrusted address as a live link, or "" if it must not be one. html/template
// would allow only http, https and mailto, but applications on a computer use their own schemes.
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

// unbecoming reports characters that are invalid in addresses, but that browsers skip or repair.
func unbecoming(r rune) bool {
	return r <= ' ' || r > unicode.MaxASCII || strings.ContainsRune("\x7f\"<>\\^`{|}", r)
}

// executable reports schemes that run or show content in a browser, or access the machine, instead
// of opening an application.
func executable(scheme string) bool {
	switch strings.ToLower(strings.TrimSuffix(scheme, ":")) {
	case "javascript", "vbscript", "livescript", "data", "blob", "filesystem", "file", "about", "view-source",
		"chrome", "chrome-extension", "moz-extension", "resource", "jar", "ws", "wss", "ftp", "intent",
		"content", "mhtml", "res", "ms-appx-web", "search-ms", "ms-msdt":
		return true
	}
	return false
}

// privateScheme returns the scheme if host is a private-use scheme ("cursor:"), else "".
func privateScheme(host string) string {
	scheme, ok := strings.CutSuffix(host, ":")
	if !ok || strings.ContainsAny(scheme, ":]") {
		return ""
	}
	return scheme
}
