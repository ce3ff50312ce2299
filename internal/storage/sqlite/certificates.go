package sqlite

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putCertificateFile = `INSERT INTO certificate_files (key, sealed, modified_at) VALUES (?,?,?)
ON CONFLICT (key) DO UPDATE SET sealed = excluded.sealed, modified_at = excluded.modified_at`
	// "0" is the character after "/".
	certificateFilesBelow = `SELECT key, modified_at FROM certificate_files
WHERE ?1 = '' OR key >= ?1 || '/' AND key < ?1 || '0' ORDER BY key LIMIT ?2`
	deleteCertificateFiles = "DELETE FROM certificate_files WHERE key = ?1 OR key >= ?1 || '/' AND key < ?1 || '0'"
	resealCertificateFile  = "UPDATE certificate_files SET sealed = ?3 WHERE key = ?1 AND sealed = ?2"
)

// PutCertificateFile implements storage.CertificateFiles.
func (s *Store) PutCertificateFile(ctx context.Context, f storage.CertificateFile) error {
	return s.write(ctx, "PutCertificateFile", func(c *conn) error {
		_, err := c.exec(putCertificateFile, f.Key, f.Sealed, column.Millis(f.ModifiedAt))
		return err
	})
}

// CertificateFile implements storage.CertificateFiles.
func (s *Store) CertificateFile(ctx context.Context, key string) (f storage.CertificateFile, err error) {
	f.Key = key
	err = s.read(ctx, "CertificateFile", func(c *conn) error {
		var at int64
		err := c.one([]any{&f.Sealed, &at}, "SELECT sealed, modified_at FROM certificate_files WHERE key = ?", key)
		f.ModifiedAt = column.Time(at)
		return err
	})
	return f, err
}

// CertificateFilesBelow implements storage.CertificateFiles.
func (s *Store) CertificateFilesBelow(
	ctx context.Context, path string, limit int,
) (out []storage.CertificateFile, err error) {
	err = s.read(ctx, "CertificateFilesBelow", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (f storage.CertificateFile, err error) {
			var at int64
			err = row.Scan(&f.Key, &at)
			f.ModifiedAt = column.Time(at)
			return f, err
		}, certificateFilesBelow, path, limit)
		return err
	})
	return out, err
}

// DeleteCertificateFiles implements storage.CertificateFiles.
func (s *Store) DeleteCertificateFiles(ctx context.Context, key string) error {
	return s.write(ctx, "DeleteCertificateFiles", func(c *conn) error {
		_, err := c.exec(deleteCertificateFiles, key)
		return err
	})
}

// ResealCertificateFile implements storage.CertificateFiles.
func (s *Store) ResealCertificateFile(ctx context.Context, key string, old, sealed []byte) error {
	return s.write(ctx, "ResealCertificateFile", func(c *conn) error {
		n, err := c.exec(resealCertificateFile, key, old, sealed)
		if err == nil && n == 0 {
			return storage.ErrSpent
		}
		return err
	})
}
