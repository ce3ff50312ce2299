package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// navigation is docs/nav.yaml: the pages of the manual's site, in order.
type navigation struct {
	Roles []struct {
		Title string   `yaml:"title"`
		Text  string   `yaml:"text"`
		Pages []string `yaml:"pages"`
	} `yaml:"roles"`
	Sections []struct {
		Title string   `yaml:"title"`
		For   string   `yaml:"for"`
		Pages []string `yaml:"pages"`
	} `yaml:"sections"`
}

// TestNavigation checks that the manual links to each of its pages once (DL-05).
func TestNavigation(t *testing.T) {
	const docs = "../../docs"
	text, err := os.ReadFile(docs + "/nav.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	err = fs.WalkDir(os.DirFS(docs), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path == "site" {
			return fs.SkipDir // the source of the site, not a page
		}
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 40 {
		t.Fatalf("found %d pages only", len(pages))
	}
	for _, finding := range lost(string(text), pages) {
		t.Errorf("DL-05: docs/nav.yaml: %s", finding)
	}
}

// lost returns the errors of a navigation for these pages.
func lost(text string, pages []string) (bad []string) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	var nav navigation
	if err := decoder.Decode(&nav); err != nil {
		return []string{err.Error()}
	}
	times := map[string]int{}
	for i, s := range nav.Sections {
		if s.Title == "" || s.For == "" {
			bad = append(bad, fmt.Sprintf("section %d does not say its title, or for whom it is", i+1))
		}
		for _, p := range s.Pages {
			if times[p]++; times[p] == 2 {
				bad = append(bad, p+" is in it twice")
			}
			if !slices.Contains(pages, p) {
				bad = append(bad, "there is no docs/"+p)
			}
		}
	}
	for _, r := range nav.Roles {
		for _, p := range r.Pages {
			if !slices.Contains(pages, p) {
				bad = append(bad, fmt.Sprintf("%q begins with docs/%s, which there is not", r.Title, p))
			}
		}
	}
	for _, p := range pages {
		if times[p] == 0 {
			bad = append(bad, "docs/"+p+" is in no section")
		}
	}
	return bad
}

func TestNavigationRuleCanFail(t *testing.T) {
	text := "roles:\n- {title: R, text: T, pages: [no.md]}\n" +
		"sections:\n- {title: A, for: all, pages: [a.md, no.md, a.md]}\n- {title: B}\n"
	want := []string{
		"there is no docs/no.md", "a.md is in it twice",
		"section 2 does not say its title, or for whom it is", `"R" begins with docs/no.md, which there is not`,
		"docs/b.md is in no section",
	}
	if got := lost(text, []string{"a.md", "b.md"}); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	got := lost("sections: []\npages: []\n", nil)
	if len(got) != 1 || !strings.Contains(got[0], "field pages not found") {
		t.Errorf("an unknown key: got %q", got)
	}
}
