package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
)

// TestReadsShareAConnection: sequential reads use one connection; only concurrent ones open more.
func TestReadsShareAConnection(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	read := func(inside func() error) error {
		return s.read(t.Context(), "read", func(c *conn) error {
			var n int
			if err := c.one([]any{&n}, "SELECT 1"); err != nil {
				return err
			}
			return inside()
		})
	}
	nothing := func() error { return nil }
	for range 2 * cap(s.reads.turns) {
		if err := read(nothing); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.reads.opened); n != 1 {
		t.Errorf("%d connections after reads that followed each other, want 1", n)
	}
	if err := read(func() error { return read(nothing) }); err != nil {
		t.Fatal(err)
	}
	if n := len(s.reads.opened); n != 2 {
		t.Errorf("%d connections after a read within a read, want 2", n)
	}
}

// OP-06: other reads proceed, however many administrators' queries run and wait.
func TestQuestionsAreReadAside(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	storagetest.Aside(t, cap(s.reads.turns), func(ctx context.Context, inside func()) error {
		return s.read(ctx, "read", func(*conn) error {
			inside()
			return nil
		})
	})
}
