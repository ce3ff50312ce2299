package examples

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/trust"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

var secretFile = regexp.MustCompile(`/run/secrets/\S+`)

// checkYAML validates the block as a configuration of mcp-authd and against its schema. A block for
// another program has a mark, and must only be valid YAML: <!-- yaml: for Docker Compose -->.
func checkYAML(t *testing.T, b block) {
	if ofClient.MatchString(b.mark) {
		checkForeign(t, b)
		return
	}
	if strings.HasPrefix(b.mark, "<!-- yaml: ") {
		var any any
		if err := yaml.Unmarshal([]byte(b.text), &any); err != nil {
			t.Errorf("%v\n%s", err, b.text)
		}
		return
	}
	if out, err := validate(t, b.text); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, b.text)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(config.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := yaml.Unmarshal([]byte(b.text), &value); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(value); err != nil {
		t.Errorf("DL-05: not by the schema of the configuration: %v\n%s", err, b.text)
	}
}

// validate runs config validate on a configuration file. It provides a master key and the secret
// files that the configuration names.
func validate(t *testing.T, text string, environ ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(program.Authd(t), "config", "validate", "--config", configuration(t, text))
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "MCP_AUTHD_SECRET_KEY="+strings.Repeat("ab", 32))
	cmd.Env = append(cmd.Env, environ...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// assignment matches a line in a file of environment variables in systemd's format.
var assignment = regexp.MustCompile(`^[A-Z][A-Z0-9_]*=\S+$`)

// unknown is the message for an unknown variable, which does not stop a server.
const unknown = "is not known"

// checkEnvironment checks that the variables of mcp-authd are known and valid with an empty
// configuration.
func checkEnvironment(t *testing.T, b block) {
	var ours []string
	for line := range strings.Lines(b.text) {
		line = strings.TrimSuffix(line, "\n")
		if !assignment.MatchString(line) {
			t.Errorf("%q must be an assignment", line)
		}
		if strings.HasPrefix(line, "MCP_AUTHD_") {
			ours = append(ours, line)
		}
	}
	if out, err := validate(t, "", ours...); err != nil || strings.Contains(out, unknown) {
		t.Errorf("%v\n%s\n%s", err, out, b.text)
	}
}

// configuration writes a configuration file and the secret files that it names.
func configuration(t *testing.T, text string) (file string) {
	t.Helper()
	dir := t.TempDir()
	text = secretFile.ReplaceAllStringFunc(text, func(path string) string {
		path = filepath.Join(dir, filepath.Base(path))
		content := strings.Repeat("a-secret", 4) // bearer tokens have at least 32 characters
		if strings.HasSuffix(path, ".p8") {
			content = privateKey(t)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	})
	file = filepath.Join(dir, "mcp-authd.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func privateKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// TestYAML checks that faults in a configuration are found.
func TestYAML(t *testing.T) {
	if out, err := validate(t, "isuer: x\n"); err == nil || !strings.Contains(out, `unknown key "isuer"`) {
		t.Errorf("got %v %s", err, out)
	}
	if out, err := validate(t, "", "MCP_AUTHD_ISUER=x"); err == nil || !strings.Contains(out, unknown) {
		t.Errorf("got %v %s", err, out)
	}
}

func TestManualOfProviders(t *testing.T) {
	pages := manual(t)
	guide := pages["docs/thirdparty.md"]
	for _, kind := range thirdparty.Types() {
		t.Run("each type has its page, with its redirect URI, and the guide names it: "+kind.ID, func(t *testing.T) {
			page := pages["docs/"+kind.Guide]
			if page == "" {
				t.Fatalf("there is no docs/%s", kind.Guide)
			}
			if !strings.Contains(guide, "("+kind.Guide+")") {
				t.Errorf("docs/thirdparty.md does not name %s", kind.Guide)
			}
			all, err := blocks(kind.Guide, page)
			first := slices.IndexFunc(all, func(b block) bool { return b.language == "yaml" })
			if err != nil || first < 0 {
				t.Fatalf("no configuration; %v", err)
			}
			l, err := config.Load(config.Source{File: configuration(t, all[first].text)})
			if err != nil {
				t.Fatal(err)
			}
			c := l.ThirdParty[0]
			if c.Type != kind.ID || !strings.Contains(page, "\n    https://auth.example.com/callback/"+c.ID+"\n") {
				t.Errorf("type %s, id %s: not the page's, or its redirect URI is missing", c.Type, c.ID)
			}
			for _, scope := range kind.Scopes {
				if !strings.Contains(page, scope) {
					t.Errorf("the scope %s is not mentioned", scope)
				}
			}
		})
	}
	t.Run("no page is about a type that there is not", func(t *testing.T) {
		for path := range pages {
			name, ok := strings.CutPrefix(path, "docs/")
			if ok && strings.HasPrefix(name, "providers/") &&
				!slices.ContainsFunc(thirdparty.Types(), func(k thirdparty.Type) bool { return k.Guide == name }) {
				t.Error(path)
			}
		}
	})
}

// TestManualOfIssuers: AS-235. Each preset of trusted issuers has a page. Its configuration uses
// the preset, and it describes its tests.
func TestManualOfIssuers(t *testing.T) {
	pages := manual(t)
	for _, preset := range trust.Presets() {
		t.Run(preset, func(t *testing.T) {
			name := "issuers/" + preset + ".md"
			page := pages["docs/"+name]
			if page == "" {
				t.Fatalf("there is no docs/%s", name)
			}
			if !strings.Contains(pages["README.md"], "docs/trust.md)") {
				t.Error("README.md does not lead to docs/trust.md")
			}
			if !strings.Contains(pages["docs/trust.md"], name+")") {
				t.Errorf("docs/trust.md does not lead to docs/%s", name)
			}
			all, err := blocks(name, page)
			first := slices.IndexFunc(all, func(b block) bool { return b.language == "yaml" && b.mark == "" })
			if err != nil || first < 0 {
				t.Fatalf("no configuration; %v", err)
			}
			l, err := config.Load(config.Source{File: configuration(t, all[first].text)})
			if err != nil {
				t.Fatal(err)
			}
			if e := l.TrustEntries()[0]; e.Preset != preset {
				t.Errorf("its configuration is about %q", e.Preset)
			}
			if !strings.Contains(page, "**What was run.**") {
				t.Error("it does not name the commands that were run")
			}
		})
	}
	for path := range pages {
		name, ok := strings.CutPrefix(path, "docs/issuers/")
		if ok && !slices.Contains(trust.Presets(), strings.TrimSuffix(name, ".md")) {
			t.Errorf("%s is about no preset", path)
		}
	}
}
