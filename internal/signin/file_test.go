package signin

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFile checks that no other user can read a file, and that each server has its own file.
func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "remote")
	one, other := FileFor(dir, "https://one.example/api/v1"), FileFor(dir, "https://other.example/api/v1")
	release, err := one.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := one.write(Kept{Issuer: "https://one.example", Access: "a", Refresh: "r"}); err != nil {
		t.Fatal(err)
	}
	t.Run("CL-27 no other user can read it", func(t *testing.T) {
		for path, want := range map[string]os.FileMode{one.path: 0o600, dir: 0o700} {
			if at, err := os.Stat(path); err != nil || at.Mode().Perm() != want {
				t.Errorf("%s: got %v, %v, want %v", path, at.Mode(), err, want)
			}
		}
	})
	t.Run("CL-15 another issuer gets nothing of it", func(t *testing.T) {
		if kept, err := other.read(); err != nil || kept != (Kept{}) {
			t.Errorf("got %+v, %v", kept, err)
		}
		if kept, err := one.read(); err != nil || kept.Access != "a" {
			t.Errorf("got %+v, %v", kept, err)
		}
	})
}
