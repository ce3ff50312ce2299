package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// copied is the output of backup --json.
type copied struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func newBackupCommand(s std) *cobra.Command {
	var where settings
	var asJSON bool
	c := &cobra.Command{
		Use: "backup FILE", Short: "Copy the SQLite database while servers use it",
		Long: "Writes a copy of the SQLite database to a new file that only you can read. Keep it with the secret\n" +
			"key (" + keyFile + " in the data directory): without the key the copy is useless. Then test it: mcp-authd\n" +
			"restore --check. For PostgreSQL use pg_dump.",
		Example: "  mcp-authd backup /var/backups/mcp-authd-$(date +%F).db", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := where.load(s)
			switch {
			case err != nil:
				return err
			case a.config.Postgres():
				return errors.New("the database is PostgreSQL: back it up with pg_dump")
			}
			switch err := sqlite.Backup(c.Context(), a.config.SQLitePath(), args[0]); {
			case errors.Is(err, fs.ErrExist):
				return fmt.Errorf("%s exists already; choose another name", args[0])
			case errors.Is(err, fs.ErrNotExist):
				if _, missing := os.Stat(a.config.SQLitePath()); missing == nil {
					return fmt.Errorf("the directory of %s does not exist; make it first", args[0])
				}
				return fmt.Errorf(
					"there is nothing to copy: %s does not exist; choose the installation with --data or --config",
					a.config.SQLitePath(),
				)
			case err != nil && c.Context().Err() != nil:
				return errors.New("nothing was copied: it was stopped before its end; start it again")
			case err != nil:
				return a.explainBackup(args[0], err)
			}
			a.noteCopy(c.Context(), noteBackup, time.Now())
			if asJSON {
				return printJSON(s.out, copied{a.config.SQLitePath(), args[0]})
			}
			_, err = fmt.Fprintf(s.out, "copied %s to %s\n", a.config.SQLitePath(), args[0])
			return err
		},
	}
	where.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// explainBackup distinguishes errors of the copy from errors of the database.
func (a *app) explainBackup(to string, err error) error {
	var path *fs.PathError
	to, absErr := filepath.Abs(to)
	if absErr == nil && (errors.As(err, &path) && path.Path == to || errors.Is(err, sqlite.ErrFull)) {
		return explainFile(to, err)
	}
	return a.explainStore(err)
}
