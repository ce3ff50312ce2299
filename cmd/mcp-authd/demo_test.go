package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// TestTheDemoPrintsThePasswordOfItsUser includes the case that the password file was removed.
func TestTheDemoPrintsThePasswordOfItsUser(t *testing.T) {
	store := installation.Store(t)
	u, err := users.New(users.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	first := ""
	for _, step := range []string{"the first start", "the second one", "after the file was removed"} {
		password, err := demoUser(t.Context(), u, dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Authenticate(t.Context(), users.Attempt{Name: demoName, Password: password}); err != nil {
			t.Errorf("%s: its password is refused: %v", step, err)
		}
		if step == "the second one" {
			if password != first {
				t.Error("the second start has another password")
			}
			if err := os.Remove(filepath.Join(dir, passwordFile)); err != nil {
				t.Fatal(err)
			}
		}
		first = password
	}
}
