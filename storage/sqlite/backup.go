package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Backup writes a copy of the database at path, as it is at one moment, to a new file
// that only its owner can read. Servers on the same database go on meanwhile, and a copy
// that was not finished is removed. fs.ErrExist when there is a file already.
func Backup(ctx context.Context, path, to string) (err error) {
	from, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(from)
	}
	if err != nil {
		return fmt.Errorf("sqlite: backup: %w", err)
	}
	// An absolute name is no URI to SQLite, which would write to what it names.
	if to, err = filepath.Abs(to); err != nil {
		return fmt.Errorf("sqlite: backup: %w", err)
	}
	// SQLite accepts an empty file as target and keeps its mode; with one of its own, the
	// umask would decide who reads the keys.
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

// Check has SQLite read all of a database. ErrDamaged, wrapped, says what it found.
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
