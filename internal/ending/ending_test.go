package ending

import (
	"flag"
	"os"
	"strings"
	"testing"
)

const (
	page  = "../../docs/threat-model.md"
	begin = "<!-- ending: go test ./internal/ending -update -->\n"
	end   = "<!-- end of ending -->"
)

var update = flag.Bool("update", false, "write the table into the threat model")

// TestTable checks that each row has each item once, and that the threat model contains the table.
func TestTable(t *testing.T) {
	t.Log("\n" + Markdown())
	seen := map[Act]bool{}
	for _, r := range Table() {
		for _, w := range Everything() {
			n := count(r.Ends, w)
			for _, k := range r.Keeps {
				n += count(k.Waiting, w)
			}
			if n != 1 {
				t.Errorf("%s: %s is named %d times, want once", r.Act, w, n)
			}
		}
		if seen[r.Act] {
			t.Errorf("%s: there are two rows", r.Act)
		}
		seen[r.Act] = true
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	_, after, found := strings.Cut(rest, end)
	want := before + begin + Markdown() + end + after
	switch {
	case !found:
		t.Fatalf("%s has no place for the table", page)
	case want == string(text):
	case *update:
		err = os.WriteFile(page, []byte(want), 0o644)
	default:
		t.Errorf("%s is not up to date: run go test ./internal/ending -update", page)
	}
	if err != nil {
		t.Error(err)
	}
}

func count(list []Waiting, w Waiting) (n int) {
	for _, x := range list {
		if x == w {
			n++
		}
	}
	return n
}
