package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// Rehearsal describes a backup.
type Rehearsal struct {
	Migration            int    // its last schema step
	Fingerprint          []byte // of its secret key; nil: not set yet
	People, Applications int
}

// RehearsalName is the name of the copy made by Rehearse, and the prefix of its log files.
const RehearsalName = "rehearsal.db"

// Rehearse copies the backup file into the directory dir, lets SQLite read all of it, and migrates
// it to this program's schema. It returns a wrapped ErrDamaged if the backup is damaged, and
// storage.ErrSchema if a newer version wrote it. The copy stays.
func Rehearse(ctx context.Context, file, dir string, o Options) (r Rehearsal, err error) {
	path := filepath.Join(dir, RehearsalName)
	if err := copyDatabase(ctx, file, path); err != nil {
		return r, fmt.Errorf("sqlite: rehearse: %w", err)
	}
	if err := Check(ctx, path); err != nil {
		return r, err
	}
	o.SkipMigrate = true
	s, err := Open(ctx, path, o)
	if err != nil {
		return r, err
	}
	defer func() { err = joinErr(err, s.Close()) }()
	before, err := s.applied(ctx)
	if err != nil {
		return r, err
	}
	if len(before.Steps) == 0 {
		return r, fmt.Errorf("sqlite: rehearse: %w: no installation is in it", ErrDamaged)
	}
	r.Migration = before.Steps[len(before.Steps)-1].Version
	if err := s.Migrate(ctx); err != nil {
		return r, err
	}
	if r.Fingerprint, err = s.Fingerprint(ctx, nil); err != nil {
		return r, err
	}
	return r, s.read(ctx, "rehearse", func(c *conn) error {
		return c.one([]any{&r.People, &r.Applications},
			"SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM clients WHERE deleted_at IS NULL)")
	})
}

// Restore replaces the database at path by a copy of the backup file. It returns where the old
// database is kept, "" if there was none. It returns a wrapped ErrLocked while a server or another
// process uses the database. At each moment, path contains one complete database.
func Restore(ctx context.Context, file, path string, now time.Time) (kept string, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	release, err := claim(abs)
	if err != nil {
		return "", fmt.Errorf("sqlite: restore: %w", err)
	}
	defer release()
	putting := abs + ".restoring"
	removeDatabase(putting) // of an interrupted restore
	defer removeDatabase(putting)
	if err := copyDatabase(ctx, file, putting); err != nil {
		return "", fmt.Errorf("sqlite: restore: %w", err)
	}
	before := abs + ".before-" + now.UTC().Format("20060102T150405.000Z")
	_, err = os.Stat(abs)
	switch {
	case err == nil:
		kept, err = before, keep(ctx, abs, before)
	case errors.Is(err, fs.ErrNotExist): // an administrator moved it away, maybe without its log
		err = setAside(abs, before)
	}
	if err != nil {
		return "", fmt.Errorf("sqlite: restore: %w", err)
	}
	if err := put(putting, abs); err != nil {
		return "", fmt.Errorf("sqlite: restore: %w", err)
	}
	return kept, nil
}

// keep copies a database before it is replaced, after it writes the database's log into it.
// Otherwise SQLite would apply the log to the replacement. If the file cannot be read, keep copies
// the log with it, and removes it.
func keep(ctx context.Context, path, kept string) error {
	folded := fold(ctx, path)
	if err := copyFile(ctx, path, kept); err != nil {
		return err
	}
	if folded == nil {
		return nil
	}
	return setAside(path, kept)
}

// setAside moves the log of the database at path beside kept. Otherwise SQLite would apply it to
// the next database at path.
func setAside(path, kept string) error {
	for _, suffix := range beside {
		err := copyFile(context.Background(), path+suffix, kept+suffix) // an incomplete log is of no use
		if err == nil {
			err = os.Remove(path + suffix)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// copyDatabase copies a database without writers, with the content of its log.
func copyDatabase(ctx context.Context, from, to string) error {
	if err := copyFile(ctx, from, to); err != nil {
		return err
	}
	info, err := os.Stat(from + "-wal")
	if err != nil || info.Size() == 0 {
		return nil
	}
	if err := copyFile(ctx, from+"-wal", to+"-wal"); err != nil {
		return err
	}
	return fold(ctx, to)
}

// fold writes the log of a database into it, and removes the log.
func fold(ctx context.Context, path string) error {
	if _, err := os.Stat(path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := sql.Open("sqlite", fileURI(path)+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	var busy, log, done int
	err = db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &done)
	if err == nil && busy != 0 {
		err = ErrLocked
	}
	return errors.Join(err, db.Close())
}

// copyFile creates a file that only its owner can read. If root runs it, the owner is the
// directory's owner. It returns fs.ErrExist if the file exists. It removes an interrupted copy.
func copyFile(ctx context.Context, from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.CopyBuffer(struct{ io.Writer }{out}, stoppable{ctx, in}, make([]byte, copyBuffer)); err == nil {
		err = errors.Join(secrets.HandOver(out), out.Sync())
	}
	if err = errors.Join(err, out.Close()); err != nil {
		err = errors.Join(err, os.Remove(to))
	}
	return err
}

// copyBuffer is the size of the copy buffer in bytes.
const copyBuffer = 1 << 20

// stoppable is a reader that fails once its context ends.
type stoppable struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}
