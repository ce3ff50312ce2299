package identifier

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryPrefixIsKnown: EN-06: whatever the code gives as an id has the form of one.
func TestEveryPrefixIsKnown(t *testing.T) {
	// By secrets, by a digest behind a prefix, or as a constant.
	made := regexp.MustCompile(`secrets\.(?:ID|Token)\("([^"]+)"\)|"([a-z0-9]{2,6}_)" \+ base64|` +
		`(?i:prefix).* = .*"([a-z0-9]+_)"`)
	found := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "node_modules" || name == "storagetest" || strings.HasPrefix(name, ".git")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range made.FindAllStringSubmatch(string(text), -1) {
			found++
			if prefix := m[1] + m[2] + m[3]; !Is(prefix) {
				t.Errorf("EN-06: %s makes ids that begin with %q, which names may begin with, too", path, prefix)
			}
		}
		return err
	})
	if err != nil || found < 20 {
		t.Errorf("%d prefixes were found, %v", found, err)
	}
}

// TestNames: EN-06: no name of an account looks like an id, or means something else.
func TestNames(t *testing.T) {
	for _, name := range []string{
		"usr_x", "USR_x", "Usr_", "mcp_x", "key_x", "grt_x", "prp_x", "way_x", "pau_x", "app_x", "acc_x", "mcpra_x",
		".", "..", "operator", "Operator",
		"system", "", "a b", "a/b", strings.Repeat("a", 65),
	} {
		if ValidName(name) {
			t.Errorf("EN-06: %q is a name", name)
		}
	}
	for _, name := range []string{
		"alice", "usr", "user_x", "operator2", "a.b", "...", "ada@github", strings.Repeat("a", 64),
	} {
		if !ValidName(name) {
			t.Errorf("EN-06: %q is not a valid name", name)
		}
	}
	for label, want := range map[string]string{
		"ada": "ada@github", "usr_ada": "user-usr_ada@github", "GRT_x": "user-GRT_x@github", "": "user@github",
		"operator": "operator@github", "Ada L": "Ada.L@github", "u\u200bsr_x": "user-usr_x@github",
	} {
		if got := Name(label, "github"); got != want || !ValidName(got) {
			t.Errorf("EN-06: %q becomes %q, want %q", label, got, want)
		}
	}
	if got := Name("usr_x", strings.Repeat("p", 80)); !ValidName(got) {
		t.Errorf("EN-06: got %q", got)
	}
	for text, want := range map[string]bool{
		"https://a.example/c": true, "HTTP://a": true, "workload:x": true, "mcp_1": true,
		"robot": false, "Claude": false,
	} {
		if IsClient(text) != want {
			t.Errorf("EN-06: %q has the form of a client id: %v", text, !want)
		}
	}
}

// TestUserNames: names that providers give become names of accounts.
func TestUserNames(t *testing.T) {
	for label, want := range map[string]string{
		"ada":                    "ada@corp",
		"Ada Lovelace":           "Ada.Lovelace@corp",
		"ada@example.com":        "ada@example.com@corp",
		"":                       "user@corp",
		"\x00<script>":           "script@corp",
		"Ünïcödé":                "ncd@corp",
		"日本":                     "user@corp",
		strings.Repeat("a", 100): strings.Repeat("a", 59) + "@corp",
	} {
		if got := Name(label, "corp"); got != want || len(got) > 64 {
			t.Errorf("%q: got %q, want %q", label, got, want)
		}
	}
	if got := Name("ada", strings.Repeat("c", 80)); len(got) > 64 {
		t.Errorf("got %d bytes", len(got))
	}
}
