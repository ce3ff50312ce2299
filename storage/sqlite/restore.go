package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Rehearsal is what is in a backup.
type Rehearsal struct {
	Migration            int    // the last one of the schema that it has
	Fingerprint          []byte // of the secret key that it belongs to; nil: of none yet
	People, Applications int
}

// Rehearse copies the backup file into the directory dir, has SQLite read all of it, and brings it to the
// migrations of this program. ErrDamaged, wrapped, when it is not whole, and storage.ErrSchema when a newer
// version wrote it. The copy stays.
func Rehearse(ctx context.Context, file, dir string, o Options) (r Rehearsal, err error) {
	path := filepath.Join(dir, "rehearsal.db")
	if err := copyFile(file, path); err != nil {
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

// Restore puts a copy of the backup file in the place of the database at path, which no server may use, and
// returns the file in which the old one is kept, "" when there was none. At each moment one of the two is at path.
func Restore(file, path string, now time.Time) (kept string, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	putting := abs + ".restoring"
	removeDatabase(putting) // what an interrupted restore left
	if err := copyFile(file, putting); err != nil {
		return "", fmt.Errorf("sqlite: restore: %w", err)
	}
	defer removeDatabase(putting)
	if _, err := os.Stat(abs); err == nil {
		kept = abs + ".before-" + now.UTC().Format("20060102T150405Z")
		if err := keepAside(abs, kept); err != nil {
			return "", fmt.Errorf("sqlite: restore: %w", err)
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("sqlite: restore: %w", err)
	}
	if err := put(putting, abs); err != nil {
		return "", fmt.Errorf("sqlite: restore: %w", err)
	}
	return kept, nil
}

// keepAside gives a database a second name, with what a crash left beside it: SQLite would apply that to
// whatever comes in its place.
func keepAside(path, kept string) error {
	if err := link(path, kept); err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+suffix, kept+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// link gives a file a second name, where the file system can, and else copies it.
func link(path, name string) error {
	err := os.Link(path, name)
	if err == nil || errors.Is(err, os.ErrExist) {
		return err
	}
	return copyFile(path, name)
}

// copyFile makes a new file that only its owner can read. fs.ErrExist when there is one.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		err = errors.Join(err, os.Remove(to))
	}
	return err
}
