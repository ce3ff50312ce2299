package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// restorable is the output of restore --json.
type restorable struct {
	File         string    `json:"file"`
	WrittenAt    time.Time `json:"written_at"`
	Migration    int       `json:"migration"` // the last migration in the copy
	People       int       `json:"people"`
	Applications int       `json:"applications"`
	Restored     bool      `json:"restored"`
	Kept         string    `json:"kept,omitempty"` // the path of the previous database
}

var errRestoreStopped = errors.New("nothing was restored: it was stopped before its end; start it again")

func newRestoreCommand(s std) *cobra.Command {
	var where settings
	var sure confirmation
	var check, asJSON bool
	c := &cobra.Command{
		Use: "restore FILE", Short: "Restore a backup of the SQLite database",
		Long: "Checks a backup on a temporary copy: that it is complete, that the secret key opens it, and that\n" +
			"this version can use it. Then replaces the database with it, and keeps the old database under\n" +
			"another name. With --check, it only checks: run it after each backup.\n\n" +
			"Stop the server first. Revocations after the backup are lost with the old database, so run this\n" +
			"afterwards: grant revoke --from-log.",
		Example: "  mcp-authd restore --check /var/backups/mcp-authd-2026-11-24.db\n" +
			"  mcp-authd restore /var/backups/mcp-authd-2026-11-24.db",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			a, err := where.load(s)
			if err != nil {
				return err
			}
			if a.config.Postgres() {
				return errors.New("the database is PostgreSQL: restore it with pg_restore or psql")
			}
			if !check {
				if err := a.noServer(); err != nil {
					return err
				}
			}
			found, err := a.tryBackup(ctx, args[0])
			if err != nil && ctx.Err() != nil {
				return errRestoreStopped
			}
			if err != nil {
				return fmt.Errorf("%s cannot be restored: %w", printable(args[0]), err)
			}
			if !check {
				consequence := fmt.Sprintf("This replaces %s by the backup of %s: what was done since is lost.",
					a.config.SQLitePath(), moment(found.WrittenAt))
				if err := sure.ask(s, consequence); err != nil {
					return err
				}
				found.Kept, err = sqlite.Restore(ctx, args[0], a.config.SQLitePath(), time.Now())
				switch {
				case err != nil && ctx.Err() != nil:
					return errRestoreStopped
				case err != nil:
					return a.explainStore(err)
				}
				found.Restored = true
				a.noteCopy(ctx, noteRestore, found.WrittenAt)
			}
			if asJSON {
				return printJSON(s.out, found)
			}
			return found.print(s, a.config.SQLitePath())
		},
	}
	where.add(c)
	sure.add(c)
	c.Flags().BoolVar(&check, "check", false, "only check: test a copy and show its content, without changing anything")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (r restorable) print(s std, path string) error {
	what := fmt.Sprintf("the backup of %s is whole, and the secret key opens it: %s, %s, migration %d",
		moment(r.WrittenAt), label.Count(r.People, "person", "people"),
		label.Count(r.Applications, "application", "applications"), r.Migration)
	if !r.Restored {
		_, err := fmt.Fprintln(s.out, what)
		return err
	}
	_, err := fmt.Fprintf(s.out, "%s\nrestored %s\n", what, path)
	if r.Kept != "" && err == nil {
		_, err = fmt.Fprintf(s.out, "the previous database is kept: %s\n", r.Kept)
	}
	return err
}

// noServer returns an error while a server has the database open, because the server would
// overwrite the restored one.
func (a *app) noServer() error {
	processes, err := sqlite.Servers(a.config.SQLitePath())
	if err == nil && len(processes) > 0 {
		return fmt.Errorf("a server uses the database (process %s): stop it first", strings.Join(processes, ", "))
	}
	return a.explainDirectory(err)
}

// noRoomToTry returns an error that is not about the backup.
func noRoomToTry(err error) error {
	return fmt.Errorf("it was not tried, which takes as much room as it has, in %s: %s; set TMPDIR to a directory with room",
		os.TempDir(), oneLine(err))
}

// tryBackup migrates a copy of the backup to this version, and examines its contents.
func (a *app) tryBackup(ctx context.Context, file string) (r restorable, err error) {
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
	if err := a.loadKeys(a.movedKey); err != nil {
		return r, err
	}
	a.removeLeftovers()
	dir, remove, err := workplace()
	if err != nil {
		return r, noRoomToTry(err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	found, err := sqlite.Rehearse(ctx, file, dir, sqlite.Options{})
	switch {
	case errors.Is(err, storage.ErrSchema):
		return r, errors.New(oneLine(err))
	case errors.Is(err, sqlite.ErrDamaged):
		return r, fmt.Errorf("%s; take an earlier backup", oneLine(err))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, sqlite.ErrFull):
		return r, noRoomToTry(err)
	case err != nil:
		return r, err
	}
	r = restorable{
		File: file, WrittenAt: info.ModTime().UTC().Truncate(time.Second), Migration: found.Migration,
		People: found.People, Applications: found.Applications,
	}
	return r, keysFit(ctx, found.Fingerprint, a.keys)
}
