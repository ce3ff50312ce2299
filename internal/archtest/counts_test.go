package archtest

import (
	"go/ast"
	"regexp"
	"strings"
)

var (
	// fixedPlural finds a number with a noun that is always plural.
	fixedPlural = regexp.MustCompile(`%d( [a-z]+){0,2} ([a-z]+s|people)\b`)
	printed     = regexp.MustCompile(`^(cmd|internal)/`) // the commands print their sentences
	// ofOne finds a number followed by words that treat it as one thing. bound finds numbers that
	// are limits.
	ofOne = regexp.MustCompile(`%d( [a-z]+)? (is|has|was|passed|ms)\b`)
	bound = regexp.MustCompile(`at (most|least)|(more|longer|larger) than|up to|between|needs|1 to %d|has %d bytes|of %d bytes`)
)

// countedNouns checks that a count agrees with its noun, by using label.Count.
func countedNouns(m module) (bad []string) {
	for _, f := range m.files {
		if f.test() || strings.Contains(f.path, "testkit") ||
			within(f.dir(), "internal/storage/storagetest") || !printed.MatchString(f.path) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			e, ok := n.(*ast.BasicLit)
			if !ok {
				return true
			}
			text := ofOne.ReplaceAllString(e.Value, "")
			if fixedPlural.MatchString(text) && !bound.MatchString(text) {
				bad = append(bad, f.path+" has "+e.Value+": use label.Count")
			}
			return true
		})
	}
	return bad
}
