package trust

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

const (
	maxTemplate = 512 // bytes
	maxName     = 255 // bytes of the resulting name
)

// template builds a name from claims: text that contains {{.claim}}.
type template []piece

// piece is text, or the name of a claim.
type piece struct{ text, claim string }

func compileTemplate(source string) (out template, err error) {
	if len(source) > maxTemplate {
		return nil, fmt.Errorf("is longer than %d bytes", maxTemplate)
	}
	claims := 0
	for rest := source; rest != ""; {
		before, after, found := strings.Cut(rest, "{{")
		if before != "" {
			out = append(out, piece{text: before})
		}
		if !found {
			break
		}
		name, tail, closed := strings.Cut(after, "}}")
		name = strings.TrimSpace(name)
		if !closed || !strings.HasPrefix(name, ".") || len(name) < 2 || strings.ContainsAny(name, "{} |") {
			return nil, errors.New("has {{ without a claim as in {{.sub}}")
		}
		out, rest = append(out, piece{claim: name[1:]}), tail
		claims++
	}
	if claims == 0 {
		return nil, errors.New("names no claim: all would have one name")
	}
	return out, nil
}

var (
	errNoClaim = errors.New("each claim of the subject template must be a text")
	errName    = errors.New("the subject template makes a name that is too long, or has characters that cannot be shown")
)

// name fills in the template.
func (t template) name(claims map[string]any) (string, error) {
	var b strings.Builder
	for _, p := range t {
		if p.claim == "" {
			b.WriteString(p.text)
			continue
		}
		s, ok := text(lookup(claims, p.claim))
		if !ok || s == "" {
			return "", errNoClaim
		}
		b.WriteString(s)
	}
	if name := b.String(); len(name) <= maxName && printable(name) {
		return name, nil
	}
	return "", errName
}

func printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0
}
