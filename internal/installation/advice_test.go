package installation

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// TestWhoMayNotWriteIsTold checks that the message names the user and the mode, with advice for a
// full or read-only disk (issue 11, 4.4, DL-04).
func TestWhoMayNotWriteIsTold(t *testing.T) {
	l, err := config.Load(config.Source{Environ: []string{"MCP_AUTHD_DATA_DIR=" + t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	in := Quiet(l, Host{})
	got := in.explainDirectory(fmt.Errorf("open secret.key: %w", fs.ErrPermission)).Error()
	for _, want := range []string{"this runs as " + CurrentUser(), l.DataDir + " is drwx", "--data"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	for cause, want := range map[error]string{
		syscall.ENOSPC:  "; make room on the disk of the data directory " + l.DataDir,
		syscall.EROFS:   "; the data directory " + l.DataDir + " is on a disk that is mounted read-only: mount it so",
		errors.New("?"): "secret.key: ?; choose another directory with --data",
	} {
		if got := in.explainDirectory(fmt.Errorf("open secret.key: %w", cause)).Error(); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}

// TestNamedFile checks that errors of a named file are not attributed to the database, and that
// each cause has advice (DL-04).
func TestNamedFile(t *testing.T) {
	for cause, want := range map[error]string{
		syscall.ENOSPC:   "f.db: no space left on device; make room on its disk",
		sqlite.ErrFull:   "f.db: the disk is full, make room on it; make room on its disk",
		syscall.EROFS:    "f.db: read-only file system; its disk is mounted read-only",
		syscall.EACCES:   "f.db: permission denied; this runs as " + CurrentUser(),
		errors.New("??"): "f.db: ??; name another file",
	} {
		got := explainFile("f.db", &fs.PathError{Op: "open", Path: "f.db", Err: cause}).Error()
		if !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	in := created(t)
	to := filepath.Join(t.TempDir(), "copy.db")
	got := in.explainBackup(to, &fs.PathError{Op: "open", Path: to, Err: syscall.EROFS}).Error()
	if !strings.HasPrefix(got, to+": read-only file system; ") {
		t.Errorf("got %q, want that it is about the copy", got)
	}
	database := in.Config.SQLitePath()
	got = in.explainBackup(to, &fs.PathError{Op: "stat", Path: database, Err: syscall.EACCES}).Error()
	if !strings.HasPrefix(got, "SQLite database "+database+" cannot be used: ") {
		t.Errorf("got %q, want that it is about the database", got)
	}
}
