package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/storage"
)

func TestEightOpenersOfOneNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := Open(context.Background(), path, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(s.Ready(context.Background()), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestANewerSchemaIsRefusedWithAdvice(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "db")
	s := open(t, path)
	err := s.write(ctx, "test", func(c *conn) error {
		return run(c, "INSERT INTO schema_version (version, name, applied_at) VALUES (999, 'future', 0)")()
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(ctx); !errors.Is(err, storage.ErrSchema) {
		t.Errorf("Ready: got %v, want ErrSchema", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(ctx, path, Options{})
	if !errors.Is(err, storage.ErrSchema) || !strings.Contains(err.Error(), "install that version") {
		t.Errorf("Open: got %v, want ErrSchema with advice", err)
	}
}

func TestWithoutMigrationsItIsNotReady(t *testing.T) {
	ctx := context.Background()
	s, err := Open(ctx, filepath.Join(t.TempDir(), "db"), Options{SkipMigrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ready(ctx); !errors.Is(err, storage.ErrSchema) || !strings.Contains(err.Error(), "migrate up") {
		t.Errorf("got %v, want ErrSchema with advice", err)
	}
	if st, err := s.MigrationStatus(ctx); err != nil || len(st) == 0 || !st[0].AppliedAt.IsZero() {
		t.Errorf("before: got %v, %v; want pending steps", st, err)
	}
	if err := s.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(ctx); err != nil {
		t.Error(err)
	}
	if st, err := s.MigrationStatus(ctx); err != nil || st[0].AppliedAt.IsZero() {
		t.Errorf("after: got %v, %v; want applied steps", st, err)
	}
}
