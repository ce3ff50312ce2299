package installation

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/storage/export"
)

// host returns a host without input, and what is written to its stderr.
func host(t *testing.T, environ ...string) (h Host, stderr *strings.Builder) {
	t.Helper()
	stderr = &strings.Builder{}
	return Host{
		Environ: append(environ, "HOME="+t.TempDir()), Stdin: strings.NewReader(""), Stdout: &strings.Builder{},
		Stderr: stderr,
	}, stderr
}

// under returns the installation of a data directory, which may not exist.
func under(t *testing.T, h Host, dir string, changes ...func(*config.Loaded)) *Installation {
	t.Helper()
	l, err := config.Load(config.Source{Environ: append(h.Environ, "MCP_AUTHD_DATA_DIR="+dir)})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(l)
	}
	in, err := New(l, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return in
}

// created returns an installation that was created and is open.
func created(t *testing.T) *Installation {
	t.Helper()
	h, _ := host(t)
	in := under(t, h, filepath.Join(t.TempDir(), "data"))
	if err := in.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return in
}

// TestHalfExport checks that an unfinished export leaves no file (DL-02).
func TestHalfExport(t *testing.T) {
	in := created(t)
	file := filepath.Join(t.TempDir(), "authd.export")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := in.exportTo(stopped, file, export.Header{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want that it was stopped", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half of an export is there: %v", err)
	}
}
