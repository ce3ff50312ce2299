package archtest

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// naming lists the file types that name pages.
var naming = []string{".go", ".yaml", ".txtar", ".json", ".sh", ".service", ".html", ".js", ".css"}

// TestFilesNamePagesThatThereAre checks that pages of the manual and headings that programs print,
// deliveries contain or comments name exist (DL-05).
func TestFilesNamePagesThatThereAre(t *testing.T) {
	tree, named := readTree(t), 0
	for _, folder := range []string{
		"audit", "authserver", "cmd", "dcr", "deploy", "examples", "internal", "mcpclient", "mcpresource", "mcpserver",
		"test", "thirdparty", "web",
	} {
		err := fs.WalkDir(tree.root, folder, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains([]string{"node_modules", "archtest"}, d.Name()):
				return fs.SkipDir
			case d.IsDir() || !slices.Contains(naming, path.Ext(name)):
				return nil
			}
			text, err := fs.ReadFile(tree.root, name)
			n, bad := tree.pagesNamed(string(text))
			named += n
			for _, finding := range bad {
				t.Errorf("DL-05: %s: %s", name, finding)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if named < 60 {
		t.Errorf("DL-05: found %d pages named", named)
	}
}

func TestPageRulesCanFail(t *testing.T) {
	tree := tree{
		root:  fstest.MapFS{"docs/a.md": {}, "docs/b/c.md": {}, "docs/reference/s.json": {}},
		pages: map[string]string{"docs/a.md": "# One\n## Two words\n", "docs/b/c.md": "# Three\n"},
	}
	const site = "https://mcp-authd.github.io/mcp-authd/"
	text := `see docs/a.md, "Two words"; docs/b/c.md; docs/a.md#one; "Three" of docs/b/c.md; ` + site + "b/c/ " +
		site + "reference/s.json " + site + "a/#two-words\n" +
		`docs/no.md docs/a.md, \"Four\"; docs/a.md#five; "Six" of docs/a.md; ` + site + "no/ " + site + "a/#seven"
	want := []string{
		"there is no #five in docs/a.md", "there is no #four in docs/a.md", "there is no #seven in docs/a.md",
		"there is no #six in docs/a.md", "there is no docs/no.md", "there is no docs/no.md",
	}
	_, got := tree.pagesNamed(text)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

var (
	pageNamed  = regexp.MustCompile(`\bdocs/([\w/-]+)\.md(?:#([\w-]+)|, \\?"([^"\\]+)\\?")?`)
	partOfPage = regexp.MustCompile(`"([^"\\\n]+)\\?" of docs/([\w/-]+)\.md`)
	pageOfSite = regexp.MustCompile(`https://mcp-authd\.github\.io/mcp-authd/([\w/.-]*)(?:#([\w-]+))?`)
)

// pagesNamed counts the pages that a text names, and returns those that do not exist.
func (t tree) pagesNamed(text string) (named int, bad []string) {
	look := func(file, anchor string) {
		named++
		if _, err := fs.Stat(t.root, file); err != nil {
			bad = append(bad, "there is no "+file)
		} else if anchor != "" && !slices.Contains(anchors(t.pages[file]), anchor) {
			bad = append(bad, fmt.Sprintf("there is no #%s in %s", anchor, file))
		}
	}
	for _, m := range pageNamed.FindAllStringSubmatch(text, -1) {
		anchor := m[2]
		if m[3] != "" {
			anchor = anchors("# " + m[3])[0]
		}
		look("docs/"+m[1]+".md", anchor)
	}
	for _, m := range partOfPage.FindAllStringSubmatch(text, -1) {
		look("docs/"+m[2]+".md", anchors("# " + m[1])[0])
	}
	for _, m := range pageOfSite.FindAllStringSubmatch(text, -1) {
		file := strings.Trim(m[1], "/")
		if file == "" {
			continue // the first page
		}
		if path.Ext(file) == "" {
			file += ".md"
		}
		look("docs/"+file, m[2])
	}
	return named, bad
}
