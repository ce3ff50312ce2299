package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Backup writes a consistent copy of the database at path to a new file that only its owner can
// read. Servers on the database keep running meanwhile. An unfinished copy is removed. It returns
// fs.ErrExist if the file exists.
func Backup(ctx context.Context, path, to string) (err error) {
	from, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(from)
	}
	if err != nil {
		return fmt.Errorf("sqlite: backup: %w", err)
	}
	// SQLite does not parse an absolute name as a URI, which could name another file.
	if to, err = filepath.Abs(to); err != nil {
		return fmt.Errorf("sqlite: backup: %w", err)
	}
	// SQLite accepts an empty file as target and keeps its mode. If SQLite created the file, the
	// umask would decide who can read the keys.
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("sqlite: backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(to))
		}
	}()
	if err := f.Close(); err != nil {
		return fmt.Errorf("sqlite: backup: %w", err)
	}
	if err := query(ctx, fileURI(from)+"?_pragma=busy_timeout(5000)", "VACUUM INTO ?", to); err != nil {
		return wrap("backup", err)
	}
	if err := Check(ctx, to); err != nil {
		return fmt.Errorf("sqlite: the backup: %w", err)
	}
	return nil
}

// Check lets SQLite read the whole database. It returns a wrapped ErrDamaged with the findings.
func Check(ctx context.Context, path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("sqlite: check: %w", err)
	}
	db, err := sql.Open("sqlite", fileURI(abs)+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return fmt.Errorf("sqlite: check: %w", err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return wrap("check", err)
	}
	if verdict != "ok" {
		return fmt.Errorf("sqlite: check: %w: %s", ErrDamaged, verdict)
	}
	return nil
}

func query(ctx context.Context, at, statement string, args ...any) error {
	db, err := sql.Open("sqlite", at)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement, args...)
	return err
}
