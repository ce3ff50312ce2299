//go:build linux || darwin || freebsd

package sqlite

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage/export"
)

// DL-02: files that root creates belong to the owner of the directory. The packaged server runs as
// that user, commands run as root. A copy elsewhere, and an existing file, keep their owner.
func TestRootHandsOver(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, which can give files away")
	}
	const user, group = 65534, 65534
	source := filepath.Join(t.TempDir(), "source.db")
	s, err := Open(t.Context(), source, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var exported bytes.Buffer
	header := export.Header{Version: "1", Issuer: "https://auth.example.com", At: time.Now()}
	if _, err := Export(t.Context(), source, &exported, header); err != nil {
		t.Fatal(err)
	}
	for what, put := range map[string]func(path string) (more string, err error){
		"open": func(path string) (string, error) {
			s, err := Open(t.Context(), path, Options{})
			if err != nil {
				return "", err
			}
			return "", s.Close()
		},
		"import": func(path string) (string, error) {
			r, err := export.NewReader(bytes.NewReader(exported.Bytes()))
			if err != nil {
				return "", err
			}
			return "", Import(t.Context(), path, r, Options{})
		},
		"restore": func(path string) (string, error) {
			if err := copyFile(t.Context(), source, path); err != nil {
				return "", err
			}
			return Restore(t.Context(), source, path, time.Now())
		},
		"key": func(path string) (string, error) { return "", secrets.WriteOnce(path, "key") },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chown(dir, user, group); err != nil {
				t.Skip("this root may not give files away:", err)
			}
			path := filepath.Join(dir, "mcp-authd.db")
			kept, err := put(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{path, kept} {
				if file != "" && ownerOf(t, file) != user {
					t.Errorf("%s belongs to uid %d, want %d", filepath.Base(file), ownerOf(t, file), user)
				}
			}
		})
	}
	t.Run("what was there", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "mcp-authd.db")
		if err := copyFile(t.Context(), source, path); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, user, group); err != nil {
			t.Skip("this root may not give files away:", err)
		}
		s, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := ownerOf(t, path); got != 0 {
			t.Errorf("opening gave a file away that was there: it belongs to uid %d", got)
		}
	})
}

func ownerOf(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Skip("files have no owner here")
	}
	return stat.Uid
}
