package conformance

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const number = `(?:AS|RS|CL|SP|PE|OB|DL)-[0-9]{2,3}`

var (
	citation   = regexp.MustCompile(`\b` + number + `\b`)
	definition = regexp.MustCompile(`^\| (` + number + `) \| ([^ |]+) \| `)
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)`)
)

// requirement is a line of docs/requirements.md.
type requirement struct{ id, level string }

// evidence holds the places in the code and the tests that cite a requirement.
type evidence struct{ files, tests map[string]bool }

// collect reads the tree.
func collect(root string) (map[string]*evidence, error) {
	found := map[string]*evidence{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if b := d.Name(); rel != "." && (strings.HasPrefix(b, ".") || b == "node_modules") ||
				rel == filepath.Join("internal", "conformance") {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".go", ".js", ".mjs", ".ts"}, path.Ext(name)) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		scan(found, filepath.ToSlash(rel), string(text))
		return nil
	})
	return found, err
}

// scan collects the citations of a file. A citation in a test counts for the test function above
// it.
func scan(found map[string]*evidence, name, text string) {
	isTest := strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/") ||
		strings.HasPrefix(name, "internal/storage/storagetest/")
	funcs := testFunc.FindAllStringSubmatchIndex(text, -1)
	for _, m := range citation.FindAllStringIndex(text, -1) {
		id := text[m[0]:m[1]]
		e := found[id]
		if e == nil {
			e = &evidence{map[string]bool{}, map[string]bool{}}
			found[id] = e
		}
		if !isTest {
			e.files[fmt.Sprintf("%s:%d", name, 1+strings.Count(text[:m[0]], "\n"))] = true
			continue
		}
		test := name
		for _, f := range funcs {
			if f[0] < m[0] || leads(text[m[1]:f[0]]) {
				test = name + " " + text[f[2]:f[3]]
			}
		}
		e.tests[test] = true
	}
}

// leads reports whether text is the rest of a doc comment, so that a citation belongs to the
// function that follows.
func leads(text string) bool {
	_, text, _ = strings.Cut(text, "\n")
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "//") {
			return false
		}
	}
	return true
}

// The second columns of those tables of docs/conformance.md whose first cells hold only requirement
// numbers, lists and ranges of them.
const (
	untested  = "why"        // not tested
	elsewhere = "decided by" // a library decides it, or the absence of code
)

// listed reads the requirements of the tables with a second column.
func listed(text, column string) map[string]bool {
	out := map[string]bool{}
	table := false
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		switch {
		case len(cells) < 3:
			table = false
		case strings.TrimSpace(cells[1]) == "requirements" && strings.TrimSpace(cells[2]) == column:
			table = true
		case strings.TrimSpace(cells[1]) == "requirements":
			table = false
		case table && citation.MatchString(cells[1]):
			for _, part := range strings.Split(cells[1], ",") {
				maps.Copy(out, span(strings.TrimSpace(part)))
			}
		}
	}
	return out
}

// span parses "AS-01" and "AS-01 to AS-05".
func span(text string) map[string]bool {
	out := map[string]bool{}
	first, last, ok := strings.Cut(text, " to ")
	if !ok {
		return map[string]bool{text: true}
	}
	var from, to int
	fmt.Sscanf(first[3:], "%d", &from)
	fmt.Sscanf(last[3:], "%d", &to)
	for i := from; i <= to; i++ {
		out[fmt.Sprintf("%s-%02d", first[:2], i)] = true
	}
	return out
}

// write returns the table, in the order of the requirements. A requirement that is cited but not
// tested is not claimed.
func write(all []requirement, found map[string]*evidence, others map[string]bool) string {
	var b strings.Builder
	b.WriteString("| requirement | level | in the code | test |\n|---|---|---|---|\n")
	for _, r := range all {
		if e := found[r.id]; e != nil && len(e.tests) > 0 {
			places := slices.Sorted(maps.Keys(e.files))
			if others[r.id] {
				places = append(places, "[elsewhere](#decided-elsewhere)")
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.id, r.level, strings.Join(places, "<br>"), list(e.tests))
		}
	}
	return b.String()
}

func list(set map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(set)), "<br>") }
