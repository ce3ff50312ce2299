package provider

import (
	"encoding/base64"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// hidden replaces each secret in a text.
const hidden = "[secret]"

// hide replaces secrets in untrusted text, in every spelling that a server could repeat: literal,
// percent-encoded as in forms and paths, escaped for HTML or JSON, and in Base64 as in Basic
// authentication.
func hide(text string, secrets ...string) string {
	for _, secret := range secrets {
		if len(secret) < minSecret {
			continue
		}
		spelled, err := regexp.Compile(spellings(secret))
		if err != nil {
			return hidden
		}
		text = base64Run.ReplaceAllStringFunc(text, func(run string) string {
			for i := range min(4, len(run)) { // the offset within a group of four is unknown
				if spelled.MatchString(decoded(run[i:])) {
					return hidden
				}
			}
			return run
		})
		text = spelled.ReplaceAllLiteralString(text, hidden)
	}
	return text
}

// minSecret is the length of the shortest secret that is hidden. Shorter strings occur in ordinary
// words.
const minSecret = 4

// base64Run matches text long enough to be a secret in Base64.
var base64Run = regexp.MustCompile(`[A-Za-z0-9+/_-]{8,}`)

// decoded decodes Base64 of either alphabet.
func decoded(run string) string {
	run = strings.NewReplacer("-", "+", "_", "/").Replace(run)
	b, _ := base64.RawStdEncoding.DecodeString(run) // the part before an error counts
	return string(b)
}

// spellings returns an expression for all spellings of a secret, character by character.
func spellings(secret string) string {
	var b strings.Builder
	for _, r := range secret {
		b.WriteString("(?:" + regexp.QuoteMeta(string(r)) + "|")
		for _, c := range utf8.AppendRune(nil, r) {
			b.WriteString("(?i:%(?:25)*" + hex(int64(c), 2) + ")") // also encoded twice
		}
		b.WriteString("|&#" + strconv.Itoa(int(r)) + ";|(?i:&#x0*" + hex(int64(r), 1) + ";)|" +
			`(?i:\\u` + hex(int64(r), 4) + `)|\\` + regexp.QuoteMeta(string(r)))
		if r == ' ' {
			b.WriteString(`|\+|%(?:25)*2[bB]`)
		}
		if escaped := html.EscapeString(string(r)); escaped != string(r) {
			b.WriteString("|" + regexp.QuoteMeta(escaped))
		}
		b.WriteString(")")
	}
	return b.String()
}

// hex returns n in hexadecimal with at least the given number of digits.
func hex(n int64, digits int) string {
	s := strconv.FormatInt(n, 16)
	return strings.Repeat("0", max(digits-len(s), 0)) + s
}
