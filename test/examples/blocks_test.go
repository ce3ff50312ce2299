package examples

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// manual returns README and every page of the manual, by path.
func manual(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	read := func(path string) error {
		b, err := os.ReadFile(filepath.Join(root, path))
		pages[path] = string(b)
		return err
	}
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		return read(path)
	})
	if err == nil {
		err = read("README.md")
	}
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// block is a fenced block of a page.
type block struct {
	page     string
	line     int
	language string
	mark     string // the HTML comment on the line before, which gives its context
	text     string
}

func (b block) String() string { return fmt.Sprintf("%s:%d %s", b.page, b.line, b.language) }

// fence matches the start of a block and, without further text, also its end (CommonMark 4.5).
var fence = regexp.MustCompile("^( *)(`{3,}|~{3,})[ \t]*([^`]*)$")

// blocks returns every fenced block of a page. A block without an end is an error, because the rest
// of the page would belong to it.
func blocks(page, text string) (found []block, err error) {
	var open *block
	var indent, ticks string
	before := ""
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		m := fence.FindStringSubmatch(line)
		switch {
		case open == nil && m != nil:
			open = &block{page: page, line: n, language: strings.TrimSpace(m[3])}
			indent, ticks = m[1], m[2]
			if strings.HasPrefix(before, "<!--") {
				open.mark = before
			}
		case open != nil && m != nil && m[3] == "" && strings.HasPrefix(m[2], ticks):
			found, open = append(found, *open), nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
		before = strings.TrimSpace(line)
	}
	if open != nil {
		return found, fmt.Errorf("%s has no end", open)
	}
	return found, nil
}

// checks maps each language to the check of its blocks.
var checks = map[string]func(t *testing.T, b block){
	"go": checkGo, "yaml": checkYAML, "json": checkJSON, "toml": checkTOML, "sh": checkShell,
	"ini": checkEnvironment,
	"ts":  checkFile, "python": checkFile, "java": checkFile, "csharp": checkFile, "knot": checkFile,
}

// isOf matches the mark of a block in a language that this test cannot compile. It names the source
// file, which tests run unless the page explains why not.
var isOf = regexp.MustCompile(`^<!-- file: (\S+) -->$`)

// checkFile compares a block with its source file.
func checkFile(t *testing.T, b block) {
	m := isOf.FindStringSubmatch(b.mark)
	if m == nil {
		t.Fatalf("it does not say of which file it is: %q", b.mark)
	}
	text, err := os.ReadFile(filepath.Join(root, m[1]))
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(text)) != strings.TrimSpace(b.text) {
		t.Errorf("%s differs from it:\n%s", m[1], text)
	}
}

// TestBlocks checks every block that readers copy from README and the manual (issue 11, 4.8).
func TestBlocks(t *testing.T) {
	found := map[string]int{}
	for page, text := range manual(t) {
		all, err := blocks(page, text)
		if err != nil {
			t.Error(err)
		}
		for _, b := range all {
			found[b.language]++
			t.Run(b.String(), func(t *testing.T) {
				check := checks[b.language]
				if check == nil {
					t.Fatalf("nothing here checks a block of %q", b.language)
				}
				check(t, b)
			})
		}
	}
	if found["go"] < 11 || found["yaml"] < 15 || found["sh"] < 8 {
		t.Errorf("found %v", found)
	}
}

func checkJSON(t *testing.T, b block) {
	if ofClient.MatchString(b.mark) {
		checkForeign(t, b)
		return
	}
	var any any
	if err := json.Unmarshal([]byte(b.text), &any); err != nil {
		t.Errorf("%v\n%s", err, b.text)
	}
}

// checkTOML checks the mark of a block. TOML is only for other programs, which the mark must name.
func checkTOML(t *testing.T, b block) {
	if b.mark == "<!-- fly: fly.toml -->" {
		checkFly(t, b)
		return
	}
	if !ofClient.MatchString(b.mark) {
		t.Fatalf("no comment says of which program it is:\n%s", b.text)
	}
	checkForeign(t, b)
}

// TestReadBlocks checks that blocks finds every kind of block.
func TestReadBlocks(t *testing.T) {
	for _, c := range []struct {
		text, want string
	}{
		{"```go\na\n```\n", "go:a|"},
		{"x\n<!-- yaml: of others -->\n~~~ yaml\na: 1\n~~~\n```\nb\n```\n", "yaml:a: 1|:b|"},
		{"* x\n\n  ```sh\n  a\n  ```\n", "sh:a|"},
		{"````md\n```\n````\n", "md:```|"},
		{"```go\na\n", "error"},
	} {
		all, err := blocks("p", c.text)
		got := ""
		for _, b := range all {
			got += b.language + ":" + strings.TrimSpace(b.text) + "|"
		}
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}
