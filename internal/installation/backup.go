package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

var errRestoreStopped = errors.New("nothing was restored: it was stopped before its end; start it again")

// Backup copies the SQLite database to a new file while servers use it, and records that.
func (in *Installation) Backup(ctx context.Context, to string) error {
	if in.Config.Postgres() {
		return errors.New("the database is PostgreSQL: back it up with pg_dump")
	}
	switch err := sqlite.Backup(ctx, in.Config.SQLitePath(), to); {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists already; choose another name", to)
	case errors.Is(err, fs.ErrNotExist):
		if _, missing := os.Stat(in.Config.SQLitePath()); missing == nil {
			return fmt.Errorf("the directory of %s does not exist; make it first", to)
		}
		return fmt.Errorf(
			"there is nothing to copy: %s does not exist; choose the installation with --data or --config",
			in.Config.SQLitePath(),
		)
	case err != nil && ctx.Err() != nil:
		return errors.New("nothing was copied: it was stopped before its end; start it again")
	case err != nil:
		return in.explainBackup(to, err)
	}
	in.noteCopy(ctx, noteBackup, in.now())
	return nil
}

// MayRestore returns an error if the database cannot be replaced now.
func (in *Installation) MayRestore() error {
	if in.Config.Postgres() {
		return errors.New("the database is PostgreSQL: restore it with pg_restore or psql")
	}
	return in.noServer()
}

// Restore replaces the SQLite database with a backup that CheckBackup has found good. It returns what
// it has done.
func (in *Installation) Restore(ctx context.Context, found Restorable) (Restorable, error) {
	kept, err := sqlite.Restore(ctx, found.File, in.Config.SQLitePath(), in.now())
	switch {
	case err != nil && ctx.Err() != nil:
		return found, errRestoreStopped
	case err != nil:
		return found, in.ExplainStore(err)
	}
	found.Kept, found.Restored = kept, true
	in.noteCopy(ctx, in.noteRestore, found.WrittenAt)
	return found, nil
}

// CheckBackup checks a backup on a temporary copy: that it is complete, that the secret key opens it,
// and that this version can use it.
func (in *Installation) CheckBackup(ctx context.Context, file string) (Restorable, error) {
	if in.Config.Postgres() {
		return Restorable{}, errors.New("the database is PostgreSQL: restore it with pg_restore or psql")
	}
	found, err := in.rehearseBackup(ctx, file)
	switch {
	case err != nil && ctx.Err() != nil:
		return found, errRestoreStopped
	case err != nil:
		return found, fmt.Errorf("%s cannot be restored: %w", label.Printable(file), err)
	}
	return found, nil
}

// explainBackup distinguishes errors of the copy from errors of the database.
func (in *Installation) explainBackup(to string, err error) error {
	var path *fs.PathError
	to, absErr := filepath.Abs(to)
	if absErr == nil && (errors.As(err, &path) && path.Path == to || errors.Is(err, sqlite.ErrFull)) {
		return explainFile(to, err)
	}
	return in.ExplainStore(err)
}

// Restorable describes a backup that can be restored. It is the output of restore --json.
type Restorable struct {
	File         string    `json:"file"`
	WrittenAt    time.Time `json:"written_at"`
	Migration    int       `json:"migration"` // the last migration in the copy
	People       int       `json:"people"`
	Applications int       `json:"applications"`
	Restored     bool      `json:"restored"`
	Kept         string    `json:"kept,omitempty"` // the path of the previous database
}

// noServer returns an error while a server has the database open, because the server would
// overwrite the restored one.
func (in *Installation) noServer() error {
	processes, err := sqlite.Servers(in.Config.SQLitePath())
	if err == nil && len(processes) > 0 {
		return fmt.Errorf("a server uses the database (process %s): stop it first", strings.Join(processes, ", "))
	}
	return in.explainDirectory(err)
}

// noRoomToTry returns an error that is not about the backup.
func noRoomToTry(err error) error {
	return fmt.Errorf("it was not tried, which takes as much room as it has, in %s: %s; set TMPDIR to a directory with room",
		os.TempDir(), label.FirstLine(err))
}

// rehearseBackup migrates a copy of the backup to this version, and examines its contents.
func (in *Installation) rehearseBackup(ctx context.Context, file string) (r Restorable, err error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, errors.New("it does not exist")
	case err != nil:
		return r, err
	case info.IsDir():
		return r, errors.New("it is a directory; name the file that backup wrote")
	case info.Size() == 0:
		return r, errors.New("it is empty")
	}
	if err := in.loadKeys(in.movedKey); err != nil {
		return r, err
	}
	in.removeLeftovers()
	dir, remove, err := workplace()
	if err != nil {
		return r, noRoomToTry(err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	found, err := sqlite.Rehearse(ctx, file, dir, sqlite.Options{})
	switch {
	case errors.Is(err, storage.ErrSchema):
		return r, errors.New(label.FirstLine(err))
	case errors.Is(err, sqlite.ErrDamaged):
		return r, fmt.Errorf("%s; take an earlier backup", label.FirstLine(err))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, sqlite.ErrFull):
		return r, noRoomToTry(err)
	case err != nil:
		return r, err
	}
	r = Restorable{
		File: file, WrittenAt: info.ModTime().UTC().Truncate(time.Second), Migration: found.Migration,
		People: found.People, Applications: found.Applications,
	}
	return r, keysFit(ctx, found.Fingerprint, in.Keys)
}
