package archtest

import (
	"go/ast"
	"regexp"
	"strings"
)

var (
	// fixedPlural finds a number with a noun that is always in the plural.
	fixedPlural = regexp.MustCompile(`%d( [a-z]+){0,2} ([a-z]+s|people)\b`)
	printed     = regexp.MustCompile(`^(cmd|internal|attempt)/`) // whose sentences the commands print
	// ofOne are words behind a number that name one thing by it; bound says that the number is a limit of ours.
	ofOne = regexp.MustCompile(`%d( [a-z]+)? (is|has|was|passed|ms)\b`)
	bound = regexp.MustCompile(`at (most|least)|(more|longer|larger) than|up to|between|needs|1 to %d|has %d bytes|of %d bytes`)
)

// countedNouns: a count has the form of its noun that goes with it, from label.Count.
func countedNouns(m module) (bad []string) {
	for _, f := range m.files {
		if f.test() || strings.Contains(f.path, "testkit") || !printed.MatchString(f.path) {
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
