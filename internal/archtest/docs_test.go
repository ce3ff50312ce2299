package archtest

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestDocumentsNameWhatThereIs fails if a page names a missing file, function of a file, test or
// anchor.
func TestDocumentsNameWhatThereIs(t *testing.T) {
	tree := readTree(t)
	for page, text := range tree.pages {
		for _, finding := range tree.examine(page, text) {
			t.Errorf("%s: %s", page, finding)
		}
	}
}

func TestDocumentRulesCanFail(t *testing.T) {
	tree := tree{
		root:  fstest.MapFS{"a/b.go": {}, "a/c.md": {}},
		names: map[string][]string{"a/b.go": {"F"}},
		tests: map[string]bool{"TestF": true},
		pages: map[string]string{"a/c.md": "# The one & only `x`\n", "p.md": "## Here\n"},
	}
	text := "`a/b.go` `a/b.go: F` `a/` `TestF` [x](a/c.md#the-one--only-x) [y](#here) [z](https://example.com/a/no.md)\n" +
		"`a/no.go` `a/b.go: G` `./no.yaml` `TestG` [x](a/no.md) [y](a/c.md#nowhere) [z](#nowhere)\n```\n`a/no.go`\n```\n"
	want := []string{
		"there is no a/no.go", "there is no G in a/b.go", "there is no TestG",
		"there is no a/no.md", "there is no #nowhere in a/c.md", "there is no #nowhere in p.md",
	}
	got := tree.examine("p.md", text)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// tree holds everything that pages can name.
type tree struct {
	root  fs.FS
	names map[string][]string // the declarations of a Go file
	tests map[string]bool
	pages map[string]string
}

var (
	inline = regexp.MustCompile("`([^`\n]+)`")
	place  = regexp.MustCompile(
		`^((?:[\w.-]+/)+[\w.-]+\.(?:go|sql|md|css|js|html|sh|yaml|svg|d2))(?:[: ]+([\w.]+))?$`,
	)
	testName  = regexp.MustCompile(`^(?:Test|Fuzz)[A-Z]\w*$`)
	reference = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```")
)

// examine returns the names on a page that do not exist. It ignores code blocks.
func (t tree) examine(page, text string) (bad []string) {
	text = codeBlock.ReplaceAllString(text, "")
	for _, m := range inline.FindAllStringSubmatch(text, -1) {
		if no := t.code(m[1]); no != "" {
			bad = append(bad, no)
		}
	}
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		if no := t.link(page, m[1]); no != "" {
			bad = append(bad, no)
		}
	}
	return bad
}

func (t tree) code(text string) string {
	if testName.MatchString(text) && !t.tests[text] {
		return "there is no " + text
	}
	m := place.FindStringSubmatch(text)
	if m == nil || !t.ours(m[1]) {
		return ""
	}
	if _, err := fs.Stat(t.root, m[1]); err != nil {
		return "there is no " + m[1]
	}
	if m[2] != "" && strings.HasSuffix(m[1], ".go") && !slices.Contains(t.names[m[1]], m[2]) {
		return fmt.Sprintf("there is no %s in %s", m[2], m[1])
	}
	return ""
}

// ours reports whether a path starts with a folder of the tree, and so does not belong to another
// program.
func (t tree) ours(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	_, err := fs.Stat(t.root, first)
	return err == nil && first != "." // a file in the reader's folder
}

func (t tree) link(page, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	name, anchor, _ := strings.Cut(target, "#")
	to := page
	if name != "" {
		to = path.Join(path.Dir(page), name)
	}
	if _, err := fs.Stat(t.root, to); err != nil && name != "" {
		return "there is no " + to
	}
	if anchor != "" && strings.HasSuffix(to, ".md") && !slices.Contains(anchors(t.pages[to]), anchor) {
		return fmt.Sprintf("there is no #%s in %s", anchor, to)
	}
	return ""
}

// anchors returns the anchors of headings, in the usual form of web hosts.
func anchors(text string) (out []string) {
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		slug := strings.ToLower(strings.NewReplacer("`", "", "*", "").Replace(m[1]))
		out = append(out, strings.ReplaceAll(notInSlug.ReplaceAllString(slug, ""), " ", "-"))
	}
	return out
}

func readTree(t *testing.T) tree {
	t.Helper()
	const root = "../.."
	out := tree{
		root: os.DirFS(root), names: map[string][]string{}, tests: map[string]bool{}, pages: map[string]string{},
	}
	m := load(t)
	for _, f := range m.files {
		out.names[f.path] = declared(f)
		for _, n := range out.names[f.path] {
			if testName.MatchString(n) {
				out.tests[n] = true
			}
		}
	}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "deploy/*/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(root, name)
			out.pages[filepath.ToSlash(rel)] = string(text)
		}
	}
	if len(out.pages) < 10 || len(out.tests) < 100 {
		t.Fatalf("read %d pages and %d tests, the rules would hold for lack of either", len(out.pages), len(out.tests))
	}
	return out
}

// declared returns the functions, methods (with and without their type) and types of a file.
func declared(f file) (out []string) {
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			out = append(out, d.Name.Name)
			if d.Recv != nil && len(d.Recv.List) == 1 {
				out = append(out, receiver(d)+"."+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					out = append(out, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						out = append(out, n.Name)
					}
				}
			}
		}
	}
	return out
}
