package portable

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putCertificateFile = `INSERT INTO certificate_files (key, sealed, modified_at) VALUES ($1,$2,$3)
ON CONFLICT (key) DO UPDATE SET sealed = excluded.sealed, modified_at = excluded.modified_at`
	// "0" is the character after "/".
	certificateFilesBelow = `SELECT key, modified_at FROM certificate_files
WHERE $1 = '' OR key >= $1 || '/' AND key < $1 || '0' ORDER BY key LIMIT $2`
	deleteCertificateFiles = "DELETE FROM certificate_files WHERE key = $1 OR key >= $1 || '/' AND key < $1 || '0'"
	resealCertificateFile  = "UPDATE certificate_files SET sealed = $3 WHERE key = $1 AND sealed = $2"
)

// certificates implements storage.CertificateFiles.
type certificates struct{ db Engine }

// PutCertificateFile implements storage.CertificateFiles.
func (s certificates) PutCertificateFile(ctx context.Context, f storage.CertificateFile) error {
	return s.db.Write(ctx, "PutCertificateFile", func(c Conn) error {
		_, err := c.Exec(putCertificateFile, f.Key, f.Sealed, column.Millis(f.ModifiedAt))
		return err
	})
}

// CertificateFile implements storage.CertificateFiles.
func (s certificates) CertificateFile(ctx context.Context, key string) (f storage.CertificateFile, err error) {
	f.Key = key
	err = s.db.Read(ctx, "CertificateFile", func(c Conn) error {
		var at int64
		err := c.One([]any{&f.Sealed, &at}, "SELECT sealed, modified_at FROM certificate_files WHERE key = $1", key)
		f.ModifiedAt = column.Time(at)
		return err
	})
	return f, err
}

// CertificateFilesBelow implements storage.CertificateFiles.
func (s certificates) CertificateFilesBelow(
	ctx context.Context, path string, limit int,
) (out []storage.CertificateFile, err error) {
	err = s.db.Read(ctx, "CertificateFilesBelow", func(c Conn) (err error) {
		out, err = Each(c, func(row Row) (f storage.CertificateFile, err error) {
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
func (s certificates) DeleteCertificateFiles(ctx context.Context, key string) error {
	return s.db.Write(ctx, "DeleteCertificateFiles", func(c Conn) error {
		_, err := c.Exec(deleteCertificateFiles, key)
		return err
	})
}

// ResealCertificateFile implements storage.CertificateFiles.
func (s certificates) ResealCertificateFile(ctx context.Context, key string, old, sealed []byte) error {
	return s.db.Write(ctx, "ResealCertificateFile", func(c Conn) error {
		n, err := c.Exec(resealCertificateFile, key, old, sealed)
		if err == nil && n == 0 {
			return storage.ErrSpent
		}
		return err
	})
}
