package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestBackup copies a database during writes: the copy contains every write acknowledged before it
// began.
func TestBackup(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	path, to := filepath.Join(dir, "a b%?.db"), filepath.Join(dir, "copy.db")
	s := open(t, path)
	defer s.Close()
	for i := range 100 {
		if err := s.PutClient(ctx, storage.Client{ID: fmt.Sprint("before", i), CreatedAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	stop, wg := make(chan struct{}), sync.WaitGroup{}
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := s.PutClient(ctx, storage.Client{ID: fmt.Sprint("during", i), CreatedAt: time.Now()}); err != nil {
				t.Error(err)
			}
		}
	})
	err := Backup(ctx, path, to)
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v", info.Mode(), err)
	}
	if err := Backup(ctx, path, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over an earlier copy: %v", err)
	}
	if err := Backup(ctx, filepath.Join(dir, "none.db"), filepath.Join(dir, "x.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x.db")); err == nil {
		t.Error("an empty copy is left behind")
	}
	t.Chdir(dir)
	if err := Backup(ctx, path, "file:uri.db?mode=rwc"); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat("file:uri.db?mode=rwc"); err != nil || info.Size() == 0 || info.Mode().Perm() != 0o600 {
		t.Errorf("AS-06 a name that SQLite could take for a URI: %v, %v", info, err)
	}
	if _, err := os.Stat("uri.db"); err == nil {
		t.Error("AS-06 the copy is in another file, which others can read")
	}
	c := open(t, to)
	defer c.Close()
	for i := range 100 {
		if _, err := c.Client(ctx, fmt.Sprint("before", i)); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
	}
	if err := c.Ready(ctx); err != nil {
		t.Error(err)
	}
}
