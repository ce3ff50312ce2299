package trust

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/condition"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	maxPattern = 512 // bytes of a glob or a comparison value
	maxMatches = 32  // per entry
)

// matcher is a compiled rule about claims.
type matcher struct {
	storage.TrustMatch
	glob      *regexp.Regexp
	condition *condition.Condition
}

func compileMatch(m storage.TrustMatch) (matcher, error) {
	out := matcher{TrustMatch: m}
	given := 0
	for _, s := range []string{m.Equals, m.Glob, m.Expression} {
		if s != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return out, errors.New("needs exactly one of equals, glob and expression")
	case (m.Claim == "") != (m.Expression != ""):
		return out, errors.New("needs a claim for equals and glob, and none for an expression")
	case len(m.Claim) > maxPattern || len(m.Equals) > maxPattern || len(m.Glob) > maxPattern:
		return out, fmt.Errorf("is longer than %d bytes", maxPattern)
	}
	var err error
	switch {
	case m.Glob != "":
		out.glob, err = compileGlob(m.Glob)
	case m.Expression != "":
		if out.condition, err = condition.Compile(m.Expression); err != nil {
			return out, fmt.Errorf("expression: %w", err)
		}
		if open := out.condition.Open; len(open) > 0 {
			return out, fmt.Errorf("expression: holds for assertions without the claim %s; add: claims.%s != nil",
				open[0], open[0])
		}
	}
	return out, err
}

// compileGlob compiles a glob. * matches any characters except / and :, which separate the parts of
// platforms' claims. ** matches any characters, and ? one character except / and :. If * crossed a
// separator, the value of one part could pass for the next part.
func compileGlob(glob string) (*regexp.Regexp, error) {
	var b strings.Builder
	for rest := glob; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "***"):
			return nil, errors.New("glob: three stars mean nothing")
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`.*`)
			rest = rest[2:]
		case rest[0] == '*':
			b.WriteString(`[^/:]*`)
			rest = rest[1:]
		case rest[0] == '?':
			b.WriteString(`[^/:]`)
			rest = rest[1:]
		default:
			next := strings.IndexAny(rest, "*?")
			if next < 0 {
				next = len(rest)
			}
			b.WriteString(regexp.QuoteMeta(rest[:next]))
			rest = rest[next:]
		}
	}
	re, err := regexp.Compile(`(?s)\A` + b.String() + `\z`)
	if err != nil {
		return nil, errors.New("glob: is not valid UTF-8, or too complex")
	}
	return re, nil
}

// holds reports whether the claims match. One matching element of a list is sufficient.
func (m *matcher) holds(claims map[string]any) bool {
	if m.condition != nil {
		return m.condition.Holds(claims)
	}
	return slices.ContainsFunc(texts(lookup(claims, m.Claim)), func(s string) bool {
		return m.glob == nil && s == m.Equals || m.glob != nil && m.glob.MatchString(s)
	})
}

// describe returns the rule in words.
func (m *matcher) describe() string {
	switch {
	case m.condition != nil:
		return m.Expression
	case m.glob != nil:
		return m.Claim + " like " + m.Glob
	default:
		return m.Claim + " = " + m.Equals
	}
}

// lookup finds a claim by name, or by a path of names separated by dots. A name may contain dots
// itself (kubernetes.io); the longest matching name is tried first.
func lookup(claims map[string]any, path string) any {
	if v, ok := claims[path]; ok {
		return v
	}
	for i := strings.LastIndexByte(path, '.'); i > 0; i = strings.LastIndexByte(path[:i], '.') {
		if inner, ok := claims[path[:i]].(map[string]any); ok {
			return lookup(inner, path[i+1:])
		}
	}
	return nil
}

// texts returns the claim as texts: a string, number or boolean, or the elements of a list of
// those.
func texts(v any) []string {
	if list, ok := v.([]any); ok {
		var out []string
		for _, one := range list {
			if s, ok := text(one); ok {
				out = append(out, s)
			}
		}
		return out
	}
	if s, ok := text(v); ok {
		return []string{s}
	}
	return nil
}

func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int:
		return strconv.Itoa(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}
