package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// sleeps lists the test code that may wait for time: how often in each file, and why it cannot wait
// for an event. The list may only shrink. All other code uses internal/testkit/wait.
var sleeps = map[string]struct {
	times int
	why   string
}{
	"bench/footprint/installation.go": {1, "the first answer is measured to a millisecond"},
	"bench/internal/client/person.go": {1, "a page says how long its reader must wait"},
	"bench/meter_test.go":             {1, "PostgreSQL publishes its statistics once a second"},
	"bench/sight_test.go":             {1, "a time without requests is part of the measurement"},
	"internal/testkit/wait/wait.go":   {2, "the one place that polls, and the clock of a bubble"},
	"test/chaos/cluster_test.go":      {1, "pauses between a client's steps are part of the load"},
}

// maxSleeps limits the total, including package wait.
const maxSleeps = 20

func TestSleepsAreInFiles(t *testing.T) {
	for path := range sleeps {
		if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
			t.Errorf("delete the entry: %v", err)
		}
	}
}

// eventsNotTime checks for waits, because a test that waits for time wastes it on a fast machine,
// and fails by chance on a slow one.
func eventsNotTime(m module) (bad []string) {
	total := 0
	for _, f := range m.files {
		if !f.test() && !anyWithin(f.dir(), []string{testkit, "test", "bench"}) {
			continue
		}
		n := waitsForTime(f.syntax)
		if allowed := sleeps[f.path].times; n > allowed {
			bad = append(bad, fmt.Sprintf("%s waits for time %d times, %d are allowed: see internal/testkit/wait", f.path,
				n, allowed))
		} else if n < allowed {
			bad = append(bad, fmt.Sprintf("%s waits for time %d times: lower its number from %d", f.path, n, allowed))
		}
		total += n
	}
	if total > maxSleeps {
		bad = append(bad, fmt.Sprintf("tests wait for time in %d places, the limit is %d", total, maxSleeps))
	}
	return bad
}

// waitsForTime counts statements that only wait for time: calls of time.Sleep, receives from
// time.After or time.Tick outside a select, and selects with no other event. It does not follow
// timers in variables.
func waitsForTime(f *ast.File) (n int) {
	local := importedAs(f, "time")
	calls := func(e ast.Node, names ...string) bool {
		c, ok := e.(*ast.CallExpr)
		if !ok {
			return false
		}
		s, ok := c.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains(names, s.Sel.Name) {
			return false
		}
		x, ok := s.X.(*ast.Ident)
		return ok && slices.Contains(local, x.Name)
	}
	receives := func(node ast.Node) bool {
		r, ok := node.(*ast.UnaryExpr)
		return ok && r.Op == token.ARROW && calls(r.X, "After", "Tick")
	}
	inSelect := map[ast.Node]bool{} // another event may come first
	ast.Inspect(f, func(node ast.Node) bool {
		if s, ok := node.(*ast.SelectStmt); ok {
			events := 0
			for _, c := range s.Body.List {
				waits := false
				if comm := c.(*ast.CommClause).Comm; comm != nil {
					ast.Inspect(comm, func(node ast.Node) bool {
						if receives(node) {
							waits, inSelect[node] = true, true
						}
						return true
					})
				}
				if !waits {
					events++
				}
			}
			if len(s.Body.List) > 0 && events == 0 {
				n++
			}
		}
		if calls(node, "Sleep") || receives(node) && !inSelect[node] {
			n++
		}
		return true
	})
	return n
}
