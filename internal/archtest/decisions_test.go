package archtest

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pagetest"
)

// TestDecisions checks that docs/decisions.md links to each decision, and that each decision has a
// date (DL-05).
func TestDecisions(t *testing.T) {
	text, err := os.ReadFile("../../docs/nav.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var nav navigation
	if err := yaml.Unmarshal(text, &nav); err != nil {
		t.Fatal(err)
	}
	var areas []string
	pages := map[string]string{}
	for _, s := range nav.Sections {
		for _, p := range s.Pages {
			if strings.HasPrefix(p, "decisions/") {
				page, err := os.ReadFile("../../docs/" + p)
				if err != nil {
					t.Fatal(err)
				}
				areas, pages[p] = append(areas, p), string(page)
			}
		}
	}
	if len(areas) < 15 {
		t.Fatalf("found %d pages of decisions", len(areas))
	}
	for _, p := range areas {
		for _, title := range undated(pages[p]) {
			t.Errorf("DL-05: docs/%s: %q does not say when it was decided", p, title)
		}
	}
	const refresh = "go test ./internal/archtest -run TestDecisions"
	pagetest.Is(t, *update, "decisions.md", decisionsPage(areas, pages, refresh), refresh)
}

func TestDecisionRuleCanFail(t *testing.T) {
	text := "# Decisions: a\n\nAbout a.\n\n## One\n\nYes.\n\n*Decided 2026-11-24.*\n\n## Two\n\nNo.\n"
	if got := undated(text); len(got) != 1 || got[0] != "Two" {
		t.Errorf("got %q, want Two alone", got)
	}
	got := decisionsPage([]string{"decisions/a.md"}, map[string]string{"decisions/a.md": text}, "")
	want := "\n## [A](decisions/a.md)\n\nAbout a.\n\n* [One](decisions/a.md#one)\n* [Two](decisions/a.md#two)\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want it to end in %q", got, want)
	}
}

var (
	decision = regexp.MustCompile(`(?m)^## (.*)$`)
	dated    = regexp.MustCompile(`(?m)^\*Decided 20\d\d-\d\d-\d\d`)
)

// undated returns the decisions of a page without a date.
func undated(page string) (titles []string) {
	at := decision.FindAllStringSubmatchIndex(page, -1)
	for i, m := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if !dated.MatchString(page[m[0]:end]) {
			titles = append(titles, page[m[2]:m[3]])
		}
	}
	return titles
}

// decisionsPage returns the page that links to all decisions, in navigation order.
func decisionsPage(areas []string, pages map[string]string, refresh string) string {
	var b strings.Builder
	b.WriteString("# Decisions\n\n<!-- Made by: " + refresh + " -update -->\n\n")
	b.WriteString(pagetest.Words("Each decision with its reason and its price, on a page for each area. An entry that " +
		"is no longer true is changed or removed, not contradicted further down; its date is that of the decision."))
	for _, p := range areas {
		title, rest, _ := strings.Cut(strings.TrimPrefix(pages[p], "# Decisions: "), "\n")
		about, _, _ := strings.Cut(strings.TrimSpace(rest), "\n\n")
		fmt.Fprintf(&b, "\n## [%s%s](%s)\n\n%s\n\n", strings.ToUpper(title[:1]), title[1:], p, about)
		for _, m := range decision.FindAllStringSubmatch(pages[p], -1) {
			b.WriteString(item(fmt.Sprintf("[%s](%s#%s)", m[1], p, anchors(m[0])[0])))
		}
	}
	return b.String()
}

// item formats a list item, in lines of at most proseColumns if its words permit.
func item(text string) string {
	var b strings.Builder
	line := "*"
	for word := range strings.FieldsSeq(text) {
		if strings.TrimSpace(line) != "*" && len(line)+1+len(word) > proseColumns {
			b.WriteString(line + "\n")
			line = " "
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}
