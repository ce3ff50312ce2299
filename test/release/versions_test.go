//go:build release

package release

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// named matches the version of a file, an image, a chart or a tag in the manual and the examples of
// deploy/.
var named = regexp.MustCompile(`(?:mcp-authd(?:-protect)?[_:-]|--version |--branch v)(\d+\.\d+\.\d+)`)

// TestVersions checks that the manual and deploy/ name one version to install. If HEAD is tagged,
// which means released, it must be the version of the tag (DL-04).
func TestVersions(t *testing.T) {
	want, of := "", ""
	if tag, err := command(t, "git", "-C", top, "describe", "--exact-match", "--tags", "HEAD").Output(); err == nil {
		want, of = strings.TrimPrefix(strings.TrimSpace(string(tag)), "v"), "the tag"
	}
	found := 0
	files := output(t, "git", "-C", top, "ls-files", "docs", "deploy/compose", "README.md")
	for file := range strings.FieldsSeq(files) {
		text, err := os.ReadFile(filepath.Join(top, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			if want == "" {
				want, of = m[1], file
			}
			if m[1] != want {
				t.Errorf("DL-04: %s has %q, where %s has %s", file, m[0], of, want)
			}
		}
	}
	if found < 15 {
		t.Errorf("DL-04: versions are named in %d places alone", found)
	}
}
