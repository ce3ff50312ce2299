package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// certificateFiles checks DL-01: the certificate files that replicas share.
func certificateFiles(t *testing.T, e *env) {
	put := func(key, text string, at time.Time) storage.CertificateFile {
		t.Helper()
		f := storage.CertificateFile{Key: key, Sealed: []byte(text), ModifiedAt: at}
		check(t, e.s.PutCertificateFile(e.ctx, f))
		return f
	}
	below := func(path string, limit int) (keys []string) {
		t.Helper()
		files, err := e.s.CertificateFilesBelow(e.ctx, path, limit)
		check(t, err)
		for _, f := range files {
			keys = append(keys, f.Key)
			same(t, len(f.Sealed), 0)
			same(t, f.ModifiedAt, e.now)
		}
		return keys
	}
	t.Run("DL-01 a file is stored in place of the one with its key", func(t *testing.T) {
		put("a/b/c", "old", e.now.Add(-time.Hour))
		want := put("a/b/c", "new", e.now)
		got, err := e.s.CertificateFile(e.ctx, "a/b/c")
		check(t, err)
		same(t, got, want)
		_, err = e.s.CertificateFile(e.ctx, "a/b")
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("DL-01 files are listed below a path, and nothing beside it", func(t *testing.T) {
		for _, key := range []string{"a/b/d", "a/bb/e", "a.b/f", "a0", "a/b%"} {
			put(key, "x", e.now)
		}
		same(t, below("a/b", 10), []string{"a/b/c", "a/b/d"})
		same(t, below("a", 10), []string{"a/b%", "a/b/c", "a/b/d", "a/bb/e"})
		same(t, below("a", 2), []string{"a/b%", "a/b/c"})
		same(t, len(below("", 10)), 6)
		same(t, len(below("a/b/c", 10)), 0)
	})
	t.Run("DL-01 a file is sealed again only if it is as it was read", func(t *testing.T) {
		wantErr(t, e.s.ResealCertificateFile(e.ctx, "a/b/c", []byte("old"), []byte("sealed")), storage.ErrSpent)
		wantErr(t, e.s.ResealCertificateFile(e.ctx, "none", []byte("old"), []byte("sealed")), storage.ErrSpent)
		check(t, e.s.ResealCertificateFile(e.ctx, "a/b/c", []byte("new"), []byte("sealed")))
		got, err := e.s.CertificateFile(e.ctx, "a/b/c")
		check(t, err)
		same(t, got, storage.CertificateFile{Key: "a/b/c", Sealed: []byte("sealed"), ModifiedAt: e.now})
	})
	t.Run("DL-01 a file goes with those below it", func(t *testing.T) {
		check(t, e.s.DeleteCertificateFiles(e.ctx, "a/b"))
		check(t, e.s.DeleteCertificateFiles(e.ctx, "a/b"))
		same(t, below("", 10), []string{"a.b/f", "a/b%", "a/bb/e", "a0"})
		check(t, e.s.DeleteCertificateFiles(e.ctx, "a0"))
		_, err := e.s.CertificateFile(e.ctx, "a0")
		wantErr(t, err, storage.ErrNotFound)
	})
}
