package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newMigrateCommand(s std) *cobra.Command {
	return group("migrate", "Manage the database schema", newMigrateUp(s), newMigrateStatus(s))
}

func newMigrateUp(s std) *cobra.Command {
	var where settings
	var now, asJSON bool
	c := &cobra.Command{
		Use: "up", Short: "Migrate the database to this version, or create it", Args: cobra.NoArgs,
		Example: "  mcp-authd migrate up\n  mcp-authd migrate up --now",
		Long: "Applies the missing migrations. A migration that breaks servers of an earlier version may be\n" +
			"postponed, so that you have time to replace them. A server applies it when the time has come; with\n" +
			"database.migrate: off, run this command again. With --now, it is applied now.",
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := where.load(s)
			if err != nil {
				return err
			}
			m, err := a.CreateUnmigrated(c.Context())
			if err != nil {
				return err
			}
			defer a.Close()
			migrate := m.Migrate
			if now {
				migrate = m.MigrateNow
			}
			if err := migrate(c.Context()); err != nil {
				return a.ExplainStore(err)
			}
			return s.tellMigrated(c.Context(), m, asJSON)
		},
	}
	where.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the migrations as JSON, as migrate status does")
	c.Flags().BoolVar(&now, "now", false,
		"also apply postponed migrations; stop every server of an earlier version first")
	return c
}

// tellMigrated says that the database is up to date, except for migrations that wait, and how long
// they wait.
func (s std) tellMigrated(ctx context.Context, m installation.Migrating, asJSON bool) error {
	all, err := m.MigrationStatus(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(s.out, all)
	}
	if _, err := fmt.Fprintln(s.out, "the database is up to date"); err != nil {
		return err
	}
	for _, st := range all {
		if !st.DueAt.IsZero() {
			fmt.Fprintf(s.out, "%d (%s) is put off until %s, for servers of an earlier version to be replaced\n",
				st.Version, st.Name, label.Moment(st.DueAt))
		}
	}
	return nil
}

func newMigrateStatus(s std) *cobra.Command {
	var where settings
	var asJSON bool
	c := &cobra.Command{
		Use: "status", Short: "List migrations and when they were applied", Args: cobra.NoArgs,
		Example: "  mcp-authd migrate status --json",
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := where.load(s)
			if err != nil {
				return err
			}
			m, err := a.OpenUnmigrated(c.Context())
			if err != nil {
				return err
			}
			defer a.Close()
			all, err := m.MigrationStatus(c.Context())
			if err != nil {
				return a.ExplainStore(err)
			}
			if asJSON {
				return printJSON(s.out, all)
			}
			t := newTable(s.out, "VERSION", "NAME", "APPLIED")
			for _, st := range all {
				applied := label.Moment(st.AppliedAt)
				switch {
				case !st.DueAt.IsZero():
					applied = "put off until " + label.Moment(st.DueAt)
				case st.AppliedAt.IsZero():
					applied = "pending"
				}
				t.row(fmt.Sprint(st.Version), st.Name, applied)
			}
			return t.flush()
		},
	}
	where.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
