package keys

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestSecretFile(t *testing.T) {
	t.Run("it is made once, for its owner alone, however many processes start", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "data", "secret.key")
		var all sync.WaitGroup
		found := make([]string, 32)
		for i := range found {
			all.Go(func() {
				key, err := SecretFile(path, filepath.Join(filepath.Dir(path), "mcp-authd.db"))
				if err != nil {
					t.Error(err)
				}
				found[i] = string(key)
			})
		}
		all.Wait()
		for _, key := range found {
			if key != found[0] || len(key) != 32 {
				t.Fatalf("got keys of %d and %d bytes, the same: %v", len(key), len(found[0]), key == found[0])
			}
		}
		for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: got %v, %v, want %v", name, info.Mode(), err, want)
			}
		}
	})
	for name, tt := range map[string]struct{ content, want string }{
		"hex":               {strings.Repeat("ab", 32) + "\n", strings.Repeat("\xab", 32)},
		"base64":            {"q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=\n", strings.Repeat("\xab", 32)},
		"what is too short": {"c2hvcnQ=\n", ""},
		"nothing":           {"", ""},
	} {
		t.Run("a file with "+name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secret.key")
			if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			key, err := SecretFile(path, filepath.Join(filepath.Dir(path), "mcp-authd.db"))
			if string(key) != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %x, %v, want %x", key, err, tt.want)
			}
			if err != nil && tt.content != "" && strings.Contains(err.Error(), strings.TrimSpace(tt.content)) {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
	t.Run("issue 11, 4.4: none is made beside a database, which would be of no use with it", func(t *testing.T) {
		dir := t.TempDir()
		path, database := filepath.Join(dir, "secret.key"), filepath.Join(dir, "mcp-authd.db")
		if err := os.WriteFile(database, []byte("SQLite"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := SecretFile(path, filepath.Join(filepath.Dir(path), "mcp-authd.db"))
		if err == nil || !strings.Contains(err.Error(), "the secret key is missing: put "+path+" back") {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("there is a key")
		}
	})
	t.Run("Security L14: one that others can read or replace is refused", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "secret.key")
		if _, err := SecretFile(path, filepath.Join(filepath.Dir(path), "mcp-authd.db")); err != nil {
			t.Fatal(err)
		}
		for mode, want := range map[os.FileMode]string{
			0o644: "every user can read it", 0o606: "every user can write to it", 0o660: "its group can write to it",
			0o640: "", 0o400: "",
		} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			_, err := SecretFile(path, filepath.Join(filepath.Dir(path), "mcp-authd.db"))
			if (err == nil) != (want == "") ||
				err != nil &&
					!(strings.Contains(err.Error(), want) && strings.Contains(err.Error(), "chmod 600 "+path)) {
				t.Errorf("%s: got %v, want %q", mode, err, want)
			}
		}
	})
}
