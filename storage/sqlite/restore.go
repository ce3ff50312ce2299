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

// Rehearsal is what is in a backup.
type Rehearsal struct {
	Migration            int    // the last one of the schema that it has
	Fingerprint          []byte // of the secret key that it belongs to; nil: of none yet
	People, Applications int
}

// RehearsalName is the name of the copy that Rehearse makes. Its log and the like begin with it.
const RehearsalName = "rehearsal.db"

// Rehearse copies the backup file into the directory dir, has SQLite read all of it, and brings it to the
// migrations of this program. ErrDamaged, wrapped, when it is not whole, and storage.ErrSchema when a newer
// version wrote it. The copy stays.
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

// Restore puts a copy of the backup file in the place of the database at path and returns where that is kept,
// "" when there was none. ErrLocked, wrapped, while a server or another process has it. At each moment the one
// or the other is whole at path.
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
	removeDatabase(putting) // of one that did not end
	defer removeDatabase(putting)
	if err := copyDatabase(ctx, file, putting); err != nil {
		return "", fmt.Errorf("sqlite: restore: %w", err)
	}
	before := abs + ".before-" + now.UTC().Format("20060102T150405.000Z")
	_, err = os.Stat(abs)
	switch {
	case err == nil:
		kept, err = before, keep(ctx, abs, before)
	case errors.Is(err, fs.ErrNotExist): // the operator moved it away, maybe without its log
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

// keep copies a database that is about to be replaced. What was committed to it and is in its log yet is
// written into it first: SQLite would apply a log to whatever comes in its place. The log of a file that cannot
// be read is copied with it, and taken away.
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

// setAside moves the log of the database at path beside kept: SQLite would apply it to the next one at path.
func setAside(path, kept string) error {
	for _, suffix := range beside {
		err := copyFile(context.Background(), path+suffix, kept+suffix) // a part of it is of no use to any of them
		if err == nil {
			err = os.Remove(path + suffix)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// copyDatabase copies a database that nobody writes, with what is in its log.
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

// fold writes the log of a database into it, and leaves none.
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

// copyFile makes a new file that only its owner can read: the user that the directory belongs to, where root runs
// this. fs.ErrExist when there is one. A copy that was stopped is removed.
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

// copyBuffer is how much is copied at once, in bytes.
const copyBuffer = 1 << 20

// stoppable is a reader until its context ends.
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
