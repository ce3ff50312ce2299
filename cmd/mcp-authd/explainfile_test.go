package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage/export"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// installed returns an opened installation with one account.
func installed(t *testing.T) (a *app, environ []string) {
	t.Helper()
	environ = []string{"HOME=" + t.TempDir(), "MCP_AUTHD_DATA_DIR=" + filepath.Join(t.TempDir(), "data")}
	if code, _, errs := runs(t, environ, "user", "add", "alice", "--password-stdin"); code != exitOK {
		t.Fatalf("user add: got %d %s", code, errs)
	}
	var out, errs strings.Builder
	a, err := settings{}.open(t.Context(), std{strings.NewReader(""), &out, &errs, environ})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, environ
}

// TestHalfExport checks that an unfinished export leaves no file (DL-02).
func TestHalfExport(t *testing.T) {
	a, _ := installed(t)
	file := filepath.Join(t.TempDir(), "authd.export")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := a.exportTo(stopped, file, export.Header{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want that it was stopped", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half of an export is there: %v", err)
	}
}

// TestStoppedMove checks that a move ended by a signal reports that it did nothing, rather than
// that the database is unusable (DL-02).
func TestStoppedMove(t *testing.T) {
	_, environ := installed(t)
	dir := t.TempDir()
	whole, copied := filepath.Join(dir, "authd.export"), filepath.Join(dir, "copy.db")
	for _, args := range [][]string{{"export", whole}, {"backup", copied}} {
		if code, _, errs := runs(t, environ, args...); code != exitOK {
			t.Fatalf("%v: got %d %s", args, code, errs)
		}
	}
	data := filepath.Join(dir, "data")
	if err := os.CopyFS(data, os.DirFS(strings.TrimPrefix(environ[1], "MCP_AUTHD_DATA_DIR="))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(data, "mcp-authd.db")); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for want, args := range map[string][]string{
		"nothing was imported: it was stopped": {"import", whole, "--data", data},
		"nothing was copied: it was stopped":   {"backup", filepath.Join(dir, "other.db")},
		"nothing was restored: it was stopped": {"restore", copied, "--yes"},
	} {
		var out, errs strings.Builder
		code := run(stopped, args, std{strings.NewReader(""), &out, &errs, environ})
		if code != exitFailure || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: got %d %s, want %q", args, code, errs.String(), want)
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
		syscall.EACCES:   "f.db: permission denied; this runs as " + currentUser(),
		errors.New("??"): "f.db: ??; name another file",
	} {
		got := explainFile("f.db", &fs.PathError{Op: "open", Path: "f.db", Err: cause}).Error()
		if !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	a, _ := installed(t)
	to := filepath.Join(t.TempDir(), "copy.db")
	got := a.explainBackup(to, &fs.PathError{Op: "open", Path: to, Err: syscall.EROFS}).Error()
	if !strings.HasPrefix(got, to+": read-only file system; ") {
		t.Errorf("got %q, want that it is about the copy", got)
	}
	database := a.config.SQLitePath()
	got = a.explainBackup(to, &fs.PathError{Op: "stat", Path: database, Err: syscall.EACCES}).Error()
	if !strings.HasPrefix(got, "SQLite database "+database+" cannot be used: ") {
		t.Errorf("got %q, want that it is about the database", got)
	}
}

// TestLinksLeadToTheLastIssuer checks that printed links use the issuer of the last start if none
// is configured, as in a directory of protect (DL-05). A configured issuer takes precedence.
func TestLinksLeadToTheLastIssuer(t *testing.T) {
	a, environ := installed(t)
	const issuer = "https://mcp.example.com"
	if _, err := a.store.Remember(t.Context(), "issuer", []byte(issuer)); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := runs(t, environ, "user", "invite", "bob"); code != exitOK ||
		!strings.Contains(out, issuer+"/link/") {
		t.Errorf("got %d %q %s, want a link to %s", code, out, errs, issuer)
	}
	named := append(environ, "MCP_AUTHD_ISSUER=https://auth.example.com")
	if code, out, errs := runs(t, named, "user", "invite", "carol"); code != exitOK ||
		!strings.Contains(out, "https://auth.example.com/link/") {
		t.Errorf("got %d %q %s, want a link to the issuer that is configured", code, out, errs)
	}
}
