package web

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"unicode"

	"github.com/mcp-authd/mcp-authd/internal/label"
)

// How much of a supplied text is shown, in characters.
const (
	maxName    = 80
	maxTool    = 40 // too little for a sentence that the letters, dots and underscores of a tool's name can spell
	maxText    = 600
	maxAddress = 300
	maxLines   = 40 // of a text that has lines
)

func cleanName(s string) string { return label.Clean(s, maxName) }
func cleanText(s string) string { return label.Clean(s, maxText) }

// cleanClaim is cleanName for the name that an application or a person chose, which stands between
// quotation marks of ours.
func cleanClaim(s string) string { return label.Claim(s, maxName) }

// cleanTool is cleanClaim for the name of a tool, which an application may have made up.
func cleanTool(s string) string { return label.Claim(s, maxTool) }

func cleanAddress(s string) string { return label.Clean(s, maxAddress) }

// cleanExact is a text of which each character counts: what cannot be seen is spelled out.
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

// maxIndent bounds by how much a line is indented, in spaces.
const maxIndent = 32

// cleanLines is a text whose lines are kept, with their indentation.
func cleanLines(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, line := range lines[:min(len(lines), maxLines)] {
		line = strings.ReplaceAll(line, "\t", "    ")
		indent := min(len(line)-len(strings.TrimLeft(line, " ")), maxIndent)
		lines[i] = strings.Repeat(" ", indent) + cleanText(line)
	}
	return strings.Join(lines[:min(len(lines), maxLines)], "\n")
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
