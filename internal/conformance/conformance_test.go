package conformance

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table into docs/conformance.md")

const (
	root     = "../.."
	document = root + "/docs/conformance.md"
	begin    = "<!-- The table below is written by: go test ./internal/conformance -update -->"
)

var (
	requirement = regexp.MustCompile(`\b(AS|RS|CL|SP)-[0-9]{2,3}\b`)
	testFunc    = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)`)
)

// row is what the tree says about one requirement.
type row struct{ files, tests map[string]bool }

// TestTable fails when docs/conformance.md does not say what the tree says: which
// file holds a requirement (its comments cite the id, or else the package of its
// test does the work) and which test shows it.
func TestTable(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(text), begin)
	if !ok {
		t.Fatalf("%s has no line %q", document, begin)
	}
	want := head + begin + "\n\n" + table(collect(t))
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Error("docs/conformance.md is out of date; run: go test ./internal/conformance -update")
	}
}

func collect(t *testing.T) map[string]*row {
	rows := map[string]*row{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if b := d.Name(); name != root && (strings.HasPrefix(b, ".") || b == "node_modules" || b == "conformance" && strings.Contains(name, "internal")) {
				return filepath.SkipDir
			}
			return nil
		}
		ext := path.Ext(name)
		if ext != ".go" && ext != ".js" && ext != ".mjs" && ext != ".ts" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		scan(rows, filepath.ToSlash(rel), string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func scan(rows map[string]*row, name, text string) {
	isTest := strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "storage/storagetest/")
	funcs := testFunc.FindAllStringSubmatchIndex(text, -1)
	for _, m := range requirement.FindAllStringIndex(text, -1) {
		id := text[m[0]:m[1]]
		r := rows[id]
		if r == nil {
			r = &row{map[string]bool{}, map[string]bool{}}
			rows[id] = r
		}
		if !isTest {
			r.files[name] = true
			continue
		}
		test := name
		for _, f := range funcs {
			if f[0] < m[0] {
				test = name + " " + text[f[2]:f[3]]
			}
		}
		r.tests[test] = true
	}
}

func table(rows map[string]*row) string {
	var b strings.Builder
	b.WriteString("| requirement | file | test |\n|---|---|---|\n")
	ids := slices.SortedFunc(maps.Keys(rows), func(a, c string) int {
		if a[:2] != c[:2] {
			return strings.Compare(a, c)
		}
		x, _ := strconv.Atoi(a[3:])
		y, _ := strconv.Atoi(c[3:])
		return x - y
	})
	for _, id := range ids {
		r := rows[id]
		if len(r.tests) == 0 {
			continue // cited but shown by no test: not claimed
		}
		files := r.files
		if len(files) == 0 {
			files = map[string]bool{}
			for t := range r.tests {
				if dir := path.Dir(strings.Fields(t)[0]); !strings.HasPrefix(dir, "test") {
					files[strings.TrimSuffix(dir, "/storagetest")+"/"] = true
				}
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", id, list(files), list(r.tests))
	}
	return b.String()
}

func list(set map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(set)), "<br>") }
