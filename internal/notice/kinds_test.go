package notice

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestKindsInDocs checks that docs/operating/accounts.md lists exactly the names of the kinds,
// because receivers of notices filter by them.
func TestKindsInDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/operating/accounts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\nKinds are ")
	list, _, _ := strings.Cut(rest, "\n\n")
	var documented []string
	for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(list, -1) {
		documented = append(documented, m[1])
	}
	slices.Sort(documented)
	var sent []string
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		sent = append(sent, string(k))
	}
	if !slices.Equal(documented, sent) {
		t.Errorf("docs/operating/accounts.md names the kinds\n%v, and these are sent:\n%v", documented, sent)
	}
}
