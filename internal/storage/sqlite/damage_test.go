package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// TestM3ADamagedFileIsNotReady (operations M3): damage found by one verb makes the store unready. A
// check of the whole file finds damage that no verb has met.
func TestM3ADamagedFileIsNotReady(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "db")
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	for i := range n {
		u := storage.User{
			ID: fmt.Sprint("usr_", i), Name: fmt.Sprint(i, strings.Repeat("x", 300)), CreatedAt: time.Now(),
		}
		if err := s.CreateUser(ctx, u); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Close(), sqlite.Check(ctx, path)); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xaa}, 64<<10), info.Size()/2&^4095); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if s, err = sqlite.Open(ctx, path, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ready(ctx); err != nil {
		t.Fatalf("before anything was met: %v", err)
	}
	if err := sqlite.Check(ctx, path); !errors.Is(err, sqlite.ErrDamaged) {
		t.Errorf("Check: got %v, want ErrDamaged", err)
	}
	met := 0
	for i := range n {
		if _, err := s.User(ctx, fmt.Sprint("usr_", i)); errors.Is(err, sqlite.ErrDamaged) {
			met++
		}
	}
	if met == 0 || met == n {
		t.Fatalf("%d of %d verbs have met the damage: the test shows nothing", met, n)
	}
	if err := s.Ready(ctx); !errors.Is(err, sqlite.ErrDamaged) {
		t.Errorf("after %d verbs of %d have met it: got %v, want ErrDamaged", met, n, err)
	}
}
