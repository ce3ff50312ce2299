package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

const root = "../.."

var (
	fenced     = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	secretFile = regexp.MustCompile(`/run/secrets/\S+`)
)

// manual returns every page of the manual by its path.
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

// parse loads a snippet as a configuration file of its own, with the secret files that it
// names.
func parse(t *testing.T, snippet string) (*config.Loaded, error) {
	t.Helper()
	dir := t.TempDir()
	snippet = secretFile.ReplaceAllStringFunc(snippet, func(path string) string {
		path = filepath.Join(dir, filepath.Base(path))
		content := "a-secret"
		if strings.HasSuffix(path, ".p8") {
			content = privateKey(t)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	})
	file := filepath.Join(dir, "mcp-authd.yaml")
	if err := os.WriteFile(file, []byte(snippet), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(config.Source{File: file})
	if err != nil {
		return nil, err
	}
	return l, l.Validate()
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

func TestManual(t *testing.T) {
	found := 0
	for path, text := range manual(t) {
		for i, m := range fenced.FindAllStringSubmatch(text, -1) {
			found++
			t.Run(fmt.Sprintf("the configuration is valid: %s %d", path, i+1), func(t *testing.T) {
				if _, err := parse(t, m[1]); err != nil {
					t.Errorf("%v\n%s", err, m[1])
				}
			})
		}
	}
	if found < 15 {
		t.Errorf("found %d snippets", found)
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
			snippet := fenced.FindStringSubmatch(page)
			if snippet == nil {
				t.Fatal("no configuration")
			}
			l, err := parse(t, snippet[1])
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
			if ok && strings.HasPrefix(name, "providers/") && !slices.ContainsFunc(thirdparty.Types(), func(k thirdparty.Type) bool { return k.Guide == name }) {
				t.Error(path)
			}
		}
	})
}
