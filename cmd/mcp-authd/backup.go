package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/label"
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
			"key (" + installation.KeyFile + " in the data directory): without the key the copy is useless. Then test it: mcp-authd\n" +
			"restore --check. For PostgreSQL use pg_dump.",
		Example: "  mcp-authd backup /var/backups/mcp-authd-$(date +%F).db", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := where.load(s)
			if err != nil {
				return err
			}
			if err := a.Backup(c.Context(), args[0]); err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, copied{a.Config.SQLitePath(), args[0]})
			}
			_, err = fmt.Fprintf(s.out, "copied %s to %s\n", a.Config.SQLitePath(), args[0])
			return err
		},
	}
	where.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

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
			"afterwards: mcp-authd grant revoke --from-log.",
		Example: "  mcp-authd restore --check /var/backups/mcp-authd-2026-11-24.db\n" +
			"  mcp-authd restore /var/backups/mcp-authd-2026-11-24.db",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			a, err := where.load(s)
			if err != nil {
				return err
			}
			if !check {
				if err := a.MayRestore(); err != nil {
					return err
				}
			}
			found, err := a.CheckBackup(ctx, args[0])
			if err != nil {
				return err
			}
			if !check {
				consequence := fmt.Sprintf("This replaces %s by the backup of %s: what was done since is lost.",
					a.Config.SQLitePath(), label.Moment(found.WrittenAt))
				if err := sure.ask(s, consequence); err != nil {
					return err
				}
				if found, err = a.Restore(ctx, found); err != nil {
					return err
				}
			}
			if asJSON {
				return printJSON(s.out, found)
			}
			return printRestored(s, found, a.Config.SQLitePath())
		},
	}
	where.add(c)
	sure.add(c)
	c.Flags().BoolVar(&check, "check", false, "only check: test a copy and show its content, without changing anything")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printRestored(s std, r installation.Restorable, path string) error {
	what := fmt.Sprintf("the backup of %s is whole, and the secret key opens it: %s, %s, migration %d",
		label.Moment(r.WrittenAt), label.Count(r.People, "person", "people"),
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
