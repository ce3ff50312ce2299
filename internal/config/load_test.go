package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLongFile checks that a file that is too long for a configuration, such as a backup or an
// endless device, is not read completely (DL-04).
func TestLongFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "long.yaml")
	issuer := "issuer: https://auth.example.com\n"
	if err := os.WriteFile(file, []byte(issuer+strings.Repeat("#", maxFile-len(issuer))), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := Load(Source{File: file}); err != nil || l.Issuer != "https://auth.example.com" {
		t.Errorf("1 MiB: got %v", err)
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("#", maxFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []string{file}
	if _, err := os.Stat("/dev/zero"); err == nil {
		files = append(files, "/dev/zero")
	}
	for _, file := range files {
		_, err := Load(Source{File: file})
		if err == nil || !strings.Contains(err.Error(), file+" is longer than 1 MiB") {
			t.Errorf("%s: got %v, want that it is too long", file, err)
		}
	}
}

// TestTrustsAll checks that networks that contain every address are recognized (DL-04).
func TestTrustsAll(t *testing.T) {
	c := Default(func(string) string { return "" })
	c.TrustedProxies = []string{"10.0.0.0/8", "0.0.0.0/0", "127.0.0.1", "::/0"}
	if got := strings.Join(c.TrustsAll(), " "); got != "0.0.0.0/0 ::/0" {
		t.Errorf("got %q, want both that hold all", got)
	}
}

// TestQuotedBool checks that true, yes and on in quotes are refused with advice, and accepted
// without quotes (RU-09).
func TestQuotedBool(t *testing.T) {
	for _, value := range []string{`"true"`, `'true'`, `"yes"`, `"on"`, `'off'`, `"False"`, `"n"`} {
		for _, text := range []string{
			"management: {pprof: " + value + "}", "resources: [{scopes: [{name: a, default: " + value + "}]}]",
		} {
			if said := errorOf(t, text); !strings.Contains(said, "c.yaml:1: "+textForBool) {
				t.Errorf("RU-09: %s: got %s", text, said)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	for _, value := range []string{"true", "yes", "on"} {
		if err := os.WriteFile(file, []byte("management: {pprof: "+value+"}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := Load(Source{File: file}); err != nil || !l.Management.PProf {
			t.Errorf("RU-09: %s: %v", value, err)
		}
	}
}

// TestOrigins checks that each key of an item has its own line as origin, and that an unset key is
// a default.
func TestOrigins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "resources:\n- uri: a\n- uri: b\n  aliases:\n  - c\n  - d\n  scopes:\n  - name: e\n" +
		"thirdparty:\n- id: f\n  parameters:\n    hl: de\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"MCP_AUTHD_RESOURCES_1_NAME=g", "MCP_AUTHD_TRUSTED_PROXIES=::1"}
	l, err := Load(Source{File: file, Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"resources.0.uri": file + ":2", "resources.1.uri": file + ":3", "resources.1.aliases": file + ":4",
		"resources.1.scopes.0.name": file + ":8", "thirdparty.0.parameters": file + ":11",
		"resources.1.name": "$MCP_AUTHD_RESOURCES_1_NAME", "trusted_proxies": "$MCP_AUTHD_TRUSTED_PROXIES",
		"resources.1.dpop": "default", "resources.0.name": "default", "thirdparty.0.allow.domains": "default",
	} {
		if got := l.Origin(key); got != want {
			t.Errorf("%s comes from %s, want %s", key, got, want)
		}
	}
}

// TestOriginsOfAnchors checks that a value repeated through an anchor has the line of the anchor as
// origin.
func TestOriginsOfAnchors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "resources:\n- &a\n  uri: a\n  name: A\n  scopes: &s\n  - name: e\n- &b\n  uri: b\n  scopes: *s\n" +
		"- <<: *a\n  uri: c\n- uri: d\n  <<: [*b, *a]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Load(Source{File: file})
	if err != nil {
		t.Fatal(err)
	}
	if l.Resources[3].URI != "d" || l.Resources[3].Name != "A" {
		t.Fatalf("the last resource is %+v", l.Resources[3])
	}
	for key, want := range map[string]string{
		"resources.0.scopes.0.name": file + ":6", "resources.1.scopes.0.name": file + ":6",
		"resources.2.uri": file + ":11", "resources.2.name": file + ":4", "resources.2.scopes.0.name": file + ":6",
		"resources.3.uri": file + ":12", "resources.3.scopes": file + ":9", "resources.3.name": file + ":4",
		"resources.1.name": "default",
	} {
		if got := l.Origin(key); got != want {
			t.Errorf("%s comes from %s, want %s", key, got, want)
		}
	}
}

// TestMessagesNameTheLine checks that a message about a value names the line that set it (RU-14).
// For a missing key of an item, it names the start of the item.
func TestMessagesNameTheLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := `issuer: https://auth.example.com
resources:
  - uri: https://a.example.com/mcp
    name: A
  - name: B
    uri: https://b.example.com/mcp#x
  - name: C
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Load(Source{File: file, Environ: []string{"HOME=" + t.TempDir(), "MCP_AUTHD_TOKENS_ACCESS_TTL=900h"}})
	if err == nil {
		err = l.Validate()
	}
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{
		"resources[1].uri: \"https://b.example.com/mcp#x\": resource has a fragment (" + file + ":6)",
		"(" + file + ":7)", "is not between 1s and 1d ($MCP_AUTHD_TOKENS_ACCESS_TTL)",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got\n%v\nwant %s", err, want)
		}
	}
}
