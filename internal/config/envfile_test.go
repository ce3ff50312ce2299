package config

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestParseEnvFile checks that EnvironmentFiles are parsed as systemd does (systemd.exec(5)).
func TestParseEnvFile(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"A=1\nB = two words \n":                  {"A": "1", "B": "two words"},
		"# A=1\n; B=2\n\n  C=3":                  {"C": "3"},
		"no variable\nA=1":                       {"A": "1"},
		"A=":                                     {"A": ""},
		"A=\nB=2":                                {"A": "", "B": "2"},
		`A="a b "` + "\nB=' c'":                  {"A": "a b ", "B": " c"},
		`A="say \"x\" for \$5 \n"`:               {"A": `say "x" for $5 \n`},
		`A='a\b'`:                                {"A": `a\b`},
		`A=it's "so"`:                            {"A": `it's "so"`},
		`A="a"'b'`:                               {"A": "ab"},
		"A=one\\\n two\nB=2":                     {"A": "one two", "B": "2"},
		"A=\"one\ntwo\"\nB=2":                    {"A": "one\ntwo", "B": "2"},
		`A=a\ b\#` + "\n":                        {"A": "a b#"},
		"A=postgres://h/d?sslmode=x#y\r\nB=1;":   {"A": "postgres://h/d?sslmode=x#y", "B": "1;"},
		`A="never ended`:                         {"A": "never ended"},
		`A=a\`:                                   {"A": "a"},
		`A="a\`:                                  {"A": "a"},
		"A=1\rB=2\r#C=3\rD=4":                    {"A": "1", "B": "2", "D": "4"},
		"A= \\\n 1\nB=\\\n\"2\"":                 {"A": " 1", "B": `"2"`},
		"A=\"a\" b\nB='a' \"b\"":                 {"A": "ab", "B": "ab"},
		"A=\v1\n\vB=2\n\u00a0C=3":                {"A": "\v1"},
		"export A=1\n1B=2\nC-D=3\n=4\n==\"\nE=5": {},
		"A\n=1\nB=2":                             {"B": "2"},
		"# A joins nothing \\\nB=2":              {"B": "2"},
	} {
		if got := parseEnvFile(text); !maps.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestPackagedEnvironment checks that commands read /etc/default/mcp-authd like the packaged unit,
// because they would otherwise use another database (DL-04). The environment takes precedence. With
// another configuration, the file is ignored.
func TestPackagedEnvironment(t *testing.T) {
	etc := filepath.Join(t.TempDir(), "etc")
	write := func(name, text string) string {
		file := filepath.Join(etc, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	packaged := write("mcp-authd/config.yaml", "database: {url: sqlite}\n")
	others := []string{write("other/config.yaml", ""), write("../mcp-authd/config.yaml", "")}
	write("../default/mcp-authd", "MCP_AUTHD_ISSUER=https://a.test\n")
	write("default/mcp-authd", "MCP_AUTHD_DATABASE_URL=postgres://db/authd\nMCP_AUTHD_ISSUER=https://a.test\n"+
		"HOME=/nowhere\nMCP_AUTHD_ISUER=x\n")
	l, err := Load(Source{File: packaged, Environ: []string{"MCP_AUTHD_ISSUER=https://b.test", "HOME=" + etc}})
	if err != nil {
		t.Fatal(err)
	}
	if l.Database.URL != "postgres://db/authd" || l.Issuer != "https://b.test" ||
		strings.Contains(l.DataDir, "nowhere") {
		t.Errorf("got %q, %q, %q", l.Database.URL, l.Issuer, l.DataDir)
	}
	if len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "MCP_AUTHD_ISUER is not known") {
		t.Errorf("got %q", l.Warnings)
	}
	for _, other := range others {
		if l, err = Load(Source{File: other}); err != nil || l.Issuer == "https://a.test" {
			t.Errorf("beside %s: got %q, %v", other, l.Issuer, err)
		}
	}
	for _, binary := range []string{"MCP_AUTHD_ISSUER=https://\xe9.test\n", "MCP_AUTHD_ISSUER=a\x00\n"} {
		write("default/mcp-authd", binary)
		if _, err = Load(Source{File: packaged}); err == nil || !strings.Contains(err.Error(), "is not UTF-8 text") {
			t.Errorf("%q: got %v", binary, err)
		}
	}
	write("default/mcp-authd", strings.Repeat("#", maxFile+1))
	if _, err = Load(Source{File: packaged}); err == nil || !strings.Contains(err.Error(), "is longer than 1 MiB") {
		t.Errorf("without end: got %v", err)
	}
}
